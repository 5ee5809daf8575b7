#ifndef CJPEG_PIXELS_H
#define CJPEG_PIXELS_H

#include "cjpeg_session.h"

/// Pixels being decoded, grey or RGB.
typedef struct {
    uint8_t *bytes;
    size_t total;
    size_t row_bytes;
    /// Before each row.
    size_t spare_bytes;
    int channels;
    bool is_cmyk;
    /// One CMYK row; NULL for other colour spaces.
    uint8_t *inks;
    cjpeg_inks conversion;
} cjpeg_pixels;

/// Requests grey or RGB at a fraction of the size; the header has been read.
void cjpeg_choose_colours(j_decompress_ptr cinfo, unsigned denominator, cjpeg_pixels *pixels);

/// Allocates the pixels of a started decompressor.
void cjpeg_begin_pixels(cjpeg_session *s, j_decompress_ptr cinfo, size_t spare_bytes, cjpeg_pixels *pixels);

/// Reads the next row.
void cjpeg_read_row(j_decompress_ptr cinfo, cjpeg_pixels *pixels);

/// Hands the pixels to the result.
void cjpeg_take_pixels(j_decompress_ptr cinfo, cjpeg_pixels *pixels, cjpeg_result *result);

void cjpeg_free_pixels(cjpeg_pixels *pixels);

#endif
