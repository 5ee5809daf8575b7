#include "cjpeg_blocks.h"

#include <string.h>

#include "cjpeg_processors.h"

// Blocks from the source's entropy-coded data to the symbols of the result (ITU-T T.81, F.2.2 and
// F.1.2). A coefficient is requantised when it is decoded, and lives only in registers.

// MARK: - Blocks

/// Reads a DC coefficient and writes its difference. Returns false to fall back to libjpeg.
INLINED bool read_dc(cjpeg_bits *bits, const cjpeg_place *place, uint32_t **to) {
    int difference;
    if (IS_UNLIKELY(!cjpeg_take_difference(bits, place->dc, &difference))) return false;
    int value = place->last->read + difference;
    // Out of range for libjpeg's coefficients.
    if (IS_UNLIKELY(value != (JCOEF)value)) return false;
    place->last->read = value;
    *place->kept = (JCOEF)value;
    int result = cjpeg_requantised(value, place->to->ratio[0]);
    if (IS_UNLIKELY(result < CJPEG_LEAST_DC || result > CJPEG_MOST_COEFFICIENT)) return false;
    uint32_t symbol = cjpeg_symbol_of(result - place->last->written);
    place->last->written = result;
    place->dc_counts[symbol >> 16]++;
    *(*to)++ = symbol + place->dc_table;
    return true;
}

/// A block during the reading of its AC coefficients, in registers.
typedef struct {
    cjpeg_bits bits;
    const cjpeg_codes *codes;
    const cjpeg_requantisation *to;
    uint32_t *counts;
    uint32_t table;
    /// The places of the last coefficient read and of the last one written, in units of `PLACE`.
    /// `FALLBACK` ends the reading.
    unsigned at, written;
    uint32_t *next;
    /// Destination of coefficients that are kept as in the source.
    JCOEF *kept;
} block_state;

/// Places are offsets into `small`.
enum { PLACE = CJPEG_SMALL_MAGNITUDES, LAST = (DCTSIZE2 - 1) * PLACE, FALLBACK = 2 * DCTSIZE2 * PLACE };

/// A constant that distinguishes otherwise equal loops.
typedef enum {
    /// Most coefficients read are also written.
    USUAL,
    /// For small pictures: their preview needs more than DC coefficients.
    KEEPING,
    /// Many coefficients become zero, unpredictably.
    COARSE,
} loop_kind;

INLINED void keep(block_state *block, uint32_t magnitude) {
    // Beyond the block: falls back to libjpeg.
    if (block->at > LAST) return;
    unsigned category = 31 - (unsigned)__builtin_clz(magnitude);
    block->kept[cjpeg_natural_place[block->at / PLACE]] = (JCOEF)cjpeg_extend(magnitude, category);
}

/// Reads a symbol that ten bits do not hold, and advances the block. Returns the symbol to write,
/// or 0 for none; `*is_end` says whether it ends the block.
INLINED uint32_t read_long(block_state *block, loop_kind kind, bool *is_end) {
    cjpeg_bits *bits = &block->bits;
    unsigned length;
    int symbol = cjpeg_symbol(block->codes, bits->bits, &length);
    unsigned category = (unsigned)symbol & 15;
    *is_end = symbol == 0;
    if (symbol < 0 || category > 10) {
        // No code, or a category beyond baseline.
        block->at = FALLBACK;
        return 0;
    }
    cjpeg_take(bits, length);
    if (category == 0) {
        if (symbol == 0) return 0;
        // A coefficient must follow sixteen zeros.
        block->at += 16 * PLACE;
        if (symbol != 0xF0 || block->at >= LAST) block->at = FALLBACK;
        return 0;
    }
    uint32_t magnitude = cjpeg_magnitude(bits->bits, category);
    cjpeg_take(bits, category);
    block->at += (((unsigned)symbol >> 4) + 1) * PLACE;
    if (kind == KEEPING) keep(block, magnitude);
    if (category <= CJPEG_SMALL_BITS) return block->to->small[block->at + magnitude];
    return cjpeg_symbol_of(cjpeg_requantised(cjpeg_extend(magnitude, category), block->to->ratio[block->at / PLACE]));
}

INLINED void write_coefficient(block_state *block, uint32_t result) {
    unsigned distance = block->at - block->written;
    block->written = block->at;
    while (IS_UNLIKELY(distance > 16 * PLACE)) {
        *block->next++ = 0xF0u << 16 | block->table;
        block->counts[0xF0]++;
        distance -= 16 * PLACE;
    }
    // The run, times 2²⁰.
    result += (distance - PLACE) * ((1u << 20) / PLACE);
    block->counts[result >> 16]++;
    *block->next++ = result + block->table;
}

/// Does the same without a branch on zero. An unneeded symbol is overwritten by the next, and
/// counted under `CJPEG_NO_SYMBOL`.
INLINED void write_or_not(block_state *block, uint32_t result) {
    unsigned distance = block->at - block->written;
    if (IS_UNLIKELY(distance > 16 * PLACE)) {
        if (result != 0) write_coefficient(block, result);
        return;
    }
    unsigned is_written = result != 0;
    result += (distance - PLACE) * ((1u << 20) / PLACE);
    block->counts[is_written ? result >> 16 : CJPEG_NO_SYMBOL]++;
    *block->next = result + block->table;
    block->next += is_written;
    block->written = is_written ? block->at : block->written;
}

/// Reads the next AC symbol and writes its result. Returns whether another follows.
///
/// - `fills`: true for every second one; see `cjpeg_fill`.
INLINED bool read_ac(block_state *block, loop_kind kind, bool fills) {
    uint32_t known = block->codes->known[block->bits.bits >> (64 - CJPEG_LOOK)], result;
    if (fills) cjpeg_fill(&block->bits);
    cjpeg_take(&block->bits, known);
    if (IS_LIKELY(known >> 16 != 0)) {
        unsigned index = block->at + (known >> 16);
        result = block->to->small[index];
        block->at = index & ~(PLACE - 1u);
        if (kind == KEEPING) keep(block, index & (PLACE - 1u));
    } else {
        bool is_end = known != 0;
        if (IS_LIKELY(is_end)) return false;
        if (!fills) cjpeg_fill(&block->bits);
        result = read_long(block, kind, &is_end);
        cjpeg_fill(&block->bits);
        if (is_end) return false;
    }
    if (kind == COARSE) {
        write_or_not(block, result);
    } else if (result != 0) {
        write_coefficient(block, result);
    }
    return IS_LIKELY(block->at < LAST);
}

/// Replaces a padding block by zero difference and no coefficients.
static uint32_t *write_padding(const cjpeg_scan *scan, const cjpeg_place *place, uint32_t *to) {
    unsigned table = scan->symbols->table_of[place->component];
    scan->symbols->counts[table][0]++;
    scan->symbols->counts[CJPEG_AC + table][0]++;
    *to++ = place->dc_table;
    *to++ = place->ac_table;
    return to;
}

INLINED bool read_blocks(cjpeg_scan *scan, size_t count, loop_kind kind) {
    block_state block = {.bits = scan->bits, .next = scan->to};
    const uint8_t *limit = scan->window.limit;
    cjpeg_place *place = &scan->places[0];
    cjpeg_fill(&block.bits);
    for (; count > 0; count--, place = place->next) {
        if (IS_UNLIKELY(block.next > scan->limit)) return false;
        if (IS_UNLIKELY(block.bits.next > limit)) {
            // A copy, so the bits stay in registers.
            cjpeg_bits bits = block.bits;
            if (!cjpeg_move_window(&scan->window, &bits)) return false;
            block.bits = bits;
            limit = scan->window.limit;
        }
        uint32_t *begin = block.next;
        int dc_before = place->last->written;
        if (IS_UNLIKELY(!read_dc(&block.bits, place, &block.next))) return false;
        block.codes = place->ac;
        block.to = place->to;
        block.counts = place->ac_counts;
        block.table = place->ac_table;
        block.at = block.written = 0;
        block.kept = place->kept;
        place->kept += place->kept_step;
        while (read_ac(&block, kind, false) && read_ac(&block, kind, true)) {}
        if (IS_UNLIKELY(block.at > LAST)) return false;
        // No branch: whether the last coefficient is present is unpredictable.
        *block.next = block.table;
        unsigned has_end = block.written < LAST;
        block.next += has_end;
        block.counts[0] += has_end;
        if (IS_UNLIKELY(place->is_padding)) {
            place->last->written = dc_before;
            block.next = write_padding(scan, place, begin);
        }
    }
    scan->bits = block.bits;
    scan->to = block.next;
    return true;
}

FOR_EACH_PROCESSOR static bool read_usual(cjpeg_scan *scan, size_t count) { return read_blocks(scan, count, USUAL); }

FOR_EACH_PROCESSOR static bool read_coarse(cjpeg_scan *scan, size_t count) { return read_blocks(scan, count, COARSE); }

static bool read_keeping(cjpeg_scan *scan, size_t count) { return read_blocks(scan, count, KEEPING); }

bool cjpeg_read_blocks(cjpeg_scan *scan, size_t count) {
    if (scan->symbols->preview.coefficients_a_block == DCTSIZE2) return read_keeping(scan, count);
    return scan->is_coarse ? read_coarse(scan, count) : read_usual(scan, count);
}
