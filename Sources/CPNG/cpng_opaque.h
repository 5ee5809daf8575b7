// Pixels without transparency.
#ifndef CPNG_OPAQUE_H
#define CPNG_OPAQUE_H

#include "cpng.h"

/// Converts the image like `cpng_make_opaque`, in its own memory unless pixels grow. The rows are
/// invalid unless it returns `CCODEC_OK`.
ccodec_status cpng_become_opaque(
    cpng_image *image, const cpng_colours *colours, const uint8_t background[3]);

/// Blends and packs 8-bit pixels of 2 or 4 channels, the last being alpha. The output may be the
/// same row.
void cpng_blend_row(
    const uint8_t *row, size_t width, int channels, const uint8_t *background, uint8_t *output);

#endif
