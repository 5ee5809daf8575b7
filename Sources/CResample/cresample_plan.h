/// Where each pixel of a target comes from, along one axis; and memory in one piece.
#ifndef CRESAMPLE_PLAN_H
#define CRESAMPLE_PLAN_H

#include "cresample.h"

/// One axis. A block is what is averaged: `ratio` pixels, counted from the picture's first; the last
/// may have fewer.
typedef struct {
    uint32_t pixels;
    uint32_t target;
    double start;
    /// Pixels of the source for one of the target.
    double scale;
    /// 1 where nothing is averaged.
    uint32_t ratio;
    /// The filter's reach from its centre, in pixels of the source.
    double reach;
    /// The blocks that any of the target's pixels looks at.
    uint32_t first_block;
    uint32_t blocks;
    /// The most that one of them looks at.
    uint32_t most_taps;
} cresample_axis;

cresample_axis cresample_axis_of(
    uint32_t pixels, double start, double length, uint32_t target, cresample_filter filter);

/// Pixels of a block: `ratio`, but for the last.
uint32_t cresample_block_pixels(const cresample_axis *axis, uint32_t block);

/// What one pixel of the target looks at.
typedef struct {
    uint32_t first_block;
    uint32_t taps;
} cresample_window;

/// Writes the weights of the target's pixel at `index`: their sum is 1, and the first and the last
/// are not 0.
///
/// - `weights`: room for `most_taps`.
cresample_window cresample_weigh(const cresample_axis *axis, uint32_t index, double *weights);

/// Weights as integers whose sum is 1 << 14. What rounding takes from one it gives to the next, so that
/// the first so many are never further than a half from their true sum.
void cresample_round(const double *weights, uint32_t taps, int16_t *rounded);

/// Cuts one piece of memory into parts that begin at multiples of 64 bytes. Without memory it counts.
typedef struct {
    uint8_t *memory;
    /// `SIZE_MAX` where it overflows.
    size_t bytes;
} cresample_arena;

void *cresample_take(cresample_arena *arena, size_t count, size_t size);

#endif
