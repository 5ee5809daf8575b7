#include "cjpeg_session.h"

static ccodec_status run_encode(
    cjpeg_session *s, const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height,
    int channels, int quality, bool halves_chroma, const uint8_t *segments, size_t segments_length,
    cjpeg_result *result) {
    uint64_t begin = cinterruption_processor_time();
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
    // The library's default is one chroma sample for two by two pixels.
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
    result->encode_nanoseconds = cinterruption_processor_time() - begin;
    return CCODEC_OK;
}

ccodec_status cjpeg_encode(
    const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height, int channels,
    int quality, bool halves_chroma, const uint8_t *segments, size_t segments_length, size_t maximum_output,
    cinterruption *interruption, cjpeg_result *result, char *message) {
    cjpeg_session s;
    cjpeg_begin(&s, NULL, 0, NULL, result, message);
    s.maximum_output = maximum_output;
    s.interruption = interruption;
    ccodec_status status = run_encode(
        &s, pixels, stride, width, height, channels, quality, halves_chroma, segments, segments_length,
        result);
    cjpeg_end(&s);
    return status;
}

// MARK: - Version

// A bare number with two dots, which C cannot parse as a value.
#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)

const char *cjpeg_library_version(void) { return TEXT(LIBJPEG_TURBO_VERSION); }
