#ifndef CJPEG_PIXELS_H
#define CJPEG_PIXELS_H

#include "cjpeg_session.h"

/// Pixels in the making, of grey or RGB.
typedef struct {
    uint8_t *bytes;
    size_t total;
    size_t row_bytes;
    /// In front of each row.
    size_t spare_bytes;
    int channels;
    bool is_cmyk;
    /// A row of inks.
    uint8_t *inks;
} cjpeg_pixels;

/// Asks the decompressor, which has read the header, for grey or RGB at a fraction of the size.
void cjpeg_choose_colours(j_decompress_ptr cinfo, unsigned denominator, cjpeg_pixels *pixels);

/// Makes room for the pixels of a decompressor that has been started.
void cjpeg_begin_pixels(cjpeg_session *s, j_decompress_ptr cinfo, size_t spare_bytes, cjpeg_pixels *pixels);

/// Makes the next row.
void cjpeg_read_row(j_decompress_ptr cinfo, cjpeg_pixels *pixels);

/// Hands the pixels to the result.
void cjpeg_take_pixels(j_decompress_ptr cinfo, cjpeg_pixels *pixels, cjpeg_result *result);

void cjpeg_free_pixels(cjpeg_pixels *pixels);

#endif
