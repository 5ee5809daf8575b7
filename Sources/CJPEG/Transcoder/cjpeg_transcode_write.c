#include "cjpeg_transcode.h"

#include <string.h>

#include "cjpeg_processors.h"
#include "cjpeg_huffman.h"
#include "cjpeg_tables.h"

// The second half of the transcoder: from symbols and their frequencies to the end of a file (ITU-T
// T.81, B.2 and F.1.2).

// MARK: - Marker segments

typedef struct {
    uint8_t *next;
} writer;

/// The most bytes of all segments: four quantisation tables, the frame, four Huffman tables and the
/// scan's header.
enum { MOST_SEGMENT_BYTES = 4 * 134 + 19 + 4 * 278 + 14 };

static void put_byte(writer *to, unsigned value) { *to->next++ = (uint8_t)value; }

static void put_word(writer *to, unsigned value) {
    put_byte(to, value >> 8);
    put_byte(to, value & 255);
}

static void put_segment(writer *to, unsigned marker, unsigned length) {
    put_word(to, 0xFF00 | marker);
    put_word(to, length);
}

/// Writes DQT (T.81, B.2.4.1) for a slot. Returns whether its steps have 8 bits.
static bool put_steps(writer *to, const JQUANT_TBL *table, int slot) {
    bool is_wide = false;
    for (int place = 0; place < DCTSIZE2; place++) is_wide = is_wide || table->quantval[place] > 255;
    put_segment(to, 0xDB, is_wide ? 3 + 2 * DCTSIZE2 : 3 + DCTSIZE2);
    put_byte(to, (is_wide ? 0x10u : 0) | (unsigned)slot);
    for (int place = 0; place < DCTSIZE2; place++) {
        unsigned step = table->quantval[cjpeg_natural_place[place]];
        if (is_wide) {
            put_word(to, step);
        } else {
            put_byte(to, step);
        }
    }
    return !is_wide;
}

/// Writes SOF0, or SOF1 for steps that a baseline file cannot have (T.81, B.2.2).
static void put_frame(writer *to, const j_compress_ptr cinfo, bool is_baseline) {
    put_segment(to, is_baseline ? 0xC0 : 0xC1, 8 + 3 * (unsigned)cinfo->num_components);
    put_byte(to, 8);
    put_word(to, cinfo->image_height);
    put_word(to, cinfo->image_width);
    put_byte(to, (unsigned)cinfo->num_components);
    for (int index = 0; index < cinfo->num_components; index++) {
        const jpeg_component_info *component = &cinfo->comp_info[index];
        put_byte(to, (unsigned)component->component_id);
        put_byte(to, (unsigned)(component->h_samp_factor << 4 | component->v_samp_factor));
        put_byte(to, (unsigned)component->quant_tbl_no);
    }
}

/// Writes DHT (T.81, B.2.4.2).
static void put_codes(writer *to, const JHUFF_TBL *table, unsigned number) {
    unsigned count = 0;
    for (int length = 1; length <= 16; length++) count += table->bits[length];
    put_segment(to, 0xC4, 19 + count);
    put_byte(to, number >= CJPEG_AC ? 0x10 | (number - CJPEG_AC) : number);
    for (int length = 1; length <= 16; length++) put_byte(to, table->bits[length]);
    for (unsigned each = 0; each < count; each++) put_byte(to, table->huffval[each]);
}

/// Writes SOS (T.81, B.2.3).
static void put_scan(writer *to, const j_compress_ptr cinfo, const cjpeg_symbols *symbols) {
    put_segment(to, 0xDA, 6 + 2 * (unsigned)cinfo->num_components);
    put_byte(to, (unsigned)cinfo->num_components);
    for (int index = 0; index < cinfo->num_components; index++) {
        put_byte(to, (unsigned)cinfo->comp_info[index].component_id);
        put_byte(to, symbols->table_of[index] * 0x11);
    }
    put_byte(to, 0);
    put_byte(to, DCTSIZE2 - 1);
    put_byte(to, 0);
}

// MARK: - Codes

/// Code words, indexed by a symbol's bits 16…25. Bits 0…5 are the length of code and magnitude
/// together; above them is the code, with zeros for the magnitude.
///
/// They have 26 bits at most. An AC symbol has 16 and 10, a DC symbol 12 and 11: its table has
/// twelve symbols and the unused code of all ones, so no code exceeds 12 bits.
typedef struct {
    uint32_t of[CJPEG_TABLES * 256];
} code_words;

/// Assigns the codes of a table's symbols (T.81, annex C). Returns how many bits they take in
/// total.
static uint64_t make_words(const JHUFF_TBL *table, const uint32_t *counts, uint32_t *words) {
    uint64_t bits = 0;
    uint32_t code = 0, place = 0;
    for (unsigned length = 1; length <= 16; length++) {
        for (unsigned each = 0; each < table->bits[length]; each++) {
            unsigned symbol = table->huffval[place++], category = symbol & 15;
            words[symbol] = code++ << (category + 6) | (length + category);
            bits += (uint64_t)counts[symbol] * (length + category);
        }
        code <<= 1;
    }
    return bits;
}

// MARK: - The scan

/// Symbols written before their bytes, still in the L1 cache, are stuffed.
enum { STEP_SYMBOLS = 2048, MOST_STEP_BYTES = STEP_SYMBOLS * 27 / 8 + 2 * sizeof(uint64_t) };

/// Fewer than 8 bits without a byte yet, in the lower end.
typedef struct {
    uint64_t bits;
    /// Only the lower six bits are meaningful while symbols are added.
    uint32_t count;
} pending;

/// A shift uses only the lower six bits of its count, so the word needs no masking. With BMI2, and
/// codes shifted in advance, writing takes three quarters of the time.
INLINED void add(pending *bits, uint32_t symbol, const code_words *words) {
    uint32_t word = words->of[symbol >> 16];
    bits->bits = bits->bits << (word & 63) | (word >> 6 | (symbol & 0xFFFF));
    bits->count += word;
}

/// Stores eight bytes and advances over the whole ones; the rest is overwritten later.
INLINED uint8_t *put_bytes(pending *bits, uint8_t *to) {
    uint64_t eight = bits->bits << (-bits->count & 63);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    eight = __builtin_bswap64(eight);
#endif
    memcpy(to, &eight, sizeof eight);
    to += (bits->count & 63) >> 3;
    bits->count &= 7;
    return to;
}

/// Codes of two symbols, 52 bits at most, fit behind 7 pending bits; a pair takes 2 bits or more.
FOR_EACH_PROCESSOR static uint8_t *put_symbols(
    const uint32_t *symbols, size_t count, const code_words *words, pending *state, uint8_t *to
) {
    pending bits = *state;
    for (; count >= 2; count -= 2, symbols += 2) {
        add(&bits, symbols[0], words);
        add(&bits, symbols[1], words);
        to = put_bytes(&bits, to);
    }
    if (count > 0) {
        add(&bits, symbols[0], words);
        to = put_bytes(&bits, to);
    }
    *state = bits;
    return to;
}

/// Copies, with a zero behind each 0xFF (T.81, B.1.1.5).
static uint8_t *put_stuffed(const uint8_t *from, size_t count, uint8_t *to) {
    const uint8_t *end = from + count;
    while (from < end) {
        const uint8_t *found = memchr(from, 0xFF, (size_t)(end - from));
        size_t plain = found != NULL ? (size_t)(found - from) + 1 : (size_t)(end - from);
        memcpy(to, from, plain);
        to += plain;
        from += plain;
        if (found != NULL) *to++ = 0;
    }
    return to;
}

static void advance(cjpeg_session *s, const uint8_t *end) {
    size_t count = (size_t)(end - s->destination.next_output_byte);
    s->destination.next_output_byte += count;
    s->destination.free_in_buffer -= count;
}

static void put_data(cjpeg_session *s, const cjpeg_symbols *symbols, const code_words *words) {
    uint8_t bytes[MOST_STEP_BYTES];
    pending bits = {0};
    const uint32_t *next = symbols->first;
    for (size_t left = symbols->count; left > 0;) {
        size_t count = left < STEP_SYMBOLS ? left : STEP_SYMBOLS;
        uint8_t *end = put_symbols(next, count, words, &bits, bytes);
        next += count;
        left -= count;
        if (left == 0 && bits.count > 0) {
            // Pad the last byte with ones (T.81, F.1.2.3).
            bits.bits = bits.bits << (8 - bits.count) | (0xFFu >> bits.count);
            bits.count = 8;
            end = put_bytes(&bits, end);
        }
        size_t most = 2 * (size_t)(end - bytes);
        // Grows by a quarter if 0xFF is more frequent than expected.
        if (s->destination.free_in_buffer < most) cjpeg_reserve_output(s, most + s->output_capacity / 4);
        advance(s, put_stuffed(bytes, (size_t)(end - bytes), s->destination.next_output_byte));
        // About one coefficient in seven is nonzero.
        cjpeg_check_interruption(s, count * 8);
    }
}

void cjpeg_write_symbols(cjpeg_session *s, const cjpeg_symbols *symbols, cjpeg_result *result) {
    const j_compress_ptr cinfo = &s->compress;
    cjpeg_reserve_output(s, MOST_SEGMENT_BYTES);
    writer to = {s->destination.next_output_byte};
    bool is_put[NUM_QUANT_TBLS] = {false}, is_baseline = true;
    for (int index = 0; index < cinfo->num_components; index++) {
        int slot = cinfo->comp_info[index].quant_tbl_no;
        if (!is_put[slot] && !put_steps(&to, cinfo->quant_tbl_ptrs[slot], slot)) is_baseline = false;
        is_put[slot] = true;
    }
    put_frame(&to, cinfo, is_baseline);
    code_words words;
    uint64_t bits = 0;
    for (unsigned table = 0; table < CJPEG_TABLES; table++) {
        // Each component has a DC and an AC symbol for each block.
        bool is_used = false;
        for (int index = 0; index < cinfo->num_components; index++) {
            is_used = is_used || symbols->table_of[index] == table % CJPEG_AC;
        }
        if (!is_used) continue;
        JHUFF_TBL best;
        cjpeg_make_best_table(symbols->counts[table], &best);
        bits += make_words(&best, symbols->counts[table], words.of + 256 * table);
        put_codes(&to, &best, table);
    }
    put_scan(&to, cinfo, symbols);
    advance(s, to.next);
    // Output that would be discarded need not be written.
    size_t written = s->output_capacity - s->destination.free_in_buffer;
    if (bits / 8 + written >= s->maximum_output) return;
    // About one byte in 128 is 0xFF.
    cjpeg_reserve_output(s, bits / 8 + bits / 512 + 2 * MOST_STEP_BYTES);
    put_data(s, symbols, &words);
    cjpeg_reserve_output(s, 2);
    s->destination.next_output_byte[0] = 0xFF;
    s->destination.next_output_byte[1] = 0xD9;
    advance(s, s->destination.next_output_byte + 2);
    cjpeg_take_output(s, result);
}
