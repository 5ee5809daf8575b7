#include "cjpeg_session.h"

#include <stdlib.h>
#include <string.h>

#include <jerror.h>

_Noreturn void cjpeg_fail(cjpeg_session *s, ccodec_status status, const char *text) {
    s->status = status;
    snprintf(s->message, CCODEC_MESSAGE_BYTES, "%s", text);
    longjmp(s->jump, 1);
}

static _Noreturn void fail_with_library_message(j_common_ptr cinfo, ccodec_status status) {
    cjpeg_session *s = cinfo->client_data;
    char text[JMSG_LENGTH_MAX];
    cinfo->err->format_message(cinfo, text);
    cjpeg_fail(s, status, text);
}

static ccodec_status status_of(int error) {
    switch (error) {
    case JERR_OUT_OF_MEMORY:
    case JERR_NO_BACKING_STORE: return CCODEC_OUT_OF_MEMORY;
    case JERR_INPUT_EMPTY:
    case JERR_INPUT_EOF: return CCODEC_TRUNCATED;
    case JERR_IMAGE_TOO_BIG:
    case JERR_WIDTH_OVERFLOW: return CCODEC_LIMIT;
    case JERR_SOF_UNSUPPORTED:
    case JERR_BAD_PRECISION:
    case JERR_ARITH_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_CCIR601_NOTIMPL: return CCODEC_UNSUPPORTED;
    default: return CCODEC_CORRUPT;
    }
}

static _Noreturn void error_exit(j_common_ptr cinfo) {
    const cjpeg_session *s = cinfo->client_data;
    ccodec_status status = status_of(cinfo->err->msg_code);
    if (s->is_encoding && status != CCODEC_OUT_OF_MEMORY) status = CCODEC_FAILED;
    fail_with_library_message(cinfo, status);
}

/// Whether all bytes that the library skipped before a marker are zero. Some cameras pad with
/// zeros; anything else is left over from wrongly decoded data.
static bool skipped_only_zeros(const cjpeg_session *s, int count) {
    size_t position = s->input_length - s->source.bytes_in_buffer;
    if (count < 0 || (size_t)count > position) return false;
    for (size_t index = position - (size_t)count; index < position; index++) {
        if (s->input[index] != 0) return false;
    }
    return true;
}

/// The most foreign bytes: cameras and scanners write fewer. Damaged files of the test data have 21
/// and more.
enum { MOST_FOREIGN_BYTES = 18 };

/// Notes foreign bytes between entropy-coded data and a marker: that of the end, of a restart, of
/// another scan or its tables. If a block is missing there, the library raises another warning.
///
/// More bytes, unless all are zero, are the rest of misread blocks. An arithmetic
/// decoder may have taken them for data: its encoder leaves out zeros at the end.
static bool note_skipped(cjpeg_session *s, int count) {
    if (skipped_only_zeros(s, count)) return true;
    bool is_harmless = !s->decompress.arith_code && count <= MOST_FOREIGN_BYTES;
    s->has_foreign_bytes = s->has_foreign_bytes || is_harmless;
    return is_harmless;
}

/// Whether a warning of the library, in a decoder, says nothing about the picture. All others mean
/// missing or wrong coefficients.
static bool is_harmless(cjpeg_session *s) {
    switch (s->errors.msg_code) {
    // An unknown Adobe colour transform code; the library's guess is the usual one.
    case JWRN_ADOBE_XFORM:
    // Only the JFIF revision number is unusual.
    case JWRN_JFIF_MAJOR:
    // Spectral selection in a sequential scan, where it has no meaning.
    case JWRN_NOT_SEQUENTIAL: return true;
    // Harmless between header segments.
    case JWRN_EXTRANEOUS_DATA:
        return !s->has_seen_scan || note_skipped(s, s->errors.msg_parm.i[0]);
    default: return false;
    }
}

static void emit_message(j_common_ptr cinfo, int level) {
    if (level >= 0) return;
    cjpeg_session *s = cinfo->client_data;
    if (!is_harmless(s)) {
        fail_with_library_message(cinfo, s->is_encoding ? CCODEC_FAILED : CCODEC_CORRUPT);
    }
    cinfo->err->num_warnings++;
    if (s->limits != NULL && cinfo->err->num_warnings > s->limits->maximum_warnings) {
        cjpeg_fail(s, CCODEC_LIMIT, "too many warnings");
    }
}

static void output_message(j_common_ptr cinfo) {}

static void source_nothing(j_decompress_ptr cinfo) {}

static boolean source_fill(j_decompress_ptr cinfo) {
    cjpeg_fail(cinfo->client_data, CCODEC_TRUNCATED, "the data ends before the image does");
}

static void source_skip(j_decompress_ptr cinfo, long count) {
    struct jpeg_source_mgr *source = cinfo->src;
    if (count <= 0) return;
    if ((size_t)count > source->bytes_in_buffer) source_fill(cinfo);
    source->next_input_byte += count;
    source->bytes_in_buffer -= (size_t)count;
}

void cjpeg_note_scan(cjpeg_session *s) {
    j_decompress_ptr cinfo = &s->decompress;
    for (int index = 0; index < cinfo->comps_in_scan; index++) {
        s->components_seen |= 1u << cinfo->cur_comp_info[index]->component_index;
    }
    if (cinfo->input_scan_number > s->limits->maximum_scans) {
        cjpeg_fail(s, CCODEC_LIMIT, "more scans than allowed");
    }
}

/// Called for every row of pixels or of whole blocks, so at least once a scan.
static void progress_monitor(j_common_ptr cinfo) {
    cjpeg_session *s = cinfo->client_data;
    if (cinfo->is_decompressor) cjpeg_note_scan(s);
    cjpeg_check_interruption(s, s->pixels_a_step);
}

static void destination_start(j_compress_ptr cinfo) {
    cjpeg_session *s = cinfo->client_data;
    s->destination.next_output_byte = s->output;
    s->destination.free_in_buffer = s->output_capacity;
}

static void grow_output(cjpeg_session *s, size_t used, size_t capacity) {
    uint8_t *output = realloc(s->output, capacity);
    if (output == NULL) cjpeg_fail(s, CCODEC_OUT_OF_MEMORY, "no memory for the output");
    s->output = output;
    s->output_capacity = capacity;
    s->destination.next_output_byte = output + used;
    s->destination.free_in_buffer = capacity - used;
}

static boolean destination_full(j_compress_ptr cinfo) {
    cjpeg_session *s = cinfo->client_data;
    size_t used = s->output_capacity;
    if (used >= s->maximum_output) cjpeg_fail(s, CCODEC_OK, "");
    grow_output(s, used, used > s->maximum_output / 2 ? s->maximum_output : used * 2);
    return TRUE;
}

static void destination_end(j_compress_ptr cinfo) {}

void cjpeg_begin(
    cjpeg_session *s, const uint8_t *input, size_t length, const cjpeg_limits *limits,
    cjpeg_result *result, char *message) {
    memset(s, 0, sizeof *s);
    memset(result, 0, sizeof *result);
    s->input = input;
    s->input_length = length;
    s->limits = limits;
    if (limits != NULL) s->interruption = limits->interruption;
    s->progress.progress_monitor = progress_monitor;
    s->message = message;
    message[0] = 0;
    jpeg_std_error(&s->errors);
    s->errors.error_exit = error_exit;
    s->errors.emit_message = emit_message;
    s->errors.output_message = output_message;
}

void cjpeg_end(cjpeg_session *s) {
    // Both are no-ops on a zeroed struct.
    jpeg_destroy_decompress(&s->decompress);
    jpeg_destroy_compress(&s->compress);
    free(s->output);
    free(s->row);
    free(s->scan);
    if (s->tables != NULL) s->return_tables(s);
    free(s->symbols);
    if (s->scales != NULL) s->free_scales(s);
}

// The functions below run under a jump target.

void cjpeg_open_header(cjpeg_session *s, j_decompress_ptr cinfo, struct jpeg_source_mgr *source) {
    cinfo->err = &s->errors;
    cinfo->client_data = s;
    jpeg_create_decompress(cinfo);
    if (s->limits->maximum_memory_bytes > 0) {
        cinfo->mem->max_memory_to_use = s->limits->maximum_memory_bytes > INT64_MAX
            ? INT64_MAX : (long)s->limits->maximum_memory_bytes;
    }
    source->next_input_byte = s->input;
    source->bytes_in_buffer = s->input_length;
    source->init_source = source_nothing;
    source->fill_input_buffer = source_fill;
    source->skip_input_data = source_skip;
    source->resync_to_restart = jpeg_resync_to_restart;
    source->term_source = source_nothing;
    cinfo->src = source;
    s->has_seen_scan = false;
    jpeg_read_header(cinfo, TRUE);
    s->has_seen_scan = true;
}

void cjpeg_open_source(cjpeg_session *s) {
    j_decompress_ptr cinfo = &s->decompress;
    cjpeg_open_header(s, cinfo, &s->source);
    cinfo->progress = &s->progress;
    s->pixels_a_step = (uint64_t)cinfo->image_width * DCTSIZE;
    uint64_t pixels = (uint64_t)cinfo->image_width * cinfo->image_height;
    if (pixels > s->limits->maximum_pixels) cjpeg_fail(s, CCODEC_LIMIT, "more pixels than allowed");
    if (cinfo->jpeg_color_space == JCS_UNKNOWN) {
        cjpeg_fail(s, CCODEC_UNSUPPORTED, "unknown colour space");
    }
    for (int index = 0; index < cinfo->num_components; index++) {
        // Refuse anything that the library cannot decode to pixels.
        const jpeg_component_info *component = &cinfo->comp_info[index];
        if (cinfo->max_h_samp_factor % component->h_samp_factor != 0
            || cinfo->max_v_samp_factor % component->v_samp_factor != 0) {
            cjpeg_fail(s, CCODEC_UNSUPPORTED, "fractional sampling factors");
        }
    }
    cjpeg_note_scan(s);
}

void cjpeg_require_all_components(cjpeg_session *s) {
    j_decompress_ptr cinfo = &s->decompress;
    for (int index = 0; index < cinfo->num_components; index++) {
        bool is_missing = (s->components_seen & 1u << index) == 0
            || (cinfo->progressive_mode && cinfo->coef_bits != NULL
                && cinfo->coef_bits[index][0] < 0);
        if (is_missing) cjpeg_fail(s, CCODEC_CORRUPT, "a colour component has no data");
    }
}

void cjpeg_note_source(const cjpeg_session *s, cjpeg_result *result) {
    result->has_foreign_bytes = s->has_foreign_bytes;
    result->source_end = s->input_length - s->source.bytes_in_buffer;
    result->width = s->decompress.image_width;
    result->height = s->decompress.image_height;
}

void cjpeg_open_destination(cjpeg_session *s) {
    j_compress_ptr cinfo = &s->compress;
    s->output_capacity = 65536 < s->maximum_output ? 65536 : s->maximum_output;
    s->output = malloc(s->output_capacity > 0 ? s->output_capacity : 1);
    if (s->output == NULL) cjpeg_fail(s, CCODEC_OUT_OF_MEMORY, "no memory for the output");
    cinfo->err = &s->errors;
    cinfo->client_data = s;
    jpeg_create_compress(cinfo);
    cinfo->progress = &s->progress;
    s->destination.init_destination = destination_start;
    s->destination.empty_output_buffer = destination_full;
    s->destination.term_destination = destination_end;
    cinfo->dest = &s->destination;
}

void cjpeg_write_segments(cjpeg_session *s, const uint8_t *segments, size_t length) {
    size_t offset = 0;
    while (length - offset >= 4) {
        unsigned size = (unsigned)segments[offset + 2] << 8 | segments[offset + 3];
        if (size < 2 || size > length - offset - 2) break;
        jpeg_write_marker(&s->compress, segments[offset + 1], segments + offset + 4, size - 2);
        offset += 2 + size;
    }
}

void cjpeg_reserve_output(cjpeg_session *s, size_t bytes) {
    size_t used = s->output_capacity - s->destination.free_in_buffer;
    if (bytes > s->destination.free_in_buffer) grow_output(s, used, used + bytes);
}

void cjpeg_take_output(cjpeg_session *s, cjpeg_result *result) {
    size_t length = s->output_capacity - s->destination.free_in_buffer;
    if (length >= s->maximum_output) return;
    uint8_t *bytes = realloc(s->output, length);
    result->bytes = bytes != NULL ? bytes : s->output;
    result->length = length;
    s->output = NULL;
}
