/// Placeholders: the ThumbHash of a picture and its dominant colour, both from a small version.
/// ThumbHash is by Evan Wallace (2023); the format and reference implementations are at
/// <https://evanw.github.io/thumbhash/>.
///
/// The functions keep no state and are thread-safe. Operations are neither fused
/// nor reordered, so every processor gives the same bytes.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/// Rows from the top, as in a PNG without interlacing: samples packed from the high bits, 16-bit
/// ones big-endian.
typedef struct {
    /// The first sample of the first row.
    const uint8_t *pixels;
    /// Distance between rows, in bytes.
    size_t stride;
    /// In pixels, 1 or more, like the height.
    uint32_t width;
    uint32_t height;
    /// PNG's: 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGB and alpha. Alpha is straight.
    int color_type;
    /// 1, 2, 4, 8 or 16.
    int bit_depth;
    /// Colours of indices, 256 entries of 0xRRGGBBAA; NULL for other colour types.
    const uint32_t *_Nullable palette;
    /// The samples of transparent grey or RGB pixels; NULL without any.
    const uint16_t *_Nullable key;
    /// Distance of red, green and blue 8-bit samples in planes; 0 for samples side by side.
    size_t plane_bytes;
    /// The part of the last column and of the last row that belongs to the picture, above 0, up to
    /// 1. An earlier reduction may not divide evenly.
    double last_column;
    double last_row;
} cplaceholder_rows;

/// The most bytes of a ThumbHash, and the fewest.
#define CPLACEHOLDER_MOST_HASH 25
#define CPLACEHOLDER_LEAST_HASH 5

typedef struct {
    uint8_t hash[CPLACEHOLDER_MOST_HASH];
    uint8_t hash_length;
    /// False if the whole picture is transparent.
    bool has_colour;
    /// Red, green, blue.
    uint8_t colour[3];
} cplaceholder;

/// Reduces a picture, applies its EXIF orientation (1 to 8), and makes its placeholder.
///
/// A picture of at most 48 pixels a side is used as it is. The longer side of a larger one is
/// reduced to 32, by means over areas, in the samples' own encoding of light. Colours are weighted
/// by alpha. Of 32 or more rows for one result row, about 16 are read. The highest ThumbHash cosine
/// has three periods; means over a 32nd of the side keep 98.6 %.
void cplaceholder_make(const cplaceholder_rows *rows, int orientation, cplaceholder *result);

#pragma clang assume_nonnull end
