#ifndef CGIF_PALETTE_H
#define CGIF_PALETTE_H

#include <gif_lib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cgif.h"

/// Moves each colour of a palette to the mean of the pixels that are nearest to it, three times
/// (Lloyd's algorithm, over cells of 8 × 8 × 8 colours), and gives every pixel the nearest colour.
///
/// - `red`, `green`, `blue`: `count` samples each.
/// - `colors`: 1 to 256 colours.
/// - `to`: `count` indices.
ccodec_status cgif_refine(
    const uint8_t *red, const uint8_t *green, const uint8_t *blue, size_t count,
    GifColorType *colors, int colors_count, uint8_t *to, cinterruption *interruption);

#endif
