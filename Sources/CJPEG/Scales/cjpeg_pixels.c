#include "cjpeg_pixels.h"

#include <stdlib.h>

/// Converts CMYK to RGB without a profile: red = (1 − cyan)(1 − black), and so on.
static void convert_without_profile(const uint8_t *inks, uint8_t *rgb, size_t width) {
    for (size_t x = 0; x < width; x++, inks += 4, rgb += 3) {
        for (int channel = 0; channel < 3; channel++) {
            rgb[channel] = (uint8_t)((inks[channel] * inks[3] + 127) / 255);
        }
    }
}

/// Adobe's files store 255 for "no ink", all others 0.
static void convert_inks(const cjpeg_pixels *pixels, uint8_t *rgb, size_t width, bool is_inverted) {
    for (size_t index = 0; !is_inverted && index < 4 * width; index++) pixels->inks[index] ^= 255;
    if (pixels->conversion.convert == NULL) {
        convert_without_profile(pixels->inks, rgb, width);
    } else {
        pixels->conversion.convert(pixels->conversion.context, pixels->inks, rgb, width);
    }
}

void cjpeg_choose_colours(j_decompress_ptr cinfo, unsigned denominator, cjpeg_pixels *pixels) {
    pixels->channels = 3;
    switch (cinfo->jpeg_color_space) {
    case JCS_GRAYSCALE:
        cinfo->out_color_space = JCS_GRAYSCALE;
        pixels->channels = 1;
        break;
    case JCS_CMYK:
    case JCS_YCCK:
        cinfo->out_color_space = JCS_CMYK;
        pixels->is_cmyk = true;
        break;
    default:
        cinfo->out_color_space = JCS_RGB;
    }
    cinfo->scale_num = 1;
    cinfo->scale_denom = denominator;
    jpeg_calc_output_dimensions(cinfo);
}

void cjpeg_begin_pixels(cjpeg_session *s, j_decompress_ptr cinfo, size_t spare_bytes, cjpeg_pixels *pixels) {
    pixels->spare_bytes = spare_bytes;
    pixels->row_bytes = (size_t)cinfo->output_width * (size_t)pixels->channels + spare_bytes;
    if (__builtin_mul_overflow(pixels->row_bytes, (size_t)cinfo->output_height, &pixels->total)) {
        cjpeg_fail(s, CCODEC_LIMIT, "more pixels than can be addressed");
    }
    pixels->bytes = malloc(pixels->total);
    if (pixels->bytes == NULL) cjpeg_fail(s, CCODEC_OUT_OF_MEMORY, "no memory for the pixels");
    if (!pixels->is_cmyk) return;
    pixels->conversion = s->limits->inks;
    pixels->inks = malloc((size_t)cinfo->output_width * 4);
    if (pixels->inks == NULL) cjpeg_fail(s, CCODEC_OUT_OF_MEMORY, "no memory for a row");
}

void cjpeg_read_row(j_decompress_ptr cinfo, cjpeg_pixels *pixels) {
    uint8_t *target =
        pixels->bytes + (size_t)cinfo->output_scanline * pixels->row_bytes + pixels->spare_bytes;
    JSAMPROW rows[1] = {pixels->is_cmyk ? pixels->inks : target};
    // The library returns no row while it only reads ahead.
    if (jpeg_read_scanlines(cinfo, rows, 1) == 1 && pixels->is_cmyk) {
        convert_inks(pixels, target, cinfo->output_width, cinfo->saw_Adobe_marker == TRUE);
    }
}

void cjpeg_take_pixels(j_decompress_ptr cinfo, cjpeg_pixels *pixels, cjpeg_result *result) {
    result->width = cinfo->output_width;
    result->height = cinfo->output_height;
    result->channels = pixels->channels;
    result->was_cmyk = pixels->is_cmyk;
    result->bytes = pixels->bytes;
    result->length = pixels->total;
    pixels->bytes = NULL;
}

void cjpeg_free_pixels(cjpeg_pixels *pixels) {
    free(pixels->bytes);
    free(pixels->inks);
}
