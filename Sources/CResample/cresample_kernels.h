/// The loops over samples, in variants for what the processor has, which all give the same bytes.
///
/// "Fixed" samples are those of 8 bits times 64, as int16: room for what the filter overshoots by, in
/// both directions. Rows of them come in pairs, in turn a sample of the upper and one of the lower,
/// since processors multiply and add int16 by pairs.
#ifndef CRESAMPLE_KERNELS_H
#define CRESAMPLE_KERNELS_H

#include "cresample_plan.h"

enum {
    /// Bits behind the point of a fixed sample.
    CRESAMPLE_FRACTION = 6,
    /// Bits behind the point of an integer weight.
    CRESAMPLE_WEIGHT = 14,
    /// Vectors end at multiples of so many samples; rows have room for them.
    CRESAMPLE_STEP = 32,
    /// Integer weights of a target's pixel end at multiples of so many.
    CRESAMPLE_TAPS = 8,
};

/// The weights of all columns of the target.
typedef struct {
    uint32_t count;
    /// From a pixel's weights to the next one's.
    uint32_t stride;
    /// Blocks from the row's first, and as many as have a weight.
    cresample_window *windows;
    /// One of them; those from `taps` to `stride` are zero.
    int16_t *integers;
    float *floats;
} cresample_columns;

typedef struct {
    /// Adds a row of samples to sums of columns, or begins them.
    void (*add)(uint16_t *sums, const uint8_t *row, size_t samples, bool begins);
    /// Sums of columns → fixed samples of blocks: of `ratio` columns each, the last of `last`, all of
    /// `rows` rows.
    void (*fold)(
        int16_t *fixed, uint32_t *scratch, const uint16_t *sums, uint32_t blocks, int channels,
        uint32_t ratio, uint32_t last, uint32_t rows);
    void (*pair)(int16_t *pairs, const int16_t *upper, const int16_t *lower, size_t samples);
    /// Samples of 8 bits → a pair of fixed ones.
    void (*pair_bytes)(
        int16_t *pairs, const uint8_t *upper, const uint8_t *lower, size_t samples);
    /// Weighs pairs of rows. `weights` has two for each; samples are a multiple of the step.
    void (*add_pairs)(
        int16_t *fixed, const int16_t *const *pairs, const int16_t *weights, size_t count,
        size_t samples);
    /// Fixed samples → the target's row, of 1 or 3 channels.
    void (*weigh_columns)(
        uint8_t *row, const int16_t *fixed, const cresample_columns *columns, int channels);
    /// Weighs rows. Samples are a multiple of the step.
    void (*add_rows)(
        float *sums, const float *const *rows, const float *weights, size_t count, size_t samples);
    /// Samples of blocks → samples of the target, of 1 to 4 channels, with room for 3 more behind.
    void (*weigh_float_columns)(
        float *row, const float *samples, const cresample_columns *columns, int channels);
} cresample_kernels;

const cresample_kernels *cresample_kernels_of(cresample_path path);

#endif
