#include <stdlib.h>
#include <string.h>

#include "cjpeg_coefficients.h"

// Makes several scales of one source. Its entropy-coded data, most of the work, is decoded once, by
// one decompressor or by our decoder (`cjpeg_coefficients.c`). For each scale another decompressor,
// which has read only the header, makes pixels from the coefficients. A single scale is also made
// here if our decoder reads the source.
//
// Both use libjpeg's buffered-image mode, made for pictures that are shown while they arrive.
// Coefficients are stored in virtual arrays, and pixels are made as rows of them become available.
// Only the arrays are ours, so all decompressors share them; each memory manager's public
// methods return them. A row of pixels is requested only when its coefficients are there, so the
// decompressors for pixels never read. Inverse transforms, upsampling and colour conversion are the
// library's, so the bytes equal a single decoder's.

#define MOST_SCALES 4

// MARK: - Pixels

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

/// Converts CMYK to RGB without a profile: red = (1 − cyan)(1 − black), and so on.
static void convert_without_profile(const uint8_t *inks, uint8_t *rgb, size_t width) {
    for (size_t x = 0; x < width; x++, inks += 4, rgb += 3) {
        for (int channel = 0; channel < 3; channel++) {
            rgb[channel] = (uint8_t)((inks[channel] * inks[3] + 127) / 255);
        }
    }
}

/// 255 is paper, with or without Adobe's marker, as in browsers, Pillow, libvips and ImageMagick.
static void convert_inks(const cjpeg_pixels *pixels, uint8_t *rgb, size_t width) {
    if (pixels->conversion.convert == NULL) {
        convert_without_profile(pixels->inks, rgb, width);
    } else {
        pixels->conversion.convert(pixels->conversion.context, pixels->inks, rgb, width);
    }
}

/// Requests grey or RGB at a fraction of the size; the header has been read.
static void choose_colours(j_decompress_ptr cinfo, unsigned denominator, cjpeg_pixels *pixels) {
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

/// Allocates the pixels of a started decompressor.
static void begin_pixels(cjpeg_session *s, j_decompress_ptr cinfo, size_t spare_bytes, cjpeg_pixels *pixels) {
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

/// Reads the next row.
static void read_row(j_decompress_ptr cinfo, cjpeg_pixels *pixels) {
    uint8_t *target =
        pixels->bytes + (size_t)cinfo->output_scanline * pixels->row_bytes + pixels->spare_bytes;
    JSAMPROW rows[1] = {pixels->is_cmyk ? pixels->inks : target};
    // The library returns no row while it only reads ahead.
    if (jpeg_read_scanlines(cinfo, rows, 1) == 1 && pixels->is_cmyk) {
        convert_inks(pixels, target, cinfo->output_width);
    }
}

/// Hands the pixels to the result.
static void take_pixels(j_decompress_ptr cinfo, cjpeg_pixels *pixels, cjpeg_result *result) {
    result->width = cinfo->output_width;
    result->height = cinfo->output_height;
    result->channels = pixels->channels;
    result->was_cmyk = pixels->is_cmyk;
    result->bytes = pixels->bytes;
    result->length = pixels->total;
    pixels->bytes = NULL;
}

static void free_pixels(cjpeg_pixels *pixels) {
    free(pixels->bytes);
    free(pixels->inks);
}

// MARK: - Coefficients

/// The coefficients of one component.
typedef struct {
    JBLOCK *blocks;
    JBLOCKROW *rows;
    JDIMENSION blocks_in_row;
    /// The component's rows of blocks, and how many are kept in memory and reused.
    JDIMENSION height, kept;
} coefficients;

/// One scale.
typedef struct {
    struct jpeg_decompress_struct decompress;
    struct jpeg_source_mgr source;
    /// How many of the shared arrays it has requested.
    int asked;
    cjpeg_pixels pixels;
} scaled_output;

struct cjpeg_scales {
    /// The decompressor that requests arrays first, for which they are allocated: the one that
    /// reads, or the first scale if our decoder reads.
    const struct jpeg_decompress_struct *maker;
    coefficients arrays[MAX_COMPONENTS];
    int array_count;
    uint64_t bytes;
    /// False for a file of one scan, where only one row of MCUs is kept.
    bool keeps_all;
    scaled_output outputs[MOST_SCALES];
    size_t count;
};

// MARK: - Arrays

static scaled_output *output_of(cjpeg_scales *scales, j_common_ptr cinfo) {
    for (size_t index = 0; index < scales->count; index++) {
        if (cinfo == (j_common_ptr)&scales->outputs[index].decompress) return &scales->outputs[index];
    }
    return NULL;
}

static jvirt_barray_ptr request_array(
    j_common_ptr cinfo, int pool, boolean is_zeroed, JDIMENSION blocks_in_row, JDIMENSION height, JDIMENSION access) {
    cjpeg_session *s = cinfo->client_data;
    cjpeg_scales *scales = s->scales;
    if ((const struct jpeg_decompress_struct *)cinfo != scales->maker) {
        scaled_output *output = output_of(scales, cinfo);
        int index = output->asked++;
        if (index >= scales->array_count || scales->arrays[index].blocks_in_row != blocks_in_row
            || scales->arrays[index].height != height) {
            cjpeg_fail(s, CCODEC_UNSUPPORTED, "scales want different coefficients");
        }
        return (jvirt_barray_ptr)&scales->arrays[index];
    }
    if (scales->array_count == MAX_COMPONENTS) {
        cjpeg_fail(s, CCODEC_UNSUPPORTED, "more components than there may be");
    }
    coefficients *array = &scales->arrays[scales->array_count++];
    array->blocks_in_row = blocks_in_row;
    array->height = height;
    array->kept = scales->keeps_all ? height : access;
    size_t blocks;
    if (__builtin_mul_overflow((size_t)blocks_in_row, (size_t)array->kept, &blocks)) {
        cjpeg_fail(s, CCODEC_LIMIT, "more coefficients than can be addressed");
    }
    uint64_t bytes, most = s->limits->maximum_memory_bytes > 0 ? s->limits->maximum_memory_bytes : UINT64_MAX;
    if (__builtin_mul_overflow(blocks, sizeof(JBLOCK), &bytes)
        || __builtin_add_overflow(scales->bytes, bytes, &scales->bytes) || scales->bytes > most) {
        cjpeg_fail(s, CCODEC_OUT_OF_MEMORY, "more coefficients than fit in the memory");
    }
    array->blocks = calloc(blocks, sizeof(JBLOCK));
    array->rows = malloc(array->kept * sizeof *array->rows);
    if (array->blocks == NULL || array->rows == NULL) {
        cjpeg_fail(s, CCODEC_OUT_OF_MEMORY, "no memory for coefficients");
    }
    for (JDIMENSION row = 0; row < array->kept; row++) array->rows[row] = array->blocks + (size_t)row * blocks_in_row;
    return (jvirt_barray_ptr)array;
}

static JBLOCKARRAY access_array(
    j_common_ptr cinfo, jvirt_barray_ptr opaque, JDIMENSION first, JDIMENSION count, boolean is_written) {
    cjpeg_session *s = cinfo->client_data;
    const coefficients *array = (const coefficients *)opaque;
    JDIMENSION place = first % array->kept;
    if (first >= array->height || count > array->kept - place) {
        cjpeg_fail(s, CCODEC_UNSUPPORTED, "coefficients are requested in another order");
    }
    // The entropy decoder writes only nonzero coefficients.
    if (is_written && !s->scales->keeps_all) {
        memset(array->rows[place], 0, (size_t)count * array->blocks_in_row * sizeof(JBLOCK));
    }
    return array->rows + place;
}

static void use_own_arrays(j_decompress_ptr cinfo) {
    cinfo->mem->request_virt_barray = request_array;
    cinfo->mem->access_virt_barray = access_array;
}

// MARK: - Scales

static void open_output(cjpeg_session *s, scaled_output *output, unsigned denominator, size_t spare_bytes) {
    j_decompress_ptr cinfo = &output->decompress;
    // The header's warnings have been counted already.
    long warnings = s->errors.num_warnings;
    s->errors.num_warnings = 0;
    cjpeg_open_header(s, cinfo, &output->source);
    s->errors.num_warnings = warnings;
    use_own_arrays(cinfo);
    cinfo->buffered_image = TRUE;
    // A source that needs smoothing is decoded scale by scale.
    cinfo->do_block_smoothing = FALSE;
    choose_colours(cinfo, denominator, &output->pixels);
    jpeg_start_decompress(cinfo);
    if (cinfo != s->scales->maker && output->asked != s->scales->array_count) {
        cjpeg_fail(s, CCODEC_UNSUPPORTED, "scales want different coefficients");
    }
    begin_pixels(s, cinfo, spare_bytes, &output->pixels);
}

static void open_outputs(cjpeg_session *s, size_t spare_bytes, const unsigned *denominators, size_t count) {
    cjpeg_scales *scales = s->scales;
    for (size_t index = 0; index < count; index++) {
        // Must be set before the output requests arrays.
        scales->count = index + 1;
        open_output(s, &scales->outputs[index], denominators[index], spare_bytes);
    }
    j_decompress_ptr cinfo = &s->decompress;
    s->pixels_a_step = (uint64_t)cinfo->image_width * (uint64_t)cinfo->max_v_samp_factor * DCTSIZE;
}

/// Tables may be redefined between scans; a component uses its first scan's.
static void begin_output(cjpeg_session *s, scaled_output *output) {
    j_decompress_ptr cinfo = &output->decompress;
    for (int index = 0; index < cinfo->num_components; index++) {
        cinfo->comp_info[index].quant_table = s->decompress.comp_info[index].quant_table;
    }
    jpeg_start_output(cinfo, 1);
}

/// Makes the rows of pixels for which that many rows of MCUs suffice.
static void read_rows(scaled_output *output, JDIMENSION rows) {
    j_decompress_ptr cinfo = &output->decompress;
    bool is_last = rows == cinfo->total_iMCU_rows;
    // The decompressor reads on only when output gets ahead of this.
    cinfo->input_iMCU_row = is_last ? rows + 1 : rows;
    while (cinfo->output_scanline < cinfo->output_height && (is_last || cinfo->output_iMCU_row < rows)) {
        read_row(cinfo, &output->pixels);
    }
}

static void take_outputs(cjpeg_session *s, cjpeg_result *results) {
    for (size_t index = 0; index < s->scales->count; index++) {
        scaled_output *output = &s->scales->outputs[index];
        cjpeg_note_source(s, &results[index]);
        take_pixels(&output->decompress, &output->pixels, &results[index]);
    }
}

static void free_scales(cjpeg_session *s) {
    cjpeg_scales *scales = s->scales;
    for (size_t index = 0; index < scales->count; index++) {
        jpeg_destroy_decompress(&scales->outputs[index].decompress);
        free_pixels(&scales->outputs[index].pixels);
    }
    for (int index = 0; index < scales->array_count; index++) {
        free(scales->arrays[index].blocks);
        free(scales->arrays[index].rows);
    }
    free(scales);
    s->scales = NULL;
}

static bool make_scales(cjpeg_session *s) {
    s->scales = calloc(1, sizeof *s->scales);
    s->free_scales = free_scales;
    return s->scales != NULL;
}

// MARK: - Our decoder

/// Whether every scale needs only the means of a component's blocks.
static bool is_of_means(const cjpeg_scales *scales, int component) {
    for (size_t index = 0; index < scales->count; index++) {
        const jpeg_component_info *of_scale = &scales->outputs[index].decompress.comp_info[component];
#if JPEG_LIB_VERSION >= 70
        if (of_scale->DCT_h_scaled_size != 1 || of_scale->DCT_v_scaled_size != 1) return false;
#else
        if (of_scale->DCT_scaled_size != 1) return false;
#endif
    }
    return true;
}

/// The most memory for a row of MCUs, enough for 43,000 pixels of 4:2:0. libjpeg alone keeps no
/// coefficients, and the memory estimate has no room for more.
enum { MOST_ARRAY_BYTES = 1 << 21 };

static bool has_memory(const cjpeg_session *s) {
    const j_decompress_ptr cinfo = (j_decompress_ptr)(uintptr_t)&s->decompress;
    uint64_t most = s->limits->maximum_memory_bytes, blocks = 0;
    for (int index = 0; index < cinfo->num_components; index++) {
        const jpeg_component_info *component = &cinfo->comp_info[index];
        uint64_t across = (uint64_t)component->width_in_blocks + (uint64_t)component->h_samp_factor;
        blocks += across * (uint64_t)component->v_samp_factor;
    }
    uint64_t bytes = blocks * sizeof(JBLOCK);
    return bytes <= MOST_ARRAY_BYTES && (most == 0 || bytes <= most);
}

/// Reads row after row of MCUs and makes pixels while each is in the cache. Returns false to fall
/// back to libjpeg.
static bool decode_baseline(cjpeg_session *s) {
    cjpeg_scales *scales = s->scales;
    bool wants_means[MAX_COMPONENTS];
    JBLOCKARRAY rows[MAX_COMPONENTS];
    for (int index = 0; index < scales->array_count; index++) {
        wants_means[index] = is_of_means(scales, index);
        rows[index] = scales->arrays[index].rows;
    }
    if (!cjpeg_begin_coefficients(s, wants_means)) return false;
    // A single scan uses the tables that each decompressor has read.
    for (size_t index = 0; index < scales->count; index++) jpeg_start_output(&scales->outputs[index].decompress, 1);
    JDIMENSION count = scales->outputs[0].decompress.total_iMCU_rows;
    for (JDIMENSION row = 1; row <= count; row++) {
        cjpeg_check_interruption(s, s->pixels_a_step);
        if (!cjpeg_read_coefficients(s, rows)) return false;
        for (size_t index = 0; index < scales->count; index++) read_rows(&scales->outputs[index], row);
    }
    return cjpeg_end_coefficients(s);
}

/// Decodes at up to four scales by our own decoder, if it supports the source and is faster there.
/// The header has been read. The pixels equal libjpeg's.
///
/// Returns false to fall back to libjpeg, with the decompressor unchanged. May jump when
/// interrupted.
static bool decode_own(
    cjpeg_session *s, size_t spare_bytes, const unsigned *denominators, size_t count, cjpeg_result *results) {
    uint64_t pixels = (uint64_t)s->decompress.image_width * s->decompress.image_height;
    if (pixels < s->limits->least_own_pixels || !cjpeg_is_baseline(&s->decompress) || !has_memory(s)) return false;
    if (!make_scales(s)) return false;
    s->scales->maker = &s->scales->outputs[0].decompress;
    open_outputs(s, spare_bytes, denominators, count);
    bool is_read = decode_baseline(s);
    if (is_read) take_outputs(s, results);
    for (size_t index = 0; index < count; index++) results[index].was_read_here = is_read;
    free_scales(s);
    free(s->scan);
    s->scan = NULL;
    return is_read;
}

// MARK: - libjpeg

static bool is_complete(j_decompress_ptr cinfo) {
    if (!cinfo->progressive_mode || cinfo->coef_bits == NULL) return true;
    for (int component = 0; component < cinfo->num_components; component++) {
        for (int place = 0; place < DCTSIZE2; place++) {
            if (cinfo->coef_bits[component][place] != 0) return false;
        }
    }
    return true;
}

/// Reads all coefficients and makes pixels along the way, or at the end for several scans.
static void decode(cjpeg_session *s) {
    j_decompress_ptr cinfo = &s->decompress;
    cjpeg_scales *scales = s->scales;
    if (!scales->keeps_all) {
        for (size_t index = 0; index < scales->count; index++) begin_output(s, &scales->outputs[index]);
    }
    int event;
    while ((event = jpeg_consume_input(cinfo)) != JPEG_REACHED_EOI) {
        cjpeg_note_scan(s);
        cjpeg_check_interruption(s, s->pixels_a_step);
        if (scales->keeps_all || (event != JPEG_ROW_COMPLETED && event != JPEG_SCAN_COMPLETED)) continue;
        JDIMENSION rows = event == JPEG_SCAN_COMPLETED ? cinfo->total_iMCU_rows : cinfo->input_iMCU_row;
        for (size_t index = 0; index < scales->count; index++) read_rows(&scales->outputs[index], rows);
    }
    if (!scales->keeps_all) return;
    cjpeg_require_all_components(s);
    if (!is_complete(cinfo)) {
        cjpeg_fail(s, CCODEC_UNSUPPORTED, "coefficients that are to be smoothed");
    }
    for (size_t index = 0; index < scales->count; index++) {
        begin_output(s, &scales->outputs[index]);
        read_rows(&scales->outputs[index], cinfo->total_iMCU_rows);
    }
}

static void decode_by_library(
    cjpeg_session *s, size_t spare_bytes, const unsigned *denominators, size_t count, cjpeg_result *results) {
    if (!make_scales(s)) cjpeg_fail(s, CCODEC_OUT_OF_MEMORY, "no memory for several scales");
    j_decompress_ptr cinfo = &s->decompress;
    s->scales->keeps_all = jpeg_has_multiple_scans(cinfo);
    s->scales->maker = cinfo;
    use_own_arrays(cinfo);
    cinfo->buffered_image = TRUE;
    jpeg_start_decompress(cinfo);
    open_outputs(s, spare_bytes, denominators, count);
    decode(s);
    take_outputs(s, results);
}

static ccodec_status run(
    cjpeg_session *s, size_t spare_bytes, const unsigned *denominators, size_t count, cjpeg_result *results) {
    uint64_t begin = cinterruption_processor_time();
    if (setjmp(s->jump)) return s->status;
    cjpeg_open_source(s);
    if (!decode_own(s, spare_bytes, denominators, count, results)) {
        decode_by_library(s, spare_bytes, denominators, count, results);
    }
    results[0].decode_nanoseconds = cinterruption_processor_time() - begin;
    return CCODEC_OK;
}

ccodec_status cjpeg_decode_scales(
    const uint8_t *source, size_t length, const cjpeg_limits *limits, size_t spare_bytes,
    const unsigned *denominators, size_t count, cjpeg_result *results, char *message) {
    cjpeg_session s;
    cjpeg_result first;
    cjpeg_begin(&s, source, length, limits, &first, message);
    memset(results, 0, count * sizeof *results);
    if (count == 0 || count > MOST_SCALES) return CCODEC_UNSUPPORTED;
    ccodec_status status = run(&s, spare_bytes, denominators, count, results);
    cjpeg_end(&s);
    return status;
}

// MARK: - A single scale

static ccodec_status run_decode(
    cjpeg_session *s, size_t spare_bytes, unsigned denominator, cjpeg_pixels *pixels, cjpeg_result *result) {
    uint64_t begin = cinterruption_processor_time();
    if (setjmp(s->jump)) return s->status;
    cjpeg_open_source(s);
    if (decode_own(s, spare_bytes, &denominator, 1, result)) {
        result->decode_nanoseconds = cinterruption_processor_time() - begin;
        return CCODEC_OK;
    }
    j_decompress_ptr cinfo = &s->decompress;
    // If a progressive file ends before its finest coefficients, they are estimated from
    // neighbours, as viewers do. A complete file is not changed.
    cinfo->do_block_smoothing = TRUE;
    choose_colours(cinfo, denominator, pixels);
    s->pixels_a_step = cinfo->image_width;
    jpeg_start_decompress(cinfo);
    if (jpeg_has_multiple_scans(cinfo)) cjpeg_require_all_components(s);
    begin_pixels(s, cinfo, spare_bytes, pixels);
    while (cinfo->output_scanline < cinfo->output_height) read_row(cinfo, pixels);
    jpeg_finish_decompress(cinfo);
    cjpeg_note_source(s, result);
    take_pixels(cinfo, pixels, result);
    result->decode_nanoseconds = cinterruption_processor_time() - begin;
    return CCODEC_OK;
}

ccodec_status cjpeg_decode_scaled(
    const uint8_t *source, size_t length, const cjpeg_limits *limits, size_t spare_bytes,
    unsigned denominator, cjpeg_result *result, char *message) {
    cjpeg_session s;
    cjpeg_pixels pixels = {0};
    cjpeg_begin(&s, source, length, limits, result, message);
    ccodec_status status = run_decode(&s, spare_bytes, denominator, &pixels, result);
    free_pixels(&pixels);
    cjpeg_end(&s);
    return status;
}
