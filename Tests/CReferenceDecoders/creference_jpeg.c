#include "creference.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

typedef struct {
    struct jpeg_decompress_struct decompress;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    creference_verdict verdict;
    char *message;
    int maximum_scans;
} session;

static _Noreturn void end(session *s, creference_verdict verdict) {
    s->verdict = verdict;
    longjmp(s->jump, 1);
}

static void note(j_common_ptr cinfo) {
    session *s = cinfo->client_data;
    char text[JMSG_LENGTH_MAX];
    cinfo->err->format_message(cinfo, text);
    snprintf(s->message, CREFERENCE_MESSAGE_BYTES, "%s", text);
}

static _Noreturn void on_error(j_common_ptr cinfo) {
    bool is_memory = cinfo->err->msg_code == JERR_OUT_OF_MEMORY;
    note(cinfo);
    end(cinfo->client_data, is_memory ? CREFERENCE_LIMIT : CREFERENCE_REFUSED);
}

static void on_message(j_common_ptr cinfo, int level) {
    if (level < 0 && cinfo->err->num_warnings++ == 0) note(cinfo);
}

static void on_progress(j_common_ptr cinfo) {
    session *s = cinfo->client_data;
    if (s->decompress.input_scan_number > s->maximum_scans) end(s, CREFERENCE_LIMIT);
}

static void begin(session *s, int maximum_scans, char *message) {
    memset(s, 0, sizeof *s);
    s->message = message;
    s->maximum_scans = maximum_scans;
    s->decompress.err = jpeg_std_error(&s->errors);
    s->errors.error_exit = on_error;
    s->errors.emit_message = on_message;
    s->progress.progress_monitor = on_progress;
    s->decompress.client_data = s;
}

/// Runs under a jump target.
static void open_source(session *s, const uint8_t *source, size_t length) {
    jpeg_create_decompress(&s->decompress);
    s->decompress.progress = &s->progress;
    jpeg_mem_src(&s->decompress, source, (unsigned long)length);
    jpeg_read_header(&s->decompress, TRUE);
}

static void decode(
    session *s, const uint8_t *source, size_t length, uint64_t maximum_pixels,
    creference_picture *picture) {
    j_decompress_ptr cinfo = &s->decompress;
    if (setjmp(s->jump)) return;
    open_source(s, source, length);
    picture->width = cinfo->image_width;
    picture->height = cinfo->image_height;
    if ((uint64_t)picture->width * picture->height > maximum_pixels) end(s, CREFERENCE_LIMIT);
    jpeg_start_decompress(cinfo);
    picture->channels = cinfo->output_components;
    size_t row_bytes = (size_t)cinfo->output_width * (size_t)cinfo->output_components;
    picture->length = row_bytes * cinfo->output_height;
    picture->pixels = malloc(picture->length);
    if (picture->pixels == NULL) end(s, CREFERENCE_LIMIT);
    while (cinfo->output_scanline < cinfo->output_height) {
        JSAMPROW row = picture->pixels + cinfo->output_scanline * row_bytes;
        jpeg_read_scanlines(cinfo, &row, 1);
    }
    jpeg_finish_decompress(cinfo);
    s->verdict = cinfo->err->num_warnings > 0 ? CREFERENCE_WARNED : CREFERENCE_OK;
}

void creference_decode_jpeg(
    const uint8_t *source, size_t length, uint64_t maximum_pixels, int maximum_scans,
    creference_picture *picture) {
    memset(picture, 0, sizeof *picture);
    session s;
    begin(&s, maximum_scans, picture->message);
    decode(&s, source, length, maximum_pixels, picture);
    picture->verdict = s.verdict;
    jpeg_destroy_decompress(&s.decompress);
    if (s.verdict >= CREFERENCE_REFUSED) creference_free(picture);
}

// MARK: - Coefficients

typedef struct {
    session source;
    session output;
    char *message;
    /// 4:4:4 became 4:2:0.
    bool is_halved;
} comparison;

/// The source's column, row and coefficient for an output coefficient, by the definition of the
/// DCT: mirroring negates odd frequencies in its direction.
typedef struct {
    bool is_transposed, flips_x, flips_y;
} turning;

static turning turning_of(int orientation) {
    static const turning turnings[] = {
        {false, false, false}, {false, true, false}, {false, true, true}, {false, false, true},
        {true, false, false}, {true, false, true}, {true, true, true}, {true, true, false},
    };
    return turnings[orientation - 1];
}

static bool differs(comparison *c, const char *what, int component, long expected, long found) {
    snprintf(
        c->message, CREFERENCE_MESSAGE_BYTES, "%s of component %d: %ld instead of %ld", what,
        component, found, expected);
    return false;
}

static bool compare_block(
    comparison *c, int index, const JCOEF *from, const JCOEF *to, turning turning) {
    const UINT16 *fine = c->source.decompress.comp_info[index].quant_table->quantval;
    const UINT16 *coarse = c->output.decompress.comp_info[index].quant_table->quantval;
    for (int place = 0; place < DCTSIZE2; place++) {
        int x = place % DCTSIZE, y = place / DCTSIZE;
        if (turning.is_transposed) { int swap = x; x = y; y = swap; }
        int origin = y * DCTSIZE + x;
        bool is_negated = (turning.flips_x && x % 2 == 1) != (turning.flips_y && y % 2 == 1);
        long wanted = (long)(is_negated ? -from[origin] : from[origin]) * fine[origin];
        long step = coarse[place];
        if (step < fine[origin]) return differs(c, "step", index, fine[origin], step);
        long distance = labs(to[place] * step - wanted);
        // Ratios are floats, so ties may round either way.
        bool is_near = step == fine[origin] ? distance == 0 : 200 * distance <= 102 * step;
        if (!is_near) return differs(c, "coefficient", index, wanted, to[place] * step);
    }
    return true;
}

static bool compare_component(
    comparison *c, int index, jvirt_barray_ptr from, jvirt_barray_ptr to, turning turning) {
    j_decompress_ptr source = &c->source.decompress, output = &c->output.decompress;
    const jpeg_component_info *before = &source->comp_info[index];
    const jpeg_component_info *after = &output->comp_info[index];
    int horizontal = before->h_samp_factor, vertical = before->v_samp_factor;
    JDIMENSION width = before->width_in_blocks, height = before->height_in_blocks;
    if (turning.is_transposed) {
        horizontal = before->v_samp_factor;
        vertical = before->h_samp_factor;
        width = before->height_in_blocks;
        height = before->width_in_blocks;
    }
    if (c->is_halved) horizontal = vertical = 2;
    if (after->h_samp_factor != horizontal) {
        return differs(c, "horizontal sampling", index, horizontal, after->h_samp_factor);
    }
    if (after->v_samp_factor != vertical) {
        return differs(c, "vertical sampling", index, vertical, after->v_samp_factor);
    }
    if (after->width_in_blocks != width || after->height_in_blocks != height) {
        return differs(c, "blocks", index, width, after->width_in_blocks);
    }
    if (before->quant_table == NULL || after->quant_table == NULL) {
        return differs(c, "table", index, before->quant_table != NULL, after->quant_table != NULL);
    }
    for (JDIMENSION y = 0; y < height; y++) {
        const JBLOCK *to_row = output->mem->access_virt_barray(
            (j_common_ptr)output, to, y, 1, FALSE)[0];
        for (JDIMENSION x = 0; x < width; x++) {
            JDIMENSION from_x = turning.is_transposed ? y : x;
            JDIMENSION from_y = turning.is_transposed ? x : y;
            if (turning.flips_x) from_x = before->width_in_blocks - 1 - from_x;
            if (turning.flips_y) from_y = before->height_in_blocks - 1 - from_y;
            const JBLOCK *from_row = source->mem->access_virt_barray(
                (j_common_ptr)source, from, from_y, 1, FALSE)[0];
            if (!compare_block(c, index, from_row[from_x], to_row[x], turning)) return false;
        }
    }
    return true;
}

/// Returns NULL if the file is refused.
static jvirt_barray_ptr *_Nullable coefficients(
    session *s, const uint8_t *bytes, size_t length) {
    if (setjmp(s->jump)) return NULL;
    open_source(s, bytes, length);
    return jpeg_read_coefficients(&s->decompress);
}

static bool has_factors(j_decompress_ptr cinfo, int luma, int chroma) {
    for (int index = 0; index < cinfo->num_components; index++) {
        int wanted = index == 0 ? luma : chroma;
        const jpeg_component_info *component = &cinfo->comp_info[index];
        if (component->h_samp_factor != wanted || component->v_samp_factor != wanted) return false;
    }
    return cinfo->num_components == 3 && cinfo->jpeg_color_space == JCS_YCbCr;
}

static bool compare(
    comparison *c, jvirt_barray_ptr *from, jvirt_barray_ptr *to, turning turning) {
    j_decompress_ptr source = &c->source.decompress, output = &c->output.decompress;
    // Accessing an array fails if it was written to a file and cannot be read.
    if (setjmp(c->source.jump)) return false;
    if (setjmp(c->output.jump)) return false;
    if (output->jpeg_color_space != source->jpeg_color_space) {
        return differs(c, "space", 0, source->jpeg_color_space, output->jpeg_color_space);
    }
    bool is_inverted = source->jpeg_color_space == JCS_CMYK
        || source->jpeg_color_space == JCS_YCCK;
    if (is_inverted && output->saw_Adobe_marker != source->saw_Adobe_marker) {
        return differs(c, "inversion", 0, source->saw_Adobe_marker, output->saw_Adobe_marker);
    }
    if (output->num_components != source->num_components) {
        return differs(c, "number", 0, source->num_components, output->num_components);
    }
    c->is_halved = has_factors(source, 1, 1) && has_factors(output, 2, 1);
    int count = c->is_halved ? 1 : source->num_components;
    for (int index = 0; index < count; index++) {
        if (!compare_component(c, index, from[index], to[index], turning)) return false;
    }
    return true;
}

bool creference_has_same_coefficients(
    const uint8_t *source, size_t source_length, const uint8_t *output, size_t output_length,
    int orientation, char *message) {
    comparison c;
    c.message = message;
    message[0] = 0;
    // The caller has limited the scans.
    begin(&c.source, INT32_MAX, message);
    begin(&c.output, INT32_MAX, message);
    jvirt_barray_ptr *from = coefficients(&c.source, source, source_length);
    jvirt_barray_ptr *to = from == NULL ? NULL : coefficients(&c.output, output, output_length);
    bool is_same = to != NULL && compare(&c, from, to, turning_of(orientation));
    jpeg_destroy_decompress(&c.source.decompress);
    jpeg_destroy_decompress(&c.output.decompress);
    return is_same;
}
