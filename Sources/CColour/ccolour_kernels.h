/// The loops over pixels that apply a table sampled from Little CMS.
///
/// All paths give the same bytes on every processor.
#pragma once

#include "ccolour.h"

#include <stdbool.h>

#pragma clang assume_nonnull begin

enum {
    /// Nodes along each axis, as in Little CMS's own tables.
    CCOLOUR_INK_NODES = 17,
    CCOLOUR_RGB_NODES = 33,
    /// Bytes of a node: for red, green, blue and an unused channel, the signed values of the node
    /// and of its neighbour.
    CCOLOUR_NODE = 8,
    /// Nodes of the two grids. The first axis of inks has one less.
    CCOLOUR_ALL_INK_NODES = 16 * 17 * 17 * 17,
    CCOLOUR_ALL_RGB_NODES = 33 * 33 * 33,
    /// The light of white. Colours outside of sRGB have up to four times as much, or negative
    /// light.
    CCOLOUR_LIGHT = 8192,
};

/// A grid of nodes, stored along the last axis.
///
/// Inks are interpolated linearly along the first axis, and in tetrahedra along the others, as
/// Little CMS does. So a node holds its value and the value of the next one along the first axis.
/// RGB has three axes, and a node holds its value twice.
typedef int8_t ccolour_node[CCOLOUR_NODE];

/// Tables for profiles that are a matrix and curves: the light of a colour is the sum of three, one
/// for each sample.
typedef struct {
    /// For each value of red, green and blue: its light in sRGB's red, green and blue, and a 0.
    int16_t light[3][256][4];
    /// The sRGB sample for each light.
    uint8_t encoded[CCOLOUR_LIGHT + 1];
} ccolour_sums;

/// Converts pixels of four inks to RGB.
void ccolour_convert_inks(
    const ccolour_node *nodes, ccolour_path path, const uint8_t *from, uint8_t *to, size_t count);

/// Converts pixels of 3 or 4 channels; the fourth is kept.
void ccolour_convert_rgb(
    const ccolour_node *nodes, ccolour_path path, int channels, const uint8_t *from, uint8_t *to,
    size_t count);

void ccolour_convert_sums(
    const ccolour_sums *sums, int channels, const uint8_t *from, uint8_t *to, size_t count);

/// Replaces samples by values of a table. The last of 2 or 4 channels is kept.
void ccolour_convert_grey(
    const uint8_t table[_Nonnull 256], ccolour_path path, int channels, const uint8_t *from,
    uint8_t *to, size_t count);

#pragma clang assume_nonnull end
