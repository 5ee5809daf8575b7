#include "cjpeg_pixels.h"

#include <stdlib.h>

#include "cjpeg_several.h"

/// Four samples a pixel to three. Adobe's files hold 255 for "no ink", all others 0. The simple
/// formula without a profile: red = (1 − cyan)(1 − black), and so on.
static void convert_cmyk_row(const uint8_t *cmyk, uint8_t *rgb, size_t width, bool is_inverted) {
    unsigned flip = is_inverted ? 0 : 255;
    for (size_t x = 0; x < width; x++, cmyk += 4, rgb += 3) {
        unsigned black = cmyk[3] ^ flip;
        for (int channel = 0; channel < 3; channel++) {
            rgb[channel] = (uint8_t)(((cmyk[channel] ^ flip) * black + 127) / 255);
        }
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
        cjpeg_fail(s, CJPEG_LIMIT, "more pixels than can be addressed");
    }
    pixels->bytes = malloc(pixels->total);
    if (pixels->bytes == NULL) cjpeg_fail(s, CJPEG_OUT_OF_MEMORY, "no memory for the pixels");
    if (!pixels->is_cmyk) return;
    pixels->inks = malloc((size_t)cinfo->output_width * 4);
    if (pixels->inks == NULL) cjpeg_fail(s, CJPEG_OUT_OF_MEMORY, "no memory for a row");
}

void cjpeg_read_row(j_decompress_ptr cinfo, cjpeg_pixels *pixels) {
    uint8_t *target =
        pixels->bytes + (size_t)cinfo->output_scanline * pixels->row_bytes + pixels->spare_bytes;
    JSAMPROW rows[1] = {pixels->is_cmyk ? pixels->inks : target};
    // None comes where the library only read ahead.
    if (jpeg_read_scanlines(cinfo, rows, 1) == 1 && pixels->is_cmyk) {
        convert_cmyk_row(pixels->inks, target, cinfo->output_width, cinfo->saw_Adobe_marker == TRUE);
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

// MARK: - One scale

static cjpeg_status run_decode(
    cjpeg_session *s, size_t spare_bytes, unsigned denominator, cjpeg_pixels *pixels, cjpeg_result *result) {
    uint64_t begin = cjpeg_now();
    if (setjmp(s->jump)) return s->status;
    cjpeg_open_source(s);
    if (cjpeg_decode_baseline(s, spare_bytes, &denominator, 1, result)) {
        result->decode_nanoseconds = cjpeg_now() - begin;
        return CJPEG_OK;
    }
    j_decompress_ptr cinfo = &s->decompress;
    // Where the scans of a progressive file end before its finest coefficients, those are guessed
    // from their neighbours, as viewers do; a complete file is not touched.
    cinfo->do_block_smoothing = TRUE;
    cjpeg_choose_colours(cinfo, denominator, pixels);
    s->pixels_a_step = cinfo->image_width;
    jpeg_start_decompress(cinfo);
    if (jpeg_has_multiple_scans(cinfo)) cjpeg_require_all_components(s);
    cjpeg_begin_pixels(s, cinfo, spare_bytes, pixels);
    while (cinfo->output_scanline < cinfo->output_height) cjpeg_read_row(cinfo, pixels);
    jpeg_finish_decompress(cinfo);
    cjpeg_note_source(s, result);
    cjpeg_take_pixels(cinfo, pixels, result);
    result->decode_nanoseconds = cjpeg_now() - begin;
    return CJPEG_OK;
}

cjpeg_status cjpeg_decode(
    const uint8_t *source, size_t length, const cjpeg_limits *limits, size_t spare_bytes,
    cjpeg_result *result, char *message) {
    return cjpeg_decode_scaled(source, length, limits, spare_bytes, 1, result, message);
}

cjpeg_status cjpeg_decode_scaled(
    const uint8_t *source, size_t length, const cjpeg_limits *limits, size_t spare_bytes,
    unsigned denominator, cjpeg_result *result, char *message) {
    cjpeg_session s;
    cjpeg_pixels pixels = {0};
    cjpeg_begin(&s, source, length, limits, result, message);
    cjpeg_status status = run_decode(&s, spare_bytes, denominator, &pixels, result);
    cjpeg_free_pixels(&pixels);
    cjpeg_end(&s);
    return status;
}
