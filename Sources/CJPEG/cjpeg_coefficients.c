#include "cjpeg_coefficients.h"

#include <stdlib.h>
#include <string.h>

// The clones are those of `cjpeg_blocks.c`, for the same reasons.
#if defined(__x86_64__) && !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

#define INLINED static inline __attribute__((always_inline))
#define IS_LIKELY(condition) __builtin_expect(condition, 1)
#define IS_UNLIKELY(condition) __builtin_expect(condition, 0)

/// The last place of a block, in coding order, and where a run may lead from the one before it.
enum { LAST = DCTSIZE2 - 1, MOST_PLACES = DCTSIZE2 + 16 };

/// AC symbols where coefficients are wanted. By the next ten bits:
///
/// - in bits 0…7 how many of them are taken, by the code and a magnitude behind it;
/// - in bits 8…15 how far the coefficient is from the one before it; 0 for the end of the block;
/// - in bits 16…31 the coefficient.
///
/// 0 where more bits are needed, or the symbol is another.
typedef struct {
    uint32_t known[1 << CJPEG_LOOK];
} value_table;

/// AC symbols that are stepped over: as many at once as have their codes in the next ten bits; of the last one the
/// magnitude may be behind them.
///
/// - in bits 0…4 how many bits are taken;
/// - in bits 5…15 how far they lead, and `UNKNOWN` where there is none, `END` where the last one is the block's end.
///
/// With 11 and 12 bits an eighth of a photograph's size comes at the same speed, with 9 bits 4 % slower; with symbols one
/// by one it takes 28 % longer.
typedef struct {
    uint16_t known[1 << CJPEG_LOOK];
} step_table;

/// Sums of these and of places below `LAST` differ.
enum { STEP = 1 << 5, UNKNOWN = 128, END = 256, MOST_STEPS = LAST + 1 };

/// A block of a unit. They are a ring, as in `cjpeg_blocks.h`.
typedef struct block_place block_place;
struct block_place {
    block_place *next;
    const cjpeg_codes *dc, *ac;
    /// Of coefficients that are wanted, else NULL.
    const value_table *values;
    const step_table *steps;
    /// The component's last DC coefficient (T.81, F.1.1.5.1).
    int *last;
    /// Where the next block goes, and how far that is from there to the one after it.
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
    /// Units in a row, rows that are left, units up to the next restart marker, and how many of these there were.
    size_t columns, rows, left;
    unsigned restarts;
    cjpeg_codes dc[NUM_HUFF_TBLS], ac[NUM_HUFF_TBLS];
    value_table values[NUM_HUFF_TBLS];
    step_table steps[NUM_HUFF_TBLS];
} coefficient_scan;

// MARK: - Tables

static void make_values(const cjpeg_codes *codes, value_table *values) {
    for (size_t bits = 0; bits < 1 << CJPEG_LOOK; bits++) {
        uint32_t known = codes->known[bits], meaning = known >> 16;
        values->known[bits] = known;
        if (meaning == 0) continue;
        uint32_t magnitude = meaning % CJPEG_SMALL_MAGNITUDES, distance = meaning / CJPEG_SMALL_MAGNITUDES;
        int value = cjpeg_value(magnitude, 31 - (unsigned)__builtin_clz(magnitude));
        values->known[bits] = (uint32_t)(uint16_t)value << 16 | distance << 8 | (known & 255);
    }
}

static void make_steps(const cjpeg_codes *codes, step_table *steps) {
    for (unsigned bits = 0; bits < 1 << CJPEG_LOOK; bits++) {
        unsigned taken = 0, distance = 0, end = 0;
        while (taken < CJPEG_LOOK && distance < MOST_STEPS && end == 0) {
            // What is not known of the bits is zero.
            unsigned found = codes->symbol[bits << taken & ((1 << CJPEG_LOOK) - 1)];
            unsigned length = found >> 8, symbol = found & 255, category = symbol & 15;
            if (length == 0 || length > CJPEG_LOOK - taken) break;
            // What no baseline file has is nothing to step over.
            if (category > 10 || (category == 0 && symbol != 0 && symbol != 0xF0)) break;
            taken += length + category;
            if (symbol == 0) {
                end = END;
            } else {
                distance += (symbol >> 4) + 1;
            }
        }
        // Beyond the block, however far.
        if (distance > MOST_STEPS) distance = MOST_STEPS;
        steps->known[bits] = (uint16_t)(taken == 0 ? UNKNOWN * STEP : taken + (distance + end) * STEP);
    }
}

static bool make_places(coefficient_scan *scan, const j_decompress_ptr cinfo, const bool wants_means[MAX_COMPONENTS]) {
    bool has_dc[NUM_HUFF_TBLS] = {false}, has_ac[NUM_HUFF_TBLS] = {false};
    bool has_values[NUM_HUFF_TBLS] = {false}, has_steps[NUM_HUFF_TBLS] = {false};
    for (int index = 0; index < cinfo->num_components; index++) {
        int dc = cinfo->comp_info[index].dc_tbl_no, ac = cinfo->comp_info[index].ac_tbl_no;
        if (!has_dc[dc] && !cjpeg_make_codes(cinfo->dc_huff_tbl_ptrs[dc], true, &scan->dc[dc])) return false;
        if (!has_ac[ac] && !cjpeg_make_codes(cinfo->ac_huff_tbl_ptrs[ac], false, &scan->ac[ac])) return false;
        bool *has_table = wants_means[index] ? has_steps : has_values;
        if (!has_table[ac] && wants_means[index]) make_steps(&scan->ac[ac], &scan->steps[ac]);
        if (!has_table[ac] && !wants_means[index]) make_values(&scan->ac[ac], &scan->values[ac]);
        has_dc[dc] = has_ac[ac] = has_table[ac] = true;
        int across = cjpeg_blocks_across(cinfo, index), down = cjpeg_blocks_down(cinfo, index);
        for (int each = 0; each < across * down; each++) {
            if (scan->blocks == CJPEG_MOST_BLOCKS) return false;
            block_place *place = &scan->places[scan->blocks++];
            *place = (block_place){
                .next = place + 1, .dc = &scan->dc[dc], .ac = &scan->ac[ac],
                .values = wants_means[index] ? NULL : &scan->values[ac], .steps = &scan->steps[ac],
                .last = &scan->last[index], .to_step = (size_t)across * DCTSIZE2,
                .component = index, .x = each % across, .y = each / across};
        }
    }
    scan->places[scan->blocks - 1].next = scan->places;
    return true;
}

// MARK: - Blocks

/// Returns false on doubt.
INLINED bool read_mean(cjpeg_bits *bits, const block_place *place) {
    uint32_t known = place->dc->known[bits->bits >> (64 - CJPEG_LOOK)];
    int difference = (int32_t)known >> 16;
    cjpeg_take(bits, known);
    if (IS_UNLIKELY(known == 0)) {
        unsigned length;
        int symbol = cjpeg_symbol(place->dc, bits->bits, &length);
        if (symbol < 0 || symbol > 11) return false;
        cjpeg_take(bits, length);
        difference = cjpeg_value(cjpeg_magnitude(bits->bits, (unsigned)symbol), (unsigned)symbol);
        cjpeg_take(bits, (unsigned)symbol);
    }
    int value = *place->last + difference;
    // Beyond what libjpeg's coefficients hold.
    if (IS_UNLIKELY(value != (JCOEF)value)) return false;
    *place->last = value;
    *place->to = (JCOEF)value;
    return true;
}

typedef enum { GOES_ON, IS_DONE, IS_DOUBT } block_state;

/// Takes a symbol that ten bits do not say, but for its magnitude, and goes on to its place.
INLINED block_state take_symbol(cjpeg_bits *bits, const cjpeg_codes *codes, unsigned *at, unsigned *category) {
    unsigned length;
    int symbol = cjpeg_symbol(codes, bits->bits, &length);
    *category = (unsigned)symbol & 15;
    // No code; or more than a baseline file may have.
    if (symbol < 0 || *category > 10) return IS_DOUBT;
    cjpeg_take(bits, length);
    if (symbol == 0) return IS_DONE;
    *at += ((unsigned)symbol >> 4) + 1;
    // Sixteen zeros have something behind them.
    if (*category == 0) return symbol == 0xF0 && *at < LAST ? GOES_ON : IS_DOUBT;
    return *at <= LAST ? GOES_ON : IS_DOUBT;
}

/// The place in natural order of each coefficient in coding order (T.81, figure A.6). What is beyond the block is found
/// behind it.
static const uint8_t natural_place[MOST_PLACES] = {
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
};

/// Reads the next AC coefficient.
INLINED block_state read_coefficient(cjpeg_bits *bits, const block_place *place, unsigned *at) {
    uint32_t known = place->values->known[bits->bits >> (64 - CJPEG_LOOK)];
    unsigned distance = known >> 8 & 255;
    cjpeg_take(bits, known);
    if (IS_LIKELY(distance != 0)) {
        *at += distance;
        place->to[natural_place[*at]] = (JCOEF)((int32_t)known >> 16);
    } else {
        if (IS_LIKELY(known != 0)) return IS_DONE;
        unsigned category;
        block_state state = take_symbol(bits, place->ac, at, &category);
        if (state != GOES_ON || category == 0) return state;
        place->to[natural_place[*at]] = (JCOEF)cjpeg_value(cjpeg_magnitude(bits->bits, category), category);
        cjpeg_take(bits, category);
    }
    if (IS_LIKELY(*at < LAST)) return GOES_ON;
    return *at == LAST ? IS_DONE : IS_DOUBT;
}

/// Returns false on doubt.
INLINED bool read_coefficients(cjpeg_bits *bits, const block_place *place) {
    unsigned at = 0;
    block_state state;
    do {
        // Twice 26 bits at most.
        cjpeg_fill(bits);
        state = read_coefficient(bits, place, &at);
        if (IS_LIKELY(state == GOES_ON)) state = read_coefficient(bits, place, &at);
    } while (IS_LIKELY(state == GOES_ON));
    return state == IS_DONE;
}

/// Steps over some AC symbols, at least one.
INLINED block_state step(cjpeg_bits *bits, const block_place *place, unsigned *at) {
    unsigned known = place->steps->known[bits->bits >> (64 - CJPEG_LOOK)], next = *at + known / STEP;
    if (IS_LIKELY(next < LAST)) {
        cjpeg_take(bits, known % STEP);
        *at = next;
        return GOES_ON;
    }
    if (IS_LIKELY(next >= END && next < END + LAST)) {
        cjpeg_take(bits, known % STEP);
        return IS_DONE;
    }
    // A long code, or the block's last place, behind which no end is coded: the symbols are the next block's from there on.
    unsigned category;
    block_state state = take_symbol(bits, place->ac, at, &category);
    if (state != GOES_ON) return state;
    cjpeg_take(bits, category);
    return *at < LAST ? GOES_ON : IS_DONE;
}

/// Returns false on doubt.
INLINED bool step_over_coefficients(cjpeg_bits *bits, const block_place *place) {
    unsigned at = 0;
    block_state state;
    do {
        // 20 bits at most, then 26.
        cjpeg_fill(bits);
        state = step(bits, place, &at);
        if (IS_LIKELY(state == GOES_ON)) state = step(bits, place, &at);
    } while (IS_LIKELY(state == GOES_ON));
    return state == IS_DONE;
}

/// Reads so many blocks, which begin with the first of a unit. Returns false on doubt.
FOR_EACH_PROCESSOR static bool read_blocks(coefficient_scan *scan, size_t count) {
    // A copy, so that they stay in registers.
    cjpeg_bits bits = scan->bits;
    const uint8_t *limit = scan->window.limit;
    block_place *place = &scan->places[0];
    for (; count > 0; count--, place = place->next) {
        if (IS_UNLIKELY(bits.next > limit)) {
            scan->bits = bits;
            if (!cjpeg_move_window(&scan->window, &scan->bits)) return false;
            bits = scan->bits;
            limit = scan->window.limit;
        }
        cjpeg_fill(&bits);
        bool is_read;
        if (place->values == NULL) {
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

// MARK: - Units

bool cjpeg_begin_coefficients(cjpeg_session *s, const bool wants_means[MAX_COMPONENTS]) {
    if (!cjpeg_is_baseline(&s->decompress)) return false;
    coefficient_scan *scan = malloc(sizeof *scan);
    if (scan == NULL) return false;
    s->scan = scan;
    scan->blocks = 0;
    memset(scan->last, 0, sizeof scan->last);
    scan->restarts = 0;
    scan->left = s->decompress.restart_interval > 0 ? s->decompress.restart_interval : SIZE_MAX;
    cjpeg_count_units(&s->decompress, &scan->columns, &scan->rows);
    return make_places(scan, &s->decompress, wants_means) && cjpeg_begin_scan(s, &scan->window, &scan->bits);
}

static bool restart(coefficient_scan *scan, size_t interval) {
    scan->left = interval;
    memset(scan->last, 0, sizeof scan->last);
    return cjpeg_restart(&scan->window, &scan->bits, scan->restarts++);
}

static bool read_units(coefficient_scan *scan, size_t interval) {
    for (size_t column = 0; column < scan->columns;) {
        if (scan->left == 0 && !restart(scan, interval)) return false;
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
    // A single component has units of one block, and several rows of them where others had one.
    int lines = cinfo->num_components == 1 ? cinfo->comp_info[0].v_samp_factor : 1;
    for (int line = 0; line < lines && scan->rows > 0; line++) {
        for (size_t each = 0; each < scan->blocks; each++) {
            block_place *place = &scan->places[each];
            place->to = rows[place->component][line + place->y][place->x];
        }
        if (!read_units(scan, cinfo->restart_interval)) return false;
    }
    return true;
}

bool cjpeg_end_coefficients(cjpeg_session *s) {
    const coefficient_scan *scan = s->scan;
    return scan->rows == 0 && cjpeg_end_scan(s, &scan->window, &scan->bits);
}
