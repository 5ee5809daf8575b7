#include "cjpeg_coefficients.h"

#include <stdlib.h>
#include <string.h>

#include "cjpeg_processors.h"
#include "cjpeg_tables.h"

/// The last place of a block in coding order.
enum { LAST = DCTSIZE2 - 1 };

/// A block of an MCU. They form a ring, as in `cjpeg_blocks.h`.
typedef struct block_place block_place;
struct block_place {
    block_place *next;
    const cjpeg_codes *dc, *ac;
    /// Set if coefficients are wanted; else NULL, and `steps` is set.
    const cjpeg_magnitudes *magnitudes;
    const cjpeg_steps *steps;
    /// The component's last DC coefficient (T.81, F.1.1.5.1).
    int *last;
    /// The next block's destination, and the distance to the following one.
    JCOEF *to;
    size_t to_step;
    int component, x, y;
};

typedef struct {
    cjpeg_window window;
    cjpeg_bits bits;
    block_place places[CJPEG_MOST_BLOCKS];
    size_t blocks;
    int last[MAX_COMPONENTS];
    /// MCUs in a row, rows left, MCUs up to the next restart marker, and the markers passed so far.
    size_t columns, rows, left;
    unsigned restarts;
} coefficient_scan;

// MARK: - Tables

static bool make_places(coefficient_scan *scan, cjpeg_session *s, const bool wants_means[MAX_COMPONENTS]) {
    const j_decompress_ptr cinfo = &s->decompress;
    for (int index = 0; index < cinfo->num_components; index++) {
        int dc = cinfo->comp_info[index].dc_tbl_no, ac = cinfo->comp_info[index].ac_tbl_no;
        int across = cjpeg_blocks_across(cinfo, index), down = cjpeg_blocks_down(cinfo, index);
        block_place first = {
            .dc = cjpeg_cached_codes(s->tables, cinfo->dc_huff_tbl_ptrs[dc], true, dc),
            .ac = cjpeg_cached_codes(s->tables, cinfo->ac_huff_tbl_ptrs[ac], false, ac),
            .last = &scan->last[index], .to_step = (size_t)across * DCTSIZE2, .component = index};
        if (first.dc == NULL || first.ac == NULL) return false;
        if (wants_means[index]) {
            first.steps = cjpeg_cached_steps(s->tables, ac);
        } else {
            first.magnitudes = cjpeg_cached_magnitudes(s->tables, ac);
        }
        for (int each = 0; each < across * down; each++) {
            if (scan->blocks == CJPEG_MOST_BLOCKS) return false;
            block_place *place = &scan->places[scan->blocks++];
            *place = first;
            place->next = place + 1;
            place->x = each % across;
            place->y = each / across;
        }
    }
    scan->places[scan->blocks - 1].next = scan->places;
    return true;
}

// MARK: - Blocks

/// Returns false to fall back to libjpeg.
INLINED bool read_mean(cjpeg_bits *bits, const block_place *place) {
    int difference;
    if (IS_UNLIKELY(!cjpeg_take_difference(bits, place->dc, &difference))) return false;
    int value = *place->last + difference;
    // Out of range for libjpeg's coefficients.
    if (IS_UNLIKELY(value != (JCOEF)value)) return false;
    *place->last = value;
    *place->to = (JCOEF)value;
    return true;
}

typedef enum { CONTINUES, IS_DONE, FALLS_BACK } block_state;

/// Takes a symbol that ten bits do not hold, without its magnitude, and advances to its place.
INLINED block_state take_symbol(cjpeg_bits *bits, const cjpeg_codes *codes, unsigned *at, unsigned *category) {
    unsigned length;
    int symbol = cjpeg_symbol(codes, bits->bits, &length);
    *category = (unsigned)symbol & 15;
    // No code, or a category beyond baseline.
    if (symbol < 0 || *category > 10) return FALLS_BACK;
    cjpeg_take(bits, length);
    if (symbol == 0) return IS_DONE;
    *at += ((unsigned)symbol >> 4) + 1;
    // A coefficient must follow sixteen zeros.
    if (*category == 0) return symbol == 0xF0 && *at < LAST ? CONTINUES : FALLS_BACK;
    return *at <= LAST ? CONTINUES : FALLS_BACK;
}

/// Reads the next AC coefficient.
///
/// - `fills`: true for every second one; see `cjpeg_fill`.
INLINED block_state read_coefficient(cjpeg_bits *bits, const block_place *place, unsigned *at, bool fills) {
    uint32_t known = place->magnitudes->known[bits->bits >> (64 - CJPEG_LOOK)];
    if (fills) cjpeg_fill(bits);
    unsigned distance = known >> 8 & 255;
    cjpeg_take(bits, known);
    if (IS_LIKELY(distance != 0)) {
        *at += distance;
        place->to[cjpeg_natural_place[*at]] = (JCOEF)((int32_t)known >> 16);
    } else {
        if (IS_LIKELY(known != 0)) return IS_DONE;
        unsigned category;
        if (!fills) cjpeg_fill(bits);
        block_state state = take_symbol(bits, place->ac, at, &category);
        if (state == CONTINUES && category != 0) {
            place->to[cjpeg_natural_place[*at]] = (JCOEF)cjpeg_extend(cjpeg_magnitude(bits->bits, category), category);
            cjpeg_take(bits, category);
        }
        cjpeg_fill(bits);
        if (state != CONTINUES || category == 0) return state;
    }
    if (IS_LIKELY(*at < LAST)) return CONTINUES;
    return *at == LAST ? IS_DONE : FALLS_BACK;
}

/// Returns false to fall back to libjpeg.
INLINED bool read_coefficients(cjpeg_bits *bits, const block_place *place) {
    unsigned at = 0;
    block_state state;
    do {
        state = read_coefficient(bits, place, &at, false);
        if (IS_LIKELY(state == CONTINUES)) state = read_coefficient(bits, place, &at, true);
    } while (IS_LIKELY(state == CONTINUES));
    return state == IS_DONE;
}

/// Skips at least one AC symbol. `fills` as in `read_coefficient`.
INLINED block_state step(cjpeg_bits *bits, const block_place *place, unsigned *at, bool fills) {
    unsigned known = place->steps->known[bits->bits >> (64 - CJPEG_LOOK)], next = *at + known / CJPEG_STEP;
    if (fills) cjpeg_fill(bits);
    if (IS_LIKELY(next < LAST)) {
        cjpeg_take(bits, known % CJPEG_STEP);
        *at = next;
        return CONTINUES;
    }
    if (IS_LIKELY(next >= CJPEG_END && next < CJPEG_END + LAST)) {
        cjpeg_take(bits, known % CJPEG_STEP);
        return IS_DONE;
    }
    // A long code, or the block's last place. No end is coded after that, so the following symbols
    // are the next block's.
    unsigned category;
    if (!fills) cjpeg_fill(bits);
    block_state state = take_symbol(bits, place->ac, at, &category);
    if (state == CONTINUES) cjpeg_take(bits, category);
    cjpeg_fill(bits);
    if (state != CONTINUES) return state;
    return *at < LAST ? CONTINUES : IS_DONE;
}

/// Returns false to fall back to libjpeg.
INLINED bool step_over_coefficients(cjpeg_bits *bits, const block_place *place) {
    unsigned at = 0;
    block_state state;
    do {
        state = step(bits, place, &at, false);
        if (IS_LIKELY(state == CONTINUES)) state = step(bits, place, &at, true);
    } while (IS_LIKELY(state == CONTINUES));
    return state == IS_DONE;
}

/// Reads that many blocks, starting with the first of an MCU. Returns false to fall back to
/// libjpeg.
FOR_EACH_PROCESSOR static bool read_blocks(coefficient_scan *scan, size_t count) {
    // A copy stays in registers.
    cjpeg_bits bits = scan->bits;
    const uint8_t *limit = scan->window.limit;
    block_place *place = &scan->places[0];
    cjpeg_fill(&bits);
    for (; count > 0; count--, place = place->next) {
        if (IS_UNLIKELY(bits.next > limit)) {
            scan->bits = bits;
            if (!cjpeg_move_window(&scan->window, &scan->bits)) return false;
            bits = scan->bits;
            limit = scan->window.limit;
        }
        bool is_read;
        if (place->magnitudes == NULL) {
            is_read = read_mean(&bits, place) && step_over_coefficients(&bits, place);
        } else {
            memset(place->to, 0, sizeof(JBLOCK));
            is_read = read_mean(&bits, place) && read_coefficients(&bits, place);
        }
        if (IS_UNLIKELY(!is_read)) return false;
        place->to += place->to_step;
    }
    scan->bits = bits;
    return true;
}

// MARK: - MCUs

bool cjpeg_begin_coefficients(cjpeg_session *s, const bool wants_means[MAX_COMPONENTS]) {
    if (!cjpeg_is_baseline(&s->decompress)) return false;
    coefficient_scan *scan = malloc(sizeof *scan);
    if (scan == NULL) return false;
    s->scan = scan;
    scan->blocks = 0;
    memset(scan->last, 0, sizeof scan->last);
    scan->restarts = 0;
    scan->left = s->decompress.restart_interval > 0 ? s->decompress.restart_interval : SIZE_MAX;
    cjpeg_count_mcus(&s->decompress, &scan->columns, &scan->rows);
    return cjpeg_take_tables(s) && make_places(scan, s, wants_means) && cjpeg_begin_scan(s, &scan->window, &scan->bits);
}

static bool restart(cjpeg_session *s, coefficient_scan *scan) {
    scan->left = s->decompress.restart_interval;
    memset(scan->last, 0, sizeof scan->last);
    return cjpeg_restart(s, &scan->window, &scan->bits, scan->restarts++);
}

static bool read_mcus(cjpeg_session *s, coefficient_scan *scan) {
    for (size_t column = 0; column < scan->columns;) {
        if (scan->left == 0 && !restart(s, scan)) return false;
        size_t count = scan->columns - column;
        if (count > scan->left) count = scan->left;
        if (!read_blocks(scan, count * scan->blocks)) return false;
        column += count;
        scan->left -= count;
    }
    scan->rows--;
    return true;
}

bool cjpeg_read_coefficients(cjpeg_session *s, const JBLOCKARRAY rows[MAX_COMPONENTS]) {
    coefficient_scan *scan = s->scan;
    const j_decompress_ptr cinfo = &s->decompress;
    // A single component has MCUs of one block, and several rows of them where others had one.
    int lines = cinfo->num_components == 1 ? cinfo->comp_info[0].v_samp_factor : 1;
    for (int line = 0; line < lines && scan->rows > 0; line++) {
        for (size_t each = 0; each < scan->blocks; each++) {
            block_place *place = &scan->places[each];
            place->to = rows[place->component][line + place->y][place->x];
        }
        if (!read_mcus(s, scan)) return false;
    }
    return true;
}

bool cjpeg_end_coefficients(cjpeg_session *s) {
    const coefficient_scan *scan = s->scan;
    return scan->rows == 0 && cjpeg_end_scan(s, &scan->window, &scan->bits);
}
