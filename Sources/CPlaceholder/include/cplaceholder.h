/// Placeholders: the ThumbHash of a picture and its dominant colour, both from a small version.
/// ThumbHash is by Evan Wallace (2023); the format and reference implementations are at
/// <https://evanw.github.io/thumbhash/>.
///
/// No function keeps state; all may run on several threads at once. Operations are neither fused
/// nor reordered, so every processor gives the same bytes.
#ifndef CPLACEHOLDER_H
#define CPLACEHOLDER_H

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
    /// The samples of transparent grey or RGB pixels; NULL if there are none.
    const uint16_t *_Nullable key;
} cplaceholder_rows;

/// 8-bit samples, plane after plane: grey, or red, green and blue. Rows have no gaps.
typedef struct {
    const uint8_t *samples;
    /// 1 or 3.
    int count;
    /// In pixels, 1 or more, like the height.
    uint32_t width;
    uint32_t height;
    /// The part of the last column and of the last row that belongs to the picture, above 0, up to
    /// 1. An earlier reduction may not divide evenly.
    double last_column;
    double last_row;
} cplaceholder_planes;

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

/// Makes the placeholder of planes in the same way.
void cplaceholder_make_of_planes(const cplaceholder_planes *planes, int orientation, cplaceholder *result);

/// Writes the ThumbHash of a picture of up to 100 pixels a side, the reference's limit, and returns
/// its length in bytes.
///
/// - `rgba`: rows from the top without gaps, straight alpha.
///
/// It differs from the reference in one detail: cosines as weak as rounding noise are 0. The
/// reference stretches that noise to the whole range and writes its scale as 0, so it is invisible.
size_t cplaceholder_thumbhash(
    const uint8_t *rgba, uint32_t width, uint32_t height,
    uint8_t hash[_Nonnull CPLACEHOLDER_MOST_HASH]);

/// Writes the dominant colour of a picture of at most 100 pixels a side. It is the mean, by alpha,
/// of the pixels in the heaviest cube of RGB space. Cubes have sides of 32 levels and begin at
/// multiples of 16; pixels weigh the sixteenths of their alpha. On a tie the cube nearest to black
/// wins, by red, green, blue. Of a side with more than 24 pixels every second one is read.
///
/// - Returns: false if the whole picture is transparent.
bool cplaceholder_colour(
    const uint8_t *rgba, uint32_t width, uint32_t height, uint8_t colour[_Nonnull 3]);

#pragma clang assume_nonnull end

#endif
