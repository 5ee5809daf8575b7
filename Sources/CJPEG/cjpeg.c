#include "cjpeg_session.h"

#include <stdlib.h>
#include <string.h>

// MARK: - Verification

static cjpeg_status run_verify(cjpeg_session *s, cjpeg_result *result) {
    uint64_t begin = cjpeg_now();
    if (setjmp(s->jump)) return s->status;
    cjpeg_open_source(s);
    cjpeg_read_all(s);
    cjpeg_note_source(s, result);
    result->decode_nanoseconds = cjpeg_now() - begin;
    return CJPEG_OK;
}

cjpeg_status cjpeg_verify(
    const uint8_t *source, size_t length, const cjpeg_limits *limits, cjpeg_result *result,
    char *message) {
    cjpeg_session s;
    cjpeg_begin(&s, source, length, limits, result, message);
    cjpeg_status status = run_verify(&s, result);
    cjpeg_end(&s);
    return status;
}

// MARK: - Pixels

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

static cjpeg_status run_decode(
    cjpeg_session *s, size_t spare_bytes, unsigned denominator, cjpeg_result *result) {
    uint64_t begin = cjpeg_now();
    if (setjmp(s->jump)) return s->status;
    cjpeg_open_source(s);
    j_decompress_ptr cinfo = &s->decompress;
    int channels = 3;
    bool is_cmyk = false;
    switch (cinfo->jpeg_color_space) {
    case JCS_GRAYSCALE:
        cinfo->out_color_space = JCS_GRAYSCALE;
        channels = 1;
        break;
    case JCS_CMYK:
    case JCS_YCCK:
        cinfo->out_color_space = JCS_CMYK;
        is_cmyk = true;
        break;
    default:
        cinfo->out_color_space = JCS_RGB;
    }
    // Where the scans of a progressive file end before its finest coefficients, those are guessed
    // from their neighbours, as viewers do; a complete file is not touched.
    cinfo->do_block_smoothing = TRUE;
    cinfo->scale_num = 1;
    cinfo->scale_denom = denominator;
    jpeg_calc_output_dimensions(cinfo);
    s->pixels_a_step = cinfo->image_width;
    size_t row_bytes = (size_t)cinfo->output_width * (size_t)channels + spare_bytes;
    size_t total;
    if (__builtin_mul_overflow(row_bytes, (size_t)cinfo->output_height, &total)) {
        cjpeg_fail(s, CJPEG_LIMIT, "more pixels than can be addressed");
    }
    jpeg_start_decompress(cinfo);
    if (jpeg_has_multiple_scans(cinfo)) cjpeg_require_all_components(s);
    s->pixels = malloc(total);
    if (s->pixels == NULL) cjpeg_fail(s, CJPEG_OUT_OF_MEMORY, "no memory for the pixels");
    if (is_cmyk) {
        s->row = malloc((size_t)cinfo->output_width * 4);
        if (s->row == NULL) cjpeg_fail(s, CJPEG_OUT_OF_MEMORY, "no memory for a row");
    }
    while (cinfo->output_scanline < cinfo->output_height) {
        uint8_t *target = s->pixels + (size_t)cinfo->output_scanline * row_bytes + spare_bytes;
        JSAMPROW rows[1] = {is_cmyk ? s->row : target};
        jpeg_read_scanlines(cinfo, rows, 1);
        if (is_cmyk) {
            convert_cmyk_row(
                s->row, target, cinfo->output_width, cinfo->saw_Adobe_marker == TRUE);
        }
    }
    jpeg_finish_decompress(cinfo);
    cjpeg_note_source(s, result);
    result->width = cinfo->output_width;
    result->height = cinfo->output_height;
    result->channels = channels;
    result->was_cmyk = is_cmyk;
    result->bytes = s->pixels;
    result->length = total;
    s->pixels = NULL;
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
    cjpeg_begin(&s, source, length, limits, result, message);
    cjpeg_status status = run_decode(&s, spare_bytes, denominator, result);
    cjpeg_end(&s);
    return status;
}

static cjpeg_status run_encode(
    cjpeg_session *s, const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height,
    int channels, int quality, bool halves_chroma, const uint8_t *segments, size_t segments_length,
    cjpeg_result *result) {
    uint64_t begin = cjpeg_now();
    if (setjmp(s->jump)) return s->status;
    s->is_encoding = true;
    cjpeg_open_destination(s);
    s->pixels_a_step = width;
    j_compress_ptr cinfo = &s->compress;
    cinfo->image_width = width;
    cinfo->image_height = height;
    cinfo->input_components = channels;
    cinfo->in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(cinfo);
    jpeg_set_quality(cinfo, quality, TRUE);
    // The library's default is a sample of chroma for two by two pixels.
    if (!halves_chroma) {
        cinfo->comp_info[0].h_samp_factor = 1;
        cinfo->comp_info[0].v_samp_factor = 1;
    }
    cinfo->optimize_coding = TRUE;
    jpeg_start_compress(cinfo, TRUE);
    cjpeg_write_segments(s, segments, segments_length);
    while (cinfo->next_scanline < cinfo->image_height) {
        // The library's pointer type is not const, but it only reads.
        JSAMPROW rows[1] = {(JSAMPROW)(uintptr_t)(pixels + cinfo->next_scanline * stride)};
        jpeg_write_scanlines(cinfo, rows, 1);
    }
    jpeg_finish_compress(cinfo);
    result->width = width;
    result->height = height;
    cjpeg_take_output(s, result);
    result->encode_nanoseconds = cjpeg_now() - begin;
    return CJPEG_OK;
}

cjpeg_status cjpeg_encode(
    const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height, int channels,
    int quality, bool halves_chroma, const uint8_t *segments, size_t segments_length, size_t maximum_output,
    cinterruption *interruption, cjpeg_result *result, char *message) {
    cjpeg_session s;
    cjpeg_begin(&s, NULL, 0, NULL, result, message);
    s.maximum_output = maximum_output;
    s.interruption = interruption;
    cjpeg_status status = run_encode(
        &s, pixels, stride, width, height, channels, quality, halves_chroma, segments, segments_length,
        result);
    cjpeg_end(&s);
    return status;
}

// MARK: - Version

// A bare number with two dots: nothing that C could take for a value.
#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)

const char *cjpeg_library_version(void) { return TEXT(LIBJPEG_TURBO_VERSION); }
