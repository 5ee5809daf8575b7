#include "cjpeg.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

#include <jerror.h>

#include "cjpeg_huffman.h"

/// Everything that changes between `setjmp` and a jump lives here, in the frame of the public
/// function, which is never the one that called `setjmp`; so no value is indeterminate after it.
typedef struct {
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_destination_mgr destination;
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct decompress;
    struct jpeg_compress_struct compress;
    jmp_buf jump;
    cjpeg_status status;
    char *message;
    const cjpeg_limits *limits;
    const uint8_t *input;
    size_t input_length;
    uint8_t *output;
    size_t output_capacity;
    size_t maximum_output;
    bool is_encoding;
    uint64_t encode_begin;
    bool has_seen_scan;
    /// Bit n: component n was in a scan.
    unsigned components_seen;
    uint8_t *pixels;
    uint8_t *row;
} session;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static _Noreturn void fail(session *s, cjpeg_status status, const char *text) {
    s->status = status;
    snprintf(s->message, CJPEG_MESSAGE_BYTES, "%s", text);
    longjmp(s->jump, 1);
}

static _Noreturn void fail_with_library_message(j_common_ptr cinfo, cjpeg_status status) {
    session *s = cinfo->client_data;
    char text[JMSG_LENGTH_MAX];
    cinfo->err->format_message(cinfo, text);
    fail(s, status, text);
}

static _Noreturn void error_exit(j_common_ptr cinfo) {
    session *s = cinfo->client_data;
    cjpeg_status status;
    switch (cinfo->err->msg_code) {
    case JERR_OUT_OF_MEMORY:
    case JERR_NO_BACKING_STORE:
        status = CJPEG_OUT_OF_MEMORY;
        break;
    case JERR_INPUT_EMPTY:
    case JERR_INPUT_EOF:
        status = CJPEG_TRUNCATED;
        break;
    case JERR_IMAGE_TOO_BIG:
    case JERR_WIDTH_OVERFLOW:
        status = CJPEG_LIMIT;
        break;
    case JERR_SOF_UNSUPPORTED:
    case JERR_BAD_PRECISION:
    case JERR_ARITH_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
        status = CJPEG_UNSUPPORTED;
        break;
    default:
        status = CJPEG_CORRUPT;
    }
    if (s->is_encoding && status != CJPEG_OUT_OF_MEMORY) status = CJPEG_ENCODE_FAILED;
    fail_with_library_message(cinfo, status);
}

/// Whether the bytes that the library skipped before a marker are all zero: padding, which some
/// cameras write, and not the remains of data that was decoded wrongly.
static bool skipped_only_zeros(const session *s, int count) {
    size_t position = s->input_length - s->source.bytes_in_buffer;
    if (count < 0 || (size_t)count > position) return false;
    for (size_t index = position - (size_t)count; index < position; index++) {
        if (s->input[index] != 0) return false;
    }
    return true;
}

static void emit_message(j_common_ptr cinfo, int level) {
    if (level >= 0) return;
    session *s = cinfo->client_data;
    bool is_harmless = false;
    switch (cinfo->err->msg_code) {
    case JWRN_ADOBE_XFORM:  // An unknown colour transform code; the library's guess is the usual one.
    case JWRN_JFIF_MAJOR:  // The revision number is all that is odd.
    case JWRN_NOT_SEQUENTIAL:  // Spectral selection in a sequential scan, where it has no meaning.
        is_harmless = true;
        break;
    case JWRN_EXTRANEOUS_DATA:
        // Between the header's segments nothing is lost. After entropy-coded data, left-over bytes
        // are how a flipped bit shows that still gave valid codes.
        is_harmless =
            !s->has_seen_scan || skipped_only_zeros(s, cinfo->err->msg_parm.i[0]);
        break;
    default:
        // JWRN_HIT_MARKER, JWRN_HUFF_BAD_CODE, JWRN_ARITH_BAD_CODE, JWRN_MUST_RESYNC,
        // JWRN_BOGUS_PROGRESSION: coefficients are missing or wrong. JWRN_JPEG_EOF cannot come,
        // since the source manager ends the decode first. Unknown ones are not trusted.
        break;
    }
    if (!is_harmless) {
        fail_with_library_message(cinfo, s->is_encoding ? CJPEG_ENCODE_FAILED : CJPEG_CORRUPT);
    }
    cinfo->err->num_warnings++;
    if (s->limits != NULL && cinfo->err->num_warnings > s->limits->maximum_warnings) {
        fail(s, CJPEG_LIMIT, "too many warnings");
    }
}

static void output_message(j_common_ptr cinfo) { (void)cinfo; }

static void source_nothing(j_decompress_ptr cinfo) { (void)cinfo; }

static boolean source_fill(j_decompress_ptr cinfo) {
    fail(cinfo->client_data, CJPEG_TRUNCATED, "the data ends before the image does");
}

static void source_skip(j_decompress_ptr cinfo, long count) {
    struct jpeg_source_mgr *source = cinfo->src;
    if (count <= 0) return;
    if ((size_t)count > source->bytes_in_buffer) source_fill(cinfo);
    source->next_input_byte += count;
    source->bytes_in_buffer -= (size_t)count;
}

static void note_scan(session *s) {
    j_decompress_ptr cinfo = &s->decompress;
    for (int index = 0; index < cinfo->comps_in_scan; index++) {
        s->components_seen |= 1u << cinfo->cur_comp_info[index]->component_index;
    }
    if (cinfo->input_scan_number > s->limits->maximum_scans) {
        fail(s, CJPEG_LIMIT, "more scans than allowed");
    }
}

/// Called at least once in every scan of a multi-scan file.
static void progress_monitor(j_common_ptr cinfo) {
    if (cinfo->is_decompressor) note_scan(cinfo->client_data);
}

static void destination_start(j_compress_ptr cinfo) {
    session *s = cinfo->client_data;
    s->destination.next_output_byte = s->output;
    s->destination.free_in_buffer = s->output_capacity;
}

static boolean destination_full(j_compress_ptr cinfo) {
    session *s = cinfo->client_data;
    size_t used = s->output_capacity;
    if (used >= s->maximum_output) {
        fail(s, CJPEG_OK, "");
    }
    size_t capacity = used > s->maximum_output / 2 ? s->maximum_output : used * 2;
    uint8_t *output = realloc(s->output, capacity);
    if (output == NULL) fail(s, CJPEG_OUT_OF_MEMORY, "no memory for the output");
    s->output = output;
    s->output_capacity = capacity;
    s->destination.next_output_byte = output + used;
    s->destination.free_in_buffer = capacity - used;
    return TRUE;
}

static void destination_end(j_compress_ptr cinfo) { (void)cinfo; }

static void prepare(session *s, const cjpeg_limits *limits, char *message) {
    memset(s, 0, sizeof *s);
    s->limits = limits;
    s->message = message;
    message[0] = 0;
    jpeg_std_error(&s->errors);
    s->errors.error_exit = error_exit;
    s->errors.emit_message = emit_message;
    s->errors.output_message = output_message;
}

static void finish(session *s) {
    // Both are no-ops on a zeroed struct.
    jpeg_destroy_decompress(&s->decompress);
    jpeg_destroy_compress(&s->compress);
    free(s->output);
    free(s->pixels);
    free(s->row);
}

// The functions below run under a jump target.

static void open_source(session *s) {
    j_decompress_ptr cinfo = &s->decompress;
    cinfo->err = &s->errors;
    cinfo->client_data = s;
    jpeg_create_decompress(cinfo);
    if (s->limits->maximum_memory_bytes > 0) {
        cinfo->mem->max_memory_to_use = s->limits->maximum_memory_bytes > INT64_MAX
            ? INT64_MAX : (long)s->limits->maximum_memory_bytes;
    }
    s->progress.progress_monitor = progress_monitor;
    cinfo->progress = &s->progress;
    s->source.next_input_byte = s->input;
    s->source.bytes_in_buffer = s->input_length;
    s->source.init_source = source_nothing;
    s->source.fill_input_buffer = source_fill;
    s->source.skip_input_data = source_skip;
    s->source.resync_to_restart = jpeg_resync_to_restart;
    s->source.term_source = source_nothing;
    cinfo->src = &s->source;
    jpeg_read_header(cinfo, TRUE);
    s->has_seen_scan = true;
    uint64_t pixels = (uint64_t)cinfo->image_width * cinfo->image_height;
    if (pixels > s->limits->maximum_pixels) fail(s, CJPEG_LIMIT, "more pixels than allowed");
    if (cinfo->jpeg_color_space == JCS_UNKNOWN) {
        fail(s, CJPEG_UNSUPPORTED, "unknown colour space");
    }
    for (int index = 0; index < cinfo->num_components; index++) {
        // What the library's decoder to pixels cannot do is not stored either.
        const jpeg_component_info *component = &cinfo->comp_info[index];
        if (cinfo->max_h_samp_factor % component->h_samp_factor != 0
            || cinfo->max_v_samp_factor % component->v_samp_factor != 0) {
            fail(s, CJPEG_UNSUPPORTED, "fractional sampling factors");
        }
    }
    note_scan(s);
}

/// Every component must have been in some scan, and its DC coefficients too.
static void require_all_components(session *s) {
    j_decompress_ptr cinfo = &s->decompress;
    for (int index = 0; index < cinfo->num_components; index++) {
        bool is_missing = (s->components_seen & 1u << index) == 0
            || (cinfo->progressive_mode && cinfo->coef_bits != NULL
                && cinfo->coef_bits[index][0] < 0);
        if (is_missing) fail(s, CJPEG_CORRUPT, "a colour component has no data");
    }
}

/// Decodes a single-scan file at an eighth of its size: all codes are read, nothing large is kept.
static void drain_single_scan(session *s) {
    j_decompress_ptr cinfo = &s->decompress;
    cinfo->scale_num = 1;
    cinfo->scale_denom = 8;
    cinfo->out_color_space = cinfo->jpeg_color_space;
    cinfo->do_fancy_upsampling = FALSE;
    jpeg_start_decompress(cinfo);
    size_t row_bytes = (size_t)cinfo->output_width * (size_t)cinfo->output_components;
    s->row = malloc(row_bytes);
    if (s->row == NULL) fail(s, CJPEG_OUT_OF_MEMORY, "no memory for a row");
    JSAMPROW rows[1] = {s->row};
    while (cinfo->output_scanline < cinfo->output_height) jpeg_read_scanlines(cinfo, rows, 1);
    jpeg_finish_decompress(cinfo);
}

static void verify(session *s) {
    if (jpeg_has_multiple_scans(&s->decompress)) {
        jpeg_read_coefficients(&s->decompress);
        require_all_components(s);
    } else {
        drain_single_scan(s);
    }
}

static void note_source(const session *s, cjpeg_result *result) {
    result->source_end = s->input_length - s->source.bytes_in_buffer;
    result->width = s->decompress.image_width;
    result->height = s->decompress.image_height;
}

static void open_destination(session *s) {
    j_compress_ptr cinfo = &s->compress;
    s->output_capacity = 65536 < s->maximum_output ? 65536 : s->maximum_output;
    s->output = malloc(s->output_capacity > 0 ? s->output_capacity : 1);
    if (s->output == NULL) fail(s, CJPEG_OUT_OF_MEMORY, "no memory for the output");
    cinfo->err = &s->errors;
    cinfo->client_data = s;
    jpeg_create_compress(cinfo);
    s->destination.init_destination = destination_start;
    s->destination.empty_output_buffer = destination_full;
    s->destination.term_destination = destination_end;
    cinfo->dest = &s->destination;
}

static void write_segments(session *s, const uint8_t *segments, size_t length) {
    size_t offset = 0;
    while (length - offset >= 4) {
        unsigned size = (unsigned)segments[offset + 2] << 8 | segments[offset + 3];
        if (size < 2 || size > length - offset - 2) break;
        jpeg_write_marker(
            &s->compress, segments[offset + 1], segments + offset + 4, size - 2);
        offset += 2 + size;
    }
}

static void take_output(session *s, cjpeg_result *result) {
    size_t length = s->output_capacity - s->destination.free_in_buffer;
    if (length >= s->maximum_output) return;
    uint8_t *bytes = realloc(s->output, length);
    result->bytes = bytes != NULL ? bytes : s->output;
    result->length = length;
    s->output = NULL;
}

// MARK: - Requantisation

/// The quantisation tables to write, by slot, and whether a slot becomes coarser.
typedef struct {
    JQUANT_TBL tables[NUM_QUANT_TBLS];
    bool is_coarser[NUM_QUANT_TBLS];
    bool is_any_coarser;
} target_tables;

/// Libjpeg's two tables at a quality, in natural order as `jpeg_add_quant_table` scales them.
static void standard_tables(session *s, int quality, UINT16 luma[64], UINT16 chroma[64]) {
    struct jpeg_compress_struct *cinfo = &s->compress;
    jpeg_set_quality(cinfo, quality, TRUE);
    memcpy(luma, cinfo->quant_tbl_ptrs[0]->quantval, 64 * sizeof(UINT16));
    memcpy(chroma, cinfo->quant_tbl_ptrs[1]->quantval, 64 * sizeof(UINT16));
}

static bool is_chroma(const j_decompress_ptr cinfo, int index) {
    return (cinfo->jpeg_color_space == JCS_YCbCr || cinfo->jpeg_color_space == JCS_YCCK)
        && (index == 1 || index == 2);
}

static bool choose_tables(session *s, int quality, target_tables *targets) {
    j_decompress_ptr cinfo = &s->decompress;
    UINT16 luma[64], chroma[64];
    memset(targets, 0, sizeof *targets);
    standard_tables(s, quality, luma, chroma);
    bool is_used[NUM_QUANT_TBLS] = {false};
    for (int index = 0; index < cinfo->num_components; index++) {
        int slot = cinfo->comp_info[index].quant_tbl_no;
        if (slot < 0 || slot >= NUM_QUANT_TBLS || cinfo->quant_tbl_ptrs[slot] == NULL) {
            return false;  // Defined later, if at all: the library finds out.
        }
        const UINT16 *wanted = is_chroma(cinfo, index) ? chroma : luma;
        UINT16 *values = targets->tables[slot].quantval;
        for (int position = 0; position < 64; position++) {
            // Components that share a table get the finer of their targets.
            if (!is_used[slot] || wanted[position] < values[position]) {
                values[position] = wanted[position];
            }
        }
        is_used[slot] = true;
    }
    for (int slot = 0; slot < NUM_QUANT_TBLS; slot++) {
        if (!is_used[slot]) continue;
        const UINT16 *source = cinfo->quant_tbl_ptrs[slot]->quantval;
        UINT16 *values = targets->tables[slot].quantval;
        for (int position = 0; position < 64; position++) {
            if (values[position] > source[position]) {
                targets->is_coarser[slot] = true;
                targets->is_any_coarser = true;
            } else {
                values[position] = source[position];
            }
        }
    }
    return true;
}

// Wider registers halve the time of these passes; arm64 has but one kind.
#if defined(__x86_64__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

/// Whether a coefficient may be too large for a code; `has_codes` looks closely.
FOR_EACH_PROCESSOR static bool is_suspicious(const JCOEF *coefficients, size_t blocks) {
    JCOEF low = 0, high = 0;
    for (size_t index = 0; index < blocks * DCTSIZE2; index++) {
        JCOEF value = coefficients[index];
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    return low < -1023 || high > 1023;
}

/// Rounds to nearest: adding and subtracting 1.5·2²³ leaves a float without fraction, and vectorises
/// on every x86-64 and arm64, where a call of `lrintf` may not.
FOR_EACH_PROCESSOR static void requantise_row(
    JCOEF *restrict coefficients, size_t blocks, const float *restrict ratio) {
    const float magic = 12582912.0f;
    for (size_t block = 0; block < blocks; block++, coefficients += DCTSIZE2) {
        for (int position = 0; position < DCTSIZE2; position++) {
            float scaled = (float)coefficients[position] * ratio[position];
            coefficients[position] = (JCOEF)(int)((scaled + magic) - magic);
        }
    }
}

/// Whether every coefficient has a code in baseline JPEG of 8 bits (ITU-T T.81, tables F.1 and F.2):
/// 10 bits, and 11 for the difference of two DC coefficients. A decoder takes up to 15, and the
/// library's encoder does not look.
static bool has_codes(const JCOEF *coefficients, size_t blocks) {
    for (size_t index = 0; index < blocks * DCTSIZE2; index++) {
        int value = coefficients[index];
        int least = index % DCTSIZE2 == 0 ? -1024 : -1023;
        if (value < least || value > 1023) return false;
    }
    return true;
}

static void requantise(
    session *s, jvirt_barray_ptr *coefficients, const target_tables *targets) {
    j_decompress_ptr cinfo = &s->decompress;
    for (int index = 0; index < cinfo->num_components; index++) {
        jpeg_component_info *component = &cinfo->comp_info[index];
        int slot = component->quant_tbl_no;
        bool is_coarser = targets->is_coarser[slot];
        if (component->quant_table == NULL) fail(s, CJPEG_CORRUPT, "no quantisation table");
        float ratio[DCTSIZE2];
        for (int position = 0; is_coarser && position < DCTSIZE2; position++) {
            ratio[position] = (float)component->quant_table->quantval[position]
                / (float)targets->tables[slot].quantval[position];
        }
        JDIMENSION height = component->height_in_blocks;
        JDIMENSION step = (JDIMENSION)component->v_samp_factor;
        for (JDIMENSION row = 0; row < height; row += step) {
            JDIMENSION rows = step < height - row ? step : height - row;
            JBLOCKARRAY blocks = cinfo->mem->access_virt_barray(
                (j_common_ptr)cinfo, coefficients[index], row, rows, TRUE);
            for (JDIMENSION line = 0; line < rows; line++) {
                JCOEF *row_start = blocks[line][0];
                JDIMENSION width = component->width_in_blocks;
                if (is_coarser) requantise_row(row_start, width, ratio);
                if (is_suspicious(row_start, width) && !has_codes(row_start, width)) {
                    fail(s, CJPEG_ENCODE_FAILED, "a coefficient too large for a baseline file");
                }
            }
        }
    }
}

static cjpeg_status run_requantise(
    session *s, int quality, const uint8_t *segments, size_t segments_length,
    cjpeg_result *result) {
    uint64_t begin = now();
    if (setjmp(s->jump)) return s->status;
    open_source(s);
    j_decompress_ptr source = &s->decompress;
    j_compress_ptr target = &s->compress;
    open_destination(s);
    // Tables are needed to choose; the parameters proper are copied below.
    target->in_color_space = JCS_YCbCr;
    target->input_components = 3;
    jpeg_set_defaults(target);
    target_tables tables;
    bool is_known = choose_tables(s, quality, &tables);
    if (is_known && !tables.is_any_coarser && !jpeg_has_multiple_scans(source)) {
        drain_single_scan(s);
        note_source(s, result);
        result->decode_nanoseconds = now() - begin;
        return CJPEG_OK;
    }
    jvirt_barray_ptr *coefficients = jpeg_read_coefficients(source);
    require_all_components(s);
    note_source(s, result);
    // A multi-scan file may define its tables between scans.
    is_known = choose_tables(s, quality, &tables);
    result->decode_nanoseconds = now() - begin;
    if (!is_known || !tables.is_any_coarser) return CJPEG_OK;

    s->encode_begin = now();
    s->is_encoding = true;
    jpeg_copy_critical_parameters(source, target);
    // The library marks every CMYK file as Adobe's, which tells readers to invert it.
    if (source->jpeg_color_space == JCS_CMYK) {
        target->write_Adobe_marker = source->saw_Adobe_marker;
    }
    requantise(s, coefficients, &tables);
    for (int slot = 0; slot < NUM_QUANT_TBLS; slot++) {
        if (tables.is_coarser[slot]) {
            memcpy(
                target->quant_tbl_ptrs[slot]->quantval, tables.tables[slot].quantval,
                sizeof tables.tables[slot].quantval);
        }
    }
    // Baseline also for progressive sources, whose ten scans would cost as many passes; where
    // baseline is not smaller, the source's own scans stay.
    cjpeg_choose_huffman_tables(source, target, coefficients);
    jpeg_write_coefficients(target, coefficients);
    write_segments(s, segments, segments_length);
    jpeg_finish_compress(target);
    take_output(s, result);
    return CJPEG_OK;
}

cjpeg_status cjpeg_requantise(
    const uint8_t *source, size_t length, const cjpeg_limits *limits, int quality,
    const uint8_t *segments, size_t segments_length, size_t maximum_output,
    cjpeg_result *result, char *message) {
    session s;
    prepare(&s, limits, message);
    memset(result, 0, sizeof *result);
    s.input = source;
    s.input_length = length;
    s.maximum_output = maximum_output;
    cjpeg_status status = run_requantise(&s, quality, segments, segments_length, result);
    // Also when the output was given up.
    if (s.is_encoding) result->encode_nanoseconds = now() - s.encode_begin;
    finish(&s);
    return status;
}

// MARK: - Verification

static cjpeg_status run_verify(session *s, cjpeg_result *result) {
    uint64_t begin = now();
    if (setjmp(s->jump)) return s->status;
    open_source(s);
    verify(s);
    note_source(s, result);
    result->decode_nanoseconds = now() - begin;
    return CJPEG_OK;
}

cjpeg_status cjpeg_verify(
    const uint8_t *source, size_t length, const cjpeg_limits *limits, cjpeg_result *result,
    char *message) {
    session s;
    prepare(&s, limits, message);
    memset(result, 0, sizeof *result);
    s.input = source;
    s.input_length = length;
    cjpeg_status status = run_verify(&s, result);
    finish(&s);
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

static cjpeg_status run_decode(session *s, cjpeg_result *result) {
    uint64_t begin = now();
    if (setjmp(s->jump)) return s->status;
    open_source(s);
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
    // Smoothing guesses coefficients that a scan did not bring.
    cinfo->do_block_smoothing = FALSE;
    size_t row_bytes = (size_t)cinfo->image_width * (size_t)channels;
    size_t total;
    if (__builtin_mul_overflow(row_bytes, (size_t)cinfo->image_height, &total)) {
        fail(s, CJPEG_LIMIT, "more pixels than can be addressed");
    }
    jpeg_start_decompress(cinfo);
    if (jpeg_has_multiple_scans(cinfo)) require_all_components(s);
    s->pixels = malloc(total);
    if (s->pixels == NULL) fail(s, CJPEG_OUT_OF_MEMORY, "no memory for the pixels");
    if (is_cmyk) {
        s->row = malloc((size_t)cinfo->image_width * 4);
        if (s->row == NULL) fail(s, CJPEG_OUT_OF_MEMORY, "no memory for a row");
    }
    while (cinfo->output_scanline < cinfo->output_height) {
        uint8_t *target = s->pixels + (size_t)cinfo->output_scanline * row_bytes;
        JSAMPROW rows[1] = {is_cmyk ? s->row : target};
        jpeg_read_scanlines(cinfo, rows, 1);
        if (is_cmyk) {
            convert_cmyk_row(
                s->row, target, cinfo->image_width, cinfo->saw_Adobe_marker == TRUE);
        }
    }
    jpeg_finish_decompress(cinfo);
    note_source(s, result);
    result->channels = channels;
    result->was_cmyk = is_cmyk;
    result->bytes = s->pixels;
    result->length = total;
    s->pixels = NULL;
    result->decode_nanoseconds = now() - begin;
    return CJPEG_OK;
}

cjpeg_status cjpeg_decode(
    const uint8_t *source, size_t length, const cjpeg_limits *limits, cjpeg_result *result,
    char *message) {
    session s;
    prepare(&s, limits, message);
    memset(result, 0, sizeof *result);
    s.input = source;
    s.input_length = length;
    cjpeg_status status = run_decode(&s, result);
    finish(&s);
    return status;
}

static cjpeg_status run_encode(
    session *s, const uint8_t *pixels, uint32_t width, uint32_t height, int channels,
    int quality, const uint8_t *segments, size_t segments_length, cjpeg_result *result) {
    uint64_t begin = now();
    if (setjmp(s->jump)) return s->status;
    s->is_encoding = true;
    open_destination(s);
    j_compress_ptr cinfo = &s->compress;
    cinfo->image_width = width;
    cinfo->image_height = height;
    cinfo->input_components = channels;
    cinfo->in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(cinfo);
    jpeg_set_quality(cinfo, quality, TRUE);
    cinfo->optimize_coding = TRUE;
    jpeg_start_compress(cinfo, TRUE);
    write_segments(s, segments, segments_length);
    size_t row_bytes = (size_t)width * (size_t)channels;
    while (cinfo->next_scanline < cinfo->image_height) {
        // The library's pointer type is not const, but it only reads.
        JSAMPROW rows[1] = {(JSAMPROW)(uintptr_t)(pixels + cinfo->next_scanline * row_bytes)};
        jpeg_write_scanlines(cinfo, rows, 1);
    }
    jpeg_finish_compress(cinfo);
    result->width = width;
    result->height = height;
    take_output(s, result);
    result->encode_nanoseconds = now() - begin;
    return CJPEG_OK;
}

cjpeg_status cjpeg_encode(
    const uint8_t *pixels, uint32_t width, uint32_t height, int channels, int quality,
    const uint8_t *segments, size_t segments_length, size_t maximum_output,
    cjpeg_result *result, char *message) {
    session s;
    prepare(&s, NULL, message);
    memset(result, 0, sizeof *result);
    s.maximum_output = maximum_output;
    cjpeg_status status = run_encode(
        &s, pixels, width, height, channels, quality, segments, segments_length, result);
    finish(&s);
    return status;
}

// MARK: - Orientation

void cjpeg_orient(
    const uint8_t *pixels, uint32_t width, uint32_t height, int bytes_per_pixel, int orientation,
    uint8_t *output) {
    size_t size = (size_t)bytes_per_pixel;
    bool is_transposed = orientation >= 5;
    size_t output_width = is_transposed ? height : width;
    size_t output_height = is_transposed ? width : height;
    // Where the output's first pixel comes from, and the steps to its neighbours.
    bool flips_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    bool flips_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    ptrdiff_t column = (ptrdiff_t)size, row = (ptrdiff_t)(size * width);
    const uint8_t *origin = pixels + (flips_x ? (size_t)(width - 1) * size : 0)
        + (flips_y ? (size_t)(height - 1) * size * width : 0);
    if (flips_x) column = -column;
    if (flips_y) row = -row;
    ptrdiff_t step_x = is_transposed ? row : column;
    ptrdiff_t step_y = is_transposed ? column : row;
    for (size_t y = 0; y < output_height; y++) {
        const uint8_t *from = origin + (ptrdiff_t)y * step_y;
        for (size_t x = 0; x < output_width; x++, from += step_x, output += size) {
            for (size_t byte = 0; byte < size; byte++) output[byte] = from[byte];
        }
    }
}
