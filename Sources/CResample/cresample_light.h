/// Converts samples to the amounts that are averaged, and back: multiplied by alpha, and decoded to
/// light on request.
#pragma once

#include "cresample_plan.h"

typedef struct {
    int channels;
    int bit_depth;
    /// Indexed by sample: its light in sRGB, 0 to 1 << 24; NULL to use samples as they are.
    uint32_t *light;
    /// The least sample of every 1/4096 of light, and the largest sample after them.
    uint16_t *first_samples;
} cresample_encoding;

/// Reserves the tables' memory, without filling it.
cresample_encoding cresample_encoding_of(
    const cresample_source *source, bool is_linear, cresample_arena *arena);

void cresample_fill_tables(cresample_encoding *encoding);

/// Adds the amounts of a row's pixels to their blocks. Sums of 256 × 256 pixels have at most 56
/// bits.
void cresample_add_amounts(
    const cresample_encoding *encoding, uint64_t *sums, const uint8_t *row, uint32_t blocks,
    uint32_t ratio, uint32_t last);

/// Converts amounts to rounded samples; colours of transparent pixels are zero. Values out of range
/// are clamped.
void cresample_encode(
    const cresample_encoding *encoding, uint8_t *row, const float *amounts, uint32_t pixels);
