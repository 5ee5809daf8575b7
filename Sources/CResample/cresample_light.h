/// A source's samples → the amounts that are averaged, and back: multiplied by their alpha, and decoded
/// to light where that is asked for.
#ifndef CRESAMPLE_LIGHT_H
#define CRESAMPLE_LIGHT_H

#include "cresample_plan.h"

typedef struct {
    int channels;
    int bit_depth;
    /// By sample: the light that sRGB encodes so, 0 to 1 << 24; NULL where samples are taken as they
    /// are.
    uint32_t *light;
    /// The least sample of every 1 / 4096 of light, and the largest sample behind them.
    uint16_t *first_samples;
} cresample_encoding;

/// Takes the memory of the tables; they are yet to be filled.
cresample_encoding cresample_encoding_of(
    const cresample_source *source, bool is_linear, cresample_arena *arena);

void cresample_fill_tables(cresample_encoding *encoding);

/// Adds the amounts of a row's pixels, from the first that it points to, to those of its blocks. Sums of
/// 256 × 256 pixels have at most 56 bits.
void cresample_add_amounts(
    const cresample_encoding *encoding, uint64_t *sums, const uint8_t *row, uint32_t blocks,
    uint32_t ratio, uint32_t last);

/// Amounts → samples, rounded; colours of transparent pixels are zero. What is beyond the range is cut.
void cresample_encode(
    const cresample_encoding *encoding, uint8_t *row, const float *amounts, uint32_t pixels);

#endif
