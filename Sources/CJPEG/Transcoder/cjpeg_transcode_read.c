#include "cjpeg_transcode.h"

#include <stdlib.h>
#include <string.h>

#include "cjpeg_blocks.h"
#include "cjpeg_tables.h"
#include "cjpeg_preview.h"

// The first half of the transcoder: the scan, its tables, restarts and end (ITU-T T.81, A.2, E.2
// and F.2). Blocks are read by `cjpeg_blocks.c`.

/// Sets the tables of a component's blocks. Returns false to fall back to libjpeg.
static bool set_tables(cjpeg_session *s, const JQUANT_TBL wanted[NUM_QUANT_TBLS], int index, cjpeg_place *place) {
    j_decompress_ptr cinfo = &s->decompress;
    const jpeg_component_info *component = &cinfo->comp_info[index];
    int dc = component->dc_tbl_no, ac = component->ac_tbl_no, slot = component->quant_tbl_no;
    if (slot < 0 || slot >= NUM_QUANT_TBLS) return false;
    const JQUANT_TBL *from = cinfo->quant_tbl_ptrs[slot];
    if (from == NULL) return false;
    for (int each = 0; each < DCTSIZE2; each++) {
        // A step of 0 is damage.
        if (from->quantval[each] == 0 || wanted[slot].quantval[each] == 0) return false;
    }
    place->dc = cjpeg_cached_codes(s->tables, cinfo->dc_huff_tbl_ptrs[dc], true, dc);
    place->ac = cjpeg_cached_codes(s->tables, cinfo->ac_huff_tbl_ptrs[ac], false, ac);
    place->to = cjpeg_cached_requantisation(s->tables, from, &wanted[slot], slot);
    return place->dc != NULL && place->ac != NULL;
}

/// Whether most values of 1 become zero in the first component's early places, where most
/// coefficients are. A loop without that branch is then faster: by a sixth to qualities of 60 and
/// 40, but 7 % slower to 85.
static bool is_coarse(const cjpeg_scan *scan) {
    const cjpeg_requantisation *to = scan->places[0].to;
    int zeros = 0;
    for (int place = 1; place <= 9; place++) zeros += to->ratio[place] <= 0.5f;
    return zeros > 4;
}

static bool make_places(cjpeg_scan *scan, const JQUANT_TBL wanted[NUM_QUANT_TBLS]) {
    j_decompress_ptr cinfo = &scan->s->decompress;
    for (int index = 0; index < cinfo->num_components; index++) {
        unsigned table = scan->symbols->table_of[index];
        cjpeg_place first = {
            .last = &scan->last[index], .dc_table = table << 24, .ac_table = (CJPEG_AC + table) << 24,
            .kept = &scan->unwanted, .component = index};
        if (!set_tables(scan->s, wanted, index, &first)) return false;
        int across = cjpeg_blocks_across(cinfo, index), down = cjpeg_blocks_down(cinfo, index);
        for (int each = 0; each < across * down; each++) {
            if (scan->blocks == CJPEG_MOST_BLOCKS) return false;
            cjpeg_place *place = &scan->places[scan->blocks++];
            *place = first;
            place->next = place + 1;
            place->x = each % across;
            place->y = each / across;
        }
    }
    scan->places[scan->blocks - 1].next = scan->places;
    return true;
}

/// Marks the padding blocks in an MCU of the last column or row.
static void set_padding(cjpeg_scan *scan, bool is_last_column, bool is_last_row) {
    j_decompress_ptr cinfo = &scan->s->decompress;
    for (size_t each = 0; each < scan->blocks; each++) {
        cjpeg_place *place = &scan->places[each];
        const jpeg_component_info *component = &cinfo->comp_info[place->component];
        unsigned across = (unsigned)cjpeg_blocks_across(cinfo, place->component);
        unsigned down = (unsigned)cjpeg_blocks_down(cinfo, place->component);
        // The first block is never padding.
        bool is_beyond = is_last_column && (unsigned)place->x > (component->width_in_blocks - 1) % across;
        bool is_below = is_last_row && (unsigned)place->y > (component->height_in_blocks - 1) % down;
        unsigned table = scan->symbols->table_of[place->component];
        place->is_padding = is_beyond || is_below;
        place->dc_counts = place->is_padding ? scan->padding_counts : scan->symbols->counts[table];
        place->ac_counts = place->is_padding ? scan->padding_counts : scan->symbols->counts[CJPEG_AC + table];
    }
}

/// Sets where the coefficients of a row of MCUs are kept for a preview.
static void set_kept(cjpeg_scan *scan, size_t row) {
    j_decompress_ptr cinfo = &scan->s->decompress;
    for (size_t each = 0; each < scan->blocks; each++) {
        cjpeg_place *place = &scan->places[each];
        const JCOEF *kept = scan->symbols->preview.coefficients[place->component];
        if (kept == NULL) continue;
        size_t across = (size_t)cjpeg_blocks_across(cinfo, place->component);
        size_t each_block = scan->symbols->preview.coefficients_a_block;
        size_t line = row * (size_t)cjpeg_blocks_down(cinfo, place->component) + (size_t)place->y;
        size_t block = line * scan->symbols->preview.blocks_in_row[place->component] + (size_t)place->x;
        place->kept = (JCOEF *)(uintptr_t)kept + block * each_block;
        place->kept_step = across * each_block;
    }
}

static bool restart(cjpeg_scan *scan, unsigned number) {
    for (int index = 0; index < MAX_COMPONENTS; index++) scan->last[index].read = 0;
    return cjpeg_restart(scan->s, &scan->window, &scan->bits, number);
}

static bool read_mcus(cjpeg_scan *scan, size_t columns, size_t rows) {
    cjpeg_session *s = scan->s;
    size_t interval = s->decompress.restart_interval, left = interval > 0 ? interval : SIZE_MAX;
    unsigned restarts = 0;
    for (size_t row = 0; row < rows; row++) {
        // No row is longer than 65,500 pixels.
        cjpeg_check_interruption(s, s->pixels_a_step * (uint64_t)s->decompress.max_v_samp_factor);
        bool is_last_row = row + 1 == rows;
        set_kept(scan, row);
        for (size_t column = 0; column < columns;) {
            if (left == 0) {
                if (!restart(scan, restarts++)) return false;
                left = interval;
            }
            bool is_last_column = column + 1 == columns;
            if (column == 0 || is_last_column) set_padding(scan, is_last_column, is_last_row);
            size_t count = is_last_column ? 1 : columns - 1 - column;
            if (count > left) count = left;
            if (!cjpeg_read_blocks(scan, count * scan->blocks)) return false;
            column += count;
            left -= count;
        }
    }
    return true;
}

/// The most coefficients, in bytes, of a small picture. All its possible symbols and coefficients
/// fit in memory, at most 2 MB.
enum { MOST_SMALL_BYTES = 1 << 19 };

/// Allocates symbols and the preview's coefficients. A large picture gets no more than libjpeg's
/// path takes for coefficients, and uses only the part it writes. One that needs more falls back to
/// libjpeg.
static bool make_room(cjpeg_scan *scan, size_t mcus) {
    cjpeg_session *s = scan->s;
    j_decompress_ptr cinfo = &s->decompress;
    cjpeg_symbols *symbols = scan->symbols;
    cjpeg_preview_blocks *preview = &symbols->preview;
    size_t blocks = mcus * scan->blocks, bytes = blocks * sizeof(JBLOCK), kept = 0;
    // libjpeg decides if it might have too little memory; in addition to coefficients it needs less
    // than a megabyte.
    uint64_t most = s->limits->maximum_memory_bytes;
    if (most > 0 && (most < 1 << 20 || bytes > most - (1 << 20))) return false;
    bool is_small = bytes <= MOST_SMALL_BYTES;
    if (cjpeg_wants_preview(s)) {
        preview->coefficients_a_block = cjpeg_preview_eighths(s) == 1 ? 1 : DCTSIZE2;
        if (preview->coefficients_a_block > 1 && !is_small) return false;
        kept = blocks * preview->coefficients_a_block;
    }
    if (is_small) bytes = kept * sizeof(JCOEF) + blocks * CJPEG_BLOCK_SYMBOLS * sizeof(uint32_t);
    bytes += (CJPEG_BLOCK_SYMBOLS + 1) * sizeof(uint32_t);
    JCOEF *memory = malloc(bytes);
    if (memory == NULL) return false;
    s->symbols = memory;
    // The decoder writes only nonzero coefficients.
    if (preview->coefficients_a_block > 1) memset(memory, 0, kept * sizeof(JCOEF));
    for (int index = 0; kept > 0 && index < cinfo->num_components; index++) {
        size_t across = (size_t)cjpeg_blocks_across(cinfo, index), down = (size_t)cjpeg_blocks_down(cinfo, index);
        preview->coefficients[index] = memory;
        preview->blocks_in_row[index] = (cinfo->comp_info[index].width_in_blocks + across - 1) / across * across;
        memory += mcus * across * down * preview->coefficients_a_block;
    }
    // Symbols follow at a multiple of their size.
    size_t used = (kept + 1) / 2;
    scan->to = symbols->first = (uint32_t *)s->symbols + used;
    scan->limit = scan->to + (bytes / sizeof(uint32_t) - used - CJPEG_BLOCK_SYMBOLS);
    return true;
}

static bool read_scan(cjpeg_scan *scan, const JQUANT_TBL wanted[NUM_QUANT_TBLS]) {
    cjpeg_session *s = scan->s;
    if (!make_places(scan, wanted)) return false;
    scan->is_coarse = is_coarse(scan);
    size_t columns, rows;
    cjpeg_count_mcus(&s->decompress, &columns, &rows);
    if (!make_room(scan, columns * rows)) return false;
    if (!cjpeg_begin_scan(s, &scan->window, &scan->bits)) return false;
    if (!read_mcus(scan, columns, rows)) return false;
    for (int table = CJPEG_AC; table < CJPEG_TABLES; table++) scan->symbols->counts[table][CJPEG_NO_SYMBOL] = 0;
    scan->symbols->count = (size_t)(scan->to - scan->symbols->first);
    return cjpeg_end_scan(s, &scan->window, &scan->bits);
}

bool cjpeg_read_symbols(
    cjpeg_session *s, const JQUANT_TBL wanted[NUM_QUANT_TBLS], cjpeg_symbols *symbols) {
    if (!cjpeg_is_baseline(&s->decompress)) return false;
    if (!cjpeg_take_tables(s)) return false;
    cjpeg_scan *scan = malloc(sizeof *scan);
    if (scan == NULL) return false;
    s->scan = scan;
    scan->s = s;
    scan->symbols = symbols;
    scan->blocks = 0;
    memset(scan->last, 0, sizeof scan->last);
    bool is_read = read_scan(scan, wanted);
    if (!is_read) {
        // Release it before libjpeg allocates as much.
        free(s->symbols);
        s->symbols = NULL;
    }
    free(scan);
    s->scan = NULL;
    return is_read;
}
