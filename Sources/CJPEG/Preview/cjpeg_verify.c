#include "cjpeg_preview.h"

#include <stdlib.h>

void cjpeg_drain_single_scan(cjpeg_session *s) {
    j_decompress_ptr cinfo = &s->decompress;
    bool is_noted = cjpeg_wants_preview(s), is_grey = cinfo->jpeg_color_space == JCS_GRAYSCALE;
    cinfo->scale_num = is_noted ? cjpeg_preview_eighths(s) : 1;
    cinfo->scale_denom = 8;
    cinfo->out_color_space = is_noted && !is_grey ? JCS_RGB : cinfo->jpeg_color_space;
    cinfo->do_fancy_upsampling = FALSE;
    jpeg_start_decompress(cinfo);
    if (is_noted) {
        cjpeg_begin_preview(s, cinfo->output_width, cinfo->output_height, is_grey ? 1 : 3);
    }
    s->row = malloc((size_t)cinfo->output_width * (size_t)cinfo->output_components);
    if (s->row == NULL) cjpeg_fail(s, CCODEC_OUT_OF_MEMORY, "no memory for a row");
    JSAMPROW rows[1] = {s->row};
    while (cinfo->output_scanline < cinfo->output_height) {
        uint32_t y = cinfo->output_scanline;
        jpeg_read_scanlines(cinfo, rows, 1);
        if (is_noted) cjpeg_put_preview_row(s, y, s->row);
    }
    jpeg_finish_decompress(cinfo);
    if (is_noted) s->limits->preview->is_complete = true;
}

static ccodec_status run_verify(cjpeg_session *s, cjpeg_result *result) {
    uint64_t begin = cinterruption_processor_time();
    if (setjmp(s->jump)) return s->status;
    cjpeg_open_source(s);
    if (jpeg_has_multiple_scans(&s->decompress)) {
        jvirt_barray_ptr *coefficients = jpeg_read_coefficients(&s->decompress);
        cjpeg_require_all_components(s);
        if (cjpeg_wants_preview(s)) cjpeg_note_coefficients(s, coefficients);
    } else {
        cjpeg_drain_single_scan(s);
    }
    cjpeg_note_source(s, result);
    result->decode_nanoseconds = cinterruption_processor_time() - begin;
    return CCODEC_OK;
}

ccodec_status cjpeg_verify(
    const uint8_t *source, size_t length, const cjpeg_limits *limits, cjpeg_result *result,
    char *message) {
    cjpeg_session s;
    cjpeg_begin(&s, source, length, limits, result, message);
    ccodec_status status = run_verify(&s, result);
    cjpeg_end(&s);
    return status;
}
