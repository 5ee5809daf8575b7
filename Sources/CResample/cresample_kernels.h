/// The loops over samples, in variants by processor, which all give the same bytes.
///
/// "Fixed" samples are 8-bit samples times 64, as int16, with room for overshoot in both
/// directions. Rows of them are paired, upper and lower samples alternating, since processors
/// multiply and add int16 by pairs.
#pragma once

#include "cresample_plan.h"

enum {
    /// Fractional bits of a fixed sample.
    CRESAMPLE_FRACTION = 6,
    /// Fractional bits of an integer weight.
    CRESAMPLE_WEIGHT = 14,
    /// Vectors end at multiples of this many samples; rows have room for them.
    CRESAMPLE_STEP = 32,
    /// A target pixel's integer weights end at multiples of this.
    CRESAMPLE_TAPS = 8,
};

/// The weights of all columns of the target.
typedef struct {
    uint32_t count;
    /// Distance from a pixel's weights to the next pixel's.
    uint32_t stride;
    /// Blocks counted from the row's first, only blocks with a weight.
    cresample_window *windows;
    /// Either kind; weights from `taps` to `stride` are zero.
    int16_t *integers;
    float *floats;
} cresample_columns;

typedef struct {
    /// Adds a row of samples to sums of columns, or starts them.
    void (*add)(uint16_t *sums, const uint8_t *row, size_t samples, bool begins);
    /// Converts sums of columns to fixed samples of blocks. Blocks have `ratio` columns, the last
    /// has `last`; all have `rows` rows.
    void (*fold)(
        int16_t *fixed, uint32_t *scratch, const uint16_t *sums, uint32_t blocks, int channels,
        uint32_t ratio, uint32_t last, uint32_t rows);
    void (*pair)(int16_t *pairs, const int16_t *upper, const int16_t *lower, size_t samples);
    /// Converts 8-bit samples to a pair of fixed rows.
    void (*pair_bytes)(int16_t *pairs, const uint8_t *upper, const uint8_t *lower, size_t samples);
    /// Weighs pairs of rows. `weights` has two for each; samples are a multiple of the step.
    void (*add_pairs)(
        int16_t *fixed, const int16_t *const *pairs, const int16_t *weights, size_t count,
        size_t samples);
    /// Converts fixed samples to the target's row, of 1 or 3 channels.
    void (*weigh_columns)(
        uint8_t *row, const int16_t *fixed, const cresample_columns *columns, int channels);
    /// Weighs rows. Samples are a multiple of the step.
    void (*add_rows)(
        float *sums, const float *const *rows, const float *weights, size_t count, size_t samples);
    /// Converts samples of blocks to samples of the target, of 1 to 4 channels, with room for 3
    /// more.
    void (*weigh_float_columns)(
        float *row, const float *samples, const cresample_columns *columns, int channels);
} cresample_kernels;

const cresample_kernels *cresample_kernels_of(cresample_path path);
