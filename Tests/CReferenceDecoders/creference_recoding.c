#include "creference.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

// MARK: - Comparison

typedef struct {
    struct jpeg_decompress_struct decompress;
    struct jpeg_error_mgr errors;
    jmp_buf *jump;
    char *message;
    jvirt_barray_ptr *coefficients;
} side;

static _Noreturn void on_error(j_common_ptr cinfo) {
    side *s = cinfo->client_data;
    char text[JMSG_LENGTH_MAX];
    cinfo->err->format_message(cinfo, text);
    snprintf(s->message, CREFERENCE_MESSAGE_BYTES, "%s", text);
    longjmp(*s->jump, 1);
}

static void on_message(j_common_ptr cinfo, int level) {
    if (level < 0) on_error(cinfo);
}

static void open_side(side *s, const uint8_t *bytes, size_t length) {
    j_decompress_ptr cinfo = &s->decompress;
    cinfo->err = jpeg_std_error(&s->errors);
    s->errors.error_exit = on_error;
    s->errors.emit_message = on_message;
    cinfo->client_data = s;
    jpeg_create_decompress(cinfo);
    for (int number = 0; number < 16; number++) jpeg_save_markers(cinfo, JPEG_APP0 + number, 0xFFFF);
    jpeg_save_markers(cinfo, JPEG_COM, 0xFFFF);
    jpeg_mem_src(cinfo, bytes, (unsigned long)length);
    jpeg_read_header(cinfo, TRUE);
    s->coefficients = jpeg_read_coefficients(cinfo);
}

static bool differs(side sides[2], const char *what) {
    snprintf(sides[0].message, CREFERENCE_MESSAGE_BYTES, "another %s", what);
    return false;
}

static bool has_same_segments(side sides[2]) {
    jpeg_saved_marker_ptr one = sides[0].decompress.marker_list, other = sides[1].decompress.marker_list;
    for (; one != NULL && other != NULL; one = one->next, other = other->next) {
        if (one->marker != other->marker || one->data_length != other->data_length
            || memcmp(one->data, other->data, one->data_length) != 0) return false;
    }
    return one == other;
}

/// Blocks of the component, padding of its last MCUs included.
static JDIMENSION padded(JDIMENSION count, int step, int components) {
    JDIMENSION size = components == 1 ? 1 : (JDIMENSION)step;
    return (count + size - 1) / size * size;
}

static bool has_same_component(side sides[2], int index) {
    j_decompress_ptr one = &sides[0].decompress, other = &sides[1].decompress;
    const jpeg_component_info *mine = &one->comp_info[index], *theirs = &other->comp_info[index];
    if (mine->component_id != theirs->component_id) return differs(sides, "identifier");
    if (mine->h_samp_factor != theirs->h_samp_factor || mine->v_samp_factor != theirs->v_samp_factor) {
        return differs(sides, "sampling");
    }
    if (mine->quant_tbl_no != theirs->quant_tbl_no
        || memcmp(mine->quant_table->quantval, theirs->quant_table->quantval, sizeof mine->quant_table->quantval)) {
        return differs(sides, "quantisation table");
    }
    JDIMENSION rows = padded(mine->height_in_blocks, mine->v_samp_factor, one->num_components);
    size_t row_bytes = padded(mine->width_in_blocks, mine->h_samp_factor, one->num_components) * sizeof(JBLOCK);
    for (JDIMENSION row = 0; row < rows; row++) {
        JBLOCKARRAY blocks[2];
        for (int each = 0; each < 2; each++) {
            blocks[each] = sides[each].decompress.mem->access_virt_barray(
                (j_common_ptr)&sides[each].decompress, sides[each].coefficients[index], row, 1, FALSE);
        }
        if (memcmp(blocks[0][0], blocks[1][0], row_bytes) != 0) return differs(sides, "coefficient");
    }
    return true;
}

static bool compare(side sides[2], const uint8_t *const bytes[2], const size_t lengths[2]) {
    jmp_buf jump;
    sides[0].jump = sides[1].jump = &jump;
    if (setjmp(jump)) return false;
    for (int each = 0; each < 2; each++) open_side(&sides[each], bytes[each], lengths[each]);
    j_decompress_ptr one = &sides[0].decompress, other = &sides[1].decompress;
    if (one->image_width != other->image_width || one->image_height != other->image_height) return differs(sides, "size");
    if (one->jpeg_color_space != other->jpeg_color_space) return differs(sides, "colour space");
    if (one->num_components != other->num_components) return differs(sides, "number of components");
    if (one->restart_interval != other->restart_interval) return differs(sides, "restart interval");
    if (one->progressive_mode != other->progressive_mode) return differs(sides, "process");
    if (!has_same_segments(sides)) return differs(sides, "segment of metadata");
    for (int index = 0; index < one->num_components; index++) {
        if (!has_same_component(sides, index)) return false;
    }
    return true;
}

bool creference_is_recoded(
    const uint8_t *one, size_t one_length, const uint8_t *other, size_t other_length, char *message) {
    side sides[2];
    memset(sides, 0, sizeof sides);
    sides[0].message = sides[1].message = message;
    message[0] = 0;
    const uint8_t *bytes[2] = {one, other};
    size_t lengths[2] = {one_length, other_length};
    bool is_same = compare(sides, bytes, lengths);
    for (int each = 0; each < 2; each++) jpeg_destroy_decompress(&sides[each].decompress);
    return is_same;
}

// MARK: - Creation

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

uint8_t *creference_make_baseline(const creference_baseline *baseline, size_t *length) {
    struct jpeg_compress_struct cinfo;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    unsigned long count = 0;
    int channels = baseline->horizontal == 0 ? 1 : 3;
    // The library's own handler ends the process, which is acceptable in a test.
    cinfo.err = jpeg_std_error(&errors);
    jpeg_create_compress(&cinfo);
    jpeg_mem_dest(&cinfo, &bytes, &count);
    cinfo.image_width = baseline->width;
    cinfo.image_height = baseline->height;
    cinfo.input_components = channels;
    cinfo.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&cinfo);
    jpeg_set_quality(&cinfo, baseline->quality, TRUE);
    cinfo.optimize_coding = baseline->is_optimised;
    cinfo.restart_interval = baseline->restart_interval;
    if (channels == 3) {
        cinfo.comp_info[0].h_samp_factor = baseline->horizontal;
        cinfo.comp_info[0].v_samp_factor = baseline->vertical;
    }
    uint8_t *row = malloc((size_t)baseline->width * (size_t)channels);
    if (row != NULL) {
        jpeg_start_compress(&cinfo, TRUE);
        uint64_t state = baseline->seed * 2 + 1;
        unsigned noise = (unsigned)(next_random(&state) % 96);
        for (uint32_t y = 0; y < baseline->height; y++) {
            for (uint32_t x = 0; x < baseline->width * (uint32_t)channels; x++) {
                row[x] = (uint8_t)(5 * x / (uint32_t)channels + 3 * y + next_random(&state) % (noise + 1));
            }
            JSAMPROW rows[1] = {row};
            jpeg_write_scanlines(&cinfo, rows, 1);
        }
        jpeg_finish_compress(&cinfo);
    }
    jpeg_destroy_compress(&cinfo);
    free(row);
    *length = count;
    return row != NULL ? bytes : NULL;
}
