#include "cjpeg_mcus.h"

static bool has_codes(const j_decompress_ptr cinfo, const jpeg_component_info *component) {
    int dc = component->dc_tbl_no, ac = component->ac_tbl_no;
    if (dc < 0 || dc >= NUM_HUFF_TBLS || ac < 0 || ac >= NUM_HUFF_TBLS) return false;
    return cinfo->dc_huff_tbl_ptrs[dc] != NULL && cinfo->ac_huff_tbl_ptrs[ac] != NULL;
}

bool cjpeg_is_baseline(const j_decompress_ptr cinfo) {
    if (cinfo->arith_code || cinfo->progressive_mode || cinfo->data_precision != 8) return false;
    if (cinfo->Ss != 0 || cinfo->Se != DCTSIZE2 - 1 || cinfo->Ah != 0 || cinfo->Al != 0) return false;
    int count = cinfo->num_components;
    if ((count != 1 && count != 3) || cinfo->comps_in_scan != count) return false;
    for (int index = 0; index < count; index++) {
        if (cinfo->cur_comp_info[index] != &cinfo->comp_info[index]) return false;
        if (!has_codes(cinfo, &cinfo->comp_info[index])) return false;
    }
    return true;
}

int cjpeg_blocks_across(const j_decompress_ptr cinfo, int index) {
    return cinfo->num_components == 1 ? 1 : cinfo->comp_info[index].h_samp_factor;
}

int cjpeg_blocks_down(const j_decompress_ptr cinfo, int index) {
    return cinfo->num_components == 1 ? 1 : cinfo->comp_info[index].v_samp_factor;
}

void cjpeg_count_mcus(const j_decompress_ptr cinfo, size_t *columns, size_t *rows) {
    *columns = cinfo->comp_info[0].width_in_blocks;
    *rows = cinfo->comp_info[0].height_in_blocks;
    if (cinfo->num_components == 1) return;
    size_t across = DCTSIZE * (size_t)cinfo->max_h_samp_factor, down = DCTSIZE * (size_t)cinfo->max_v_samp_factor;
    *columns = (cinfo->image_width + across - 1) / across;
    *rows = (cinfo->image_height + down - 1) / down;
}

bool cjpeg_begin_scan(const cjpeg_session *s, cjpeg_window *window, cjpeg_bits *bits) {
    window->source = s->source.next_input_byte;
    window->source_end = window->source + s->source.bytes_in_buffer;
    return cjpeg_begin_segment(window, bits);
}

/// Notes whole unread bytes before a marker, unless all are zero. libjpeg, which repeats the work
/// and judges them, may read up to seven ahead without a warning.
static void note_foreign_bytes(cjpeg_session *s, const cjpeg_window *window, const cjpeg_bits *bits) {
    if (!window->is_last) return;
    const uint8_t *first = s->source.next_input_byte;
    ptrdiff_t count = cjpeg_unread_bytes(window, bits);
    for (const uint8_t *each = window->source; count > 0 && each > first; count--) {
        if (*--each != 0) s->has_foreign_bytes = true;
    }
}

bool cjpeg_restart(
    cjpeg_session *s, cjpeg_window *window, cjpeg_bits *bits, unsigned number) {
    if (!cjpeg_is_at_end(window, bits)) {
        note_foreign_bytes(s, window, bits);
        return false;
    }
    if (window->source[1] != 0xD0 + number % 8) return false;
    window->source += 2;
    return cjpeg_begin_segment(window, bits);
}

bool cjpeg_end_scan(cjpeg_session *s, const cjpeg_window *window, const cjpeg_bits *bits) {
    // Data after it, often another picture or a film, is ignored, as by libjpeg.
    if (!cjpeg_is_at_end(window, bits)) {
        note_foreign_bytes(s, window, bits);
        return false;
    }
    if (window->source[1] != 0xD9) return false;
    s->source.next_input_byte = window->source + 2;
    s->source.bytes_in_buffer = (size_t)(window->source_end - s->source.next_input_byte);
    return true;
}
