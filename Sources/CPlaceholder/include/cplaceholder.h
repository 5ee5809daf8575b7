/// What is shown of a picture before it is loaded: its ThumbHash (Evan Wallace, 2023; the format and the
/// reference implementations are at <https://evanw.github.io/thumbhash/>) and its dominant colour, both of the picture
/// in small.
///
/// No function keeps state; all may run on several threads at once. Nothing is fused or reordered, so that every
/// processor gives the same bytes.
#ifndef CPLACEHOLDER_H
#define CPLACEHOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/// Rows from the top, as a PNG without interlacing has them: samples packed from the high bits, those of 16 bits
/// big-endian.
typedef struct {
    /// The first sample of the first row.
    const uint8_t *pixels;
    /// From a row to the next, in bytes.
    size_t stride;
    /// In pixels, 1 or more, as the height.
    uint32_t width;
    uint32_t height;
    /// PNG's: 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGB and alpha. Alpha is straight.
    int color_type;
    /// 1, 2, 4, 8 or 16.
    int bit_depth;
    /// Of indices, 256 entries: 0xRRGGBBAA; NULL for other colour types.
    const uint32_t *_Nullable palette;
    /// The samples of grey or RGB that are transparent; NULL where none are.
    const uint16_t *_Nullable key;
} cplaceholder_rows;

/// Samples of 8 bits, a plane after the other: of one grey, of three red, green and blue. Rows have no gaps.
typedef struct {
    const uint8_t *samples;
    /// 1 or 3.
    int count;
    /// In pixels, 1 or more, as the height.
    uint32_t width;
    uint32_t height;
    /// Of the last column and the last row so much belongs to the picture, more than 0 up to 1: what was reduced
    /// before may not divide evenly.
    double last_column;
    double last_row;
} cplaceholder_planes;

/// The most bytes of a ThumbHash, and the fewest.
#define CPLACEHOLDER_MOST_HASH 25
#define CPLACEHOLDER_LEAST_HASH 5

typedef struct {
    uint8_t hash[CPLACEHOLDER_MOST_HASH];
    uint8_t hash_length;
    /// Not where all of the picture is transparent.
    bool has_colour;
    /// Red, green, blue.
    uint8_t colour[3];
} cplaceholder;

/// Reduces a picture, turns it as EXIF's orientation says (1 to 8), and makes its placeholder.
///
/// A picture of at most 48 pixels a side is taken as it is; of a larger one the longer side is reduced to 32, by means
/// over the area of each pixel, in the samples' own encoding of light, with colours weighted by their alpha. The
/// highest of ThumbHash's cosines has three periods, of which means over a 32nd of the side leave 98.6 %.
void cplaceholder_make(const cplaceholder_rows *rows, int orientation, cplaceholder *result);

/// The same of planes.
void cplaceholder_make_of_planes(const cplaceholder_planes *planes, int orientation, cplaceholder *result);

/// Writes the ThumbHash of a picture of any size up to 100 pixels a side, where the reference ends, and returns
/// its length in bytes.
///
/// - `rgba`: rows from the top without gaps, straight alpha.
///
/// As the reference has it but for one thing: cosines so weak that they are rounding noise are 0. The
/// reference stretches that noise to the whole range and writes its scale as 0, so it does not show.
size_t cplaceholder_thumbhash(
    const uint8_t *rgba, uint32_t width, uint32_t height,
    uint8_t hash[_Nonnull CPLACEHOLDER_MOST_HASH]);

/// Writes the dominant colour of a picture of at most 100 pixels a side: of all cubes of the RGB space with sides of 32
/// levels that begin at multiples of 16, the one with most of the picture in it, each pixel counted by the sixteenths of
/// its alpha, and the mean of what is in it, by alpha. Of several that have as much the first one from black. Of a side
/// of more than 24 pixels every second one is looked at.
///
/// - Returns: false where all of the picture is transparent.
bool cplaceholder_colour(
    const uint8_t *rgba, uint32_t width, uint32_t height, uint8_t colour[_Nonnull 3]);

#pragma clang assume_nonnull end

#endif
