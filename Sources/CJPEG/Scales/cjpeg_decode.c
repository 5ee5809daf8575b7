#include "cjpeg_pixels.h"
#include "cjpeg_scales.h"

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
    // If a progressive file ends before its finest coefficients, they are estimated from
    // neighbours, as viewers do. A complete file is not changed.
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
