/// The source of each target pixel along one axis; and memory in one piece.
#pragma once

#include "cresample.h"

/// One axis. A block is the unit of averaging: `ratio` pixels, counted from the picture's first;
/// the last may have fewer.
typedef struct {
    uint32_t pixels;
    uint32_t target;
    double start;
    /// Source pixels for one target pixel.
    double scale;
    /// 1 without averaging.
    uint32_t ratio;
    /// The filter's reach from its centre, in source pixels.
    double reach;
    /// The blocks that contribute to any target pixel.
    uint32_t first_block;
    uint32_t blocks;
    /// The most blocks that contribute to one target pixel.
    uint32_t most_taps;
} cresample_axis;

cresample_axis cresample_axis_of(
    uint32_t pixels, double start, double length, uint32_t target, cresample_filter filter);

/// Pixels of a block: `ratio`, except for the last.
uint32_t cresample_block_pixels(const cresample_axis *axis, uint32_t block);

/// The blocks that contribute to one target pixel.
typedef struct {
    uint32_t first_block;
    uint32_t taps;
} cresample_window;

/// Writes the weights of the target's pixel at `index`: their sum is 1, and the first and the last
/// are not 0.
///
/// - `weights`: room for `most_taps`.
cresample_window cresample_weigh(const cresample_axis *axis, uint32_t index, double *weights);

/// Rounds weights to integers with a sum of 1 << 14. Rounding errors carry over to the next weight,
/// so no partial sum is off by more than a half.
void cresample_round(const double *weights, uint32_t taps, int16_t *rounded);

/// Cuts one piece of memory into parts at multiples of 64 bytes. Without memory it only counts.
typedef struct {
    uint8_t *memory;
    /// `SIZE_MAX` on overflow.
    size_t bytes;
} cresample_arena;

void *cresample_take(cresample_arena *arena, size_t count, size_t size);
