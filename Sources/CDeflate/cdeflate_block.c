#include "cdeflate_block.h"

#include <stdlib.h>
#include <string.h>

enum {
    LONGEST_CODE = 15,
    END_OF_BLOCK = 256,
    /// A stored block's length has 16 bits.
    MOST_STORED = 65535,
};

// With BMI2, shifts by variable counts take a third as long. The clones are chosen before a
// sanitizer is set up, which the thread sanitizer does not survive.
#if defined(__x86_64__) && !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

#define INLINED static inline __attribute__((always_inline))

static unsigned distance_base(unsigned code) {
    return code < 2 ? code + 1 : ((2 + (code & 1)) << (code / 2 - 1)) + 1;
}

// MARK: - Huffman codes

/// A code with its bits reversed, as they are written (RFC 1951 section 3.1.1).
typedef struct {
    uint16_t code;
    uint8_t length;
} huffman_code;

typedef struct {
    uint32_t count;
    uint16_t symbol;
} weight;

static int by_count(const void *left, const void *right) {
    const weight *a = left, *b = right;
    if (a->count != b->count) return a->count < b->count ? -1 : 1;
    return (int)a->symbol - (int)b->symbol;
}

/// Minimum redundancy in place: ascending counts become descending lengths (A. Moffat, J.
/// Katajainen: In-Place Calculation of Minimum-Redundancy Codes, 1995).
static void make_lengths(weight *weights, int count) {
    weights[0].count += weights[1].count;
    int leaf = 2, root = 0;
    for (int next = 1; next < count - 1; next++) {
        if (leaf >= count || weights[root].count < weights[leaf].count) {
            weights[next].count = weights[root].count;
            weights[root++].count = (uint32_t)next;
        } else {
            weights[next].count = weights[leaf++].count;
        }
        if (leaf >= count || (root < next && weights[root].count < weights[leaf].count)) {
            weights[next].count += weights[root].count;
            weights[root++].count = (uint32_t)next;
        } else {
            weights[next].count += weights[leaf++].count;
        }
    }
    weights[count - 2].count = 0;
    for (int next = count - 3; next >= 0; next--) {
        weights[next].count = weights[weights[next].count].count + 1;
    }
    int available = 1, used = 0, next = count - 1;
    uint32_t depth = 0;
    for (root = count - 2; available > 0; depth++) {
        for (; root >= 0 && weights[root].count == depth; root--) used++;
        for (; available > used; available--) weights[next--].count = depth;
        available = 2 * used;
        used = 0;
    }
}

/// Makes the code of an alphabet of at most `CDEFLATE_LITERALS` symbols; two or more occur, the
/// others get length 0. Codes have at most `longest` bits, enough for all symbols.
static void make_codes(
    const uint32_t *counts, int symbols, unsigned longest, huffman_code *codes) {
    weight weights[CDEFLATE_LITERALS];
    int used = 0;
    memset(codes, 0, (size_t)symbols * sizeof *codes);
    for (int symbol = 0; symbol < symbols; symbol++) {
        if (counts[symbol] > 0) weights[used++] = (weight){counts[symbol], (uint16_t)symbol};
    }
    qsort(weights, (size_t)used, sizeof *weights, by_count);
    make_lengths(weights, used);
    // Lengths beyond the longest are cut. The excess is taken back from the codes that lose least
    // by growing, until the code is complete again.
    uint32_t lengths[33] = {0};
    for (int index = 0; index < used; index++) {
        lengths[weights[index].count < longest ? weights[index].count : longest]++;
    }
    uint32_t total = 0;
    for (unsigned length = 1; length <= longest; length++) {
        total += lengths[length] << (longest - length);
    }
    for (; total > 1u << longest; total--) {
        unsigned length = longest - 1;
        while (lengths[length] == 0) length--;
        lengths[longest]--;
        lengths[length]--;
        lengths[length + 1] += 2;
    }
    int index = 0;
    for (unsigned length = longest; length > 0; length--) {
        for (uint32_t number = 0; number < lengths[length]; number++) {
            codes[weights[index++].symbol].length = (uint8_t)length;
        }
    }
    // RFC 1951 section 3.2.2.
    uint32_t next[LONGEST_CODE + 2] = {0};
    for (unsigned length = 1; length <= longest; length++) {
        next[length + 1] = (next[length] + lengths[length]) << 1;
    }
    for (int symbol = 0; symbol < symbols; symbol++) {
        unsigned length = codes[symbol].length;
        if (length == 0) continue;
        uint32_t code = next[length]++, reversed = 0;
        for (unsigned bit = 0; bit < length; bit++) {
            reversed |= (code >> bit & 1) << (length - 1 - bit);
        }
        codes[symbol].code = (uint16_t)reversed;
    }
}

// MARK: - Bits

/// Writes at most 32 bits; the caller has ensured room.
static inline void put(cdeflate_bit_writer *writer, uint64_t bits, unsigned count) {
    writer->bits |= bits << writer->count;
    writer->count += count;
    if (writer->count >= 32) {
        memcpy(writer->next, &writer->bits, 4);
        writer->next += 4;
        writer->bits >>= 32;
        writer->count -= 32;
    }
}

void cdeflate_put_to_byte(cdeflate_bit_writer *writer) {
    while (writer->count > 0) {
        *writer->next++ = (uint8_t)writer->bits;
        writer->bits >>= 8;
        writer->count = writer->count > 8 ? writer->count - 8 : 0;
    }
    writer->bits = 0;
}

// MARK: - Blocks

float cdeflate_about_log2(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    float exponent = (float)(int)(bits >> 23) - 127;
    bits = (bits & 0x7FFFFF) | 0x3F800000;
    memcpy(&value, &bits, sizeof value);
    return exponent + (-0.33582878f * value + 2.0f) * value - 1.65871022f;
}

static float bits_of(const uint32_t *counts, int symbols) {
    float total = 0, sum = 0;
    for (int symbol = 0; symbol < symbols; symbol++) {
        float count = (float)counts[symbol];
        total += count;
        if (counts[symbol] > 0) sum += count * cdeflate_about_log2(count);
    }
    return total > 0 ? total * cdeflate_about_log2(total) - sum : 0;
}

float cdeflate_estimated_bits(const cdeflate_histogram *counts) {
    return bits_of(counts->literals, CDEFLATE_LITERALS) + bits_of(counts->distances, CDEFLATE_DISTANCES);
}

/// Run-length encodes the code lengths (RFC 1951 section 3.2.7). Returns the number of symbols.
static int run_lengths(const uint8_t *lengths, int count, uint8_t *symbols, uint8_t *extra) {
    int made = 0;
    for (int index = 0; index < count;) {
        int run = 1;
        while (index + run < count && lengths[index + run] == lengths[index]) run++;
        uint8_t length = lengths[index];
        index += run;
        if (length > 0) {
            symbols[made++] = length;
            run--;
        }
        while (run >= 3) {
            int most = length > 0 ? 6 : 138, part = run < most ? run : most;
            symbols[made] = length > 0 ? 16 : part <= 10 ? 17 : 18;
            extra[made] = (uint8_t)(part - (symbols[made] == 18 ? 11 : 3));
            made++;
            run -= part;
        }
        for (; run > 0; run--) symbols[made++] = length;
    }
    return made;
}

static const uint8_t run_bits[19] = {[16] = 2, [17] = 3, [18] = 7};

static bool put_stored(cdeflate_bit_writer *writer, const uint8_t *start, size_t length, bool is_last) {
    do {
        size_t part = length < MOST_STORED ? length : MOST_STORED;
        if ((size_t)(writer->end - writer->next) < part + 16) return false;
        put(writer, is_last && part == length, 3);
        cdeflate_put_to_byte(writer);
        uint8_t head[4] = {
            (uint8_t)part, (uint8_t)(part >> 8), (uint8_t)~part, (uint8_t)(~part >> 8)};
        memcpy(writer->next, head, 4);
        memcpy(writer->next + 4, start, part);
        writer->next += part + 4;
        start += part;
        length -= part;
    } while (length > 0);
    return true;
}

// MARK: - Sequences

/// Adds as many bits as fit behind the pending ones, at most 7 after `put_bytes`. Only the lower
/// six bits of both counts are meaningful.
INLINED void add_bits(cdeflate_bit_writer *writer, uint64_t bits, uint32_t count) {
    writer->bits |= bits << (writer->count & 63);
    writer->count += count;
}

/// Stores eight bytes and advances over the whole ones; the rest is overwritten later. It avoids a
/// branch that is mispredicted once in three times. With BMI2, blocks are written 1.8 times as
/// fast.
INLINED void put_bytes(cdeflate_bit_writer *writer) {
    memcpy(writer->next, &writer->bits, sizeof writer->bits);
    writer->next += (writer->count & 63) >> 3;
    writer->bits >>= writer->count & 56;
    writer->count &= 7;
}

INLINED uint64_t match_bits(huffman_code code, uint32_t extra) {
    return code.code | (uint64_t)extra << code.length;
}

FOR_EACH_PROCESSOR static void put_sequences(
    cdeflate_bit_writer *to, const uint8_t *start, const cdeflate_sequence *next, size_t count,
    const uint8_t *length_codes,
    const huffman_code *literals, const huffman_code *distances) {
    // Each literal's code, shifted above its length.
    uint32_t words[256];
    for (int literal = 0; literal < 256; literal++) {
        words[literal] = (uint32_t)literals[literal].code << 6 | literals[literal].length;
    }
    // A copy stays in registers.
    cdeflate_bit_writer writer = *to;
    put_bytes(&writer);
    for (; count > 0; next++, count--) {
        const uint8_t *stop = start + next->literals;
        // At most 45 bits, then 30, then 20 and 28.
        for (; stop - start >= 3; start += 3) {
            uint32_t first = words[start[0]], second = words[start[1]], third = words[start[2]];
            add_bits(&writer, first >> 6, first);
            add_bits(&writer, second >> 6, second);
            add_bits(&writer, third >> 6, third);
            put_bytes(&writer);
        }
        for (; start < stop; start++) add_bits(&writer, words[*start] >> 6, words[*start]);
        put_bytes(&writer);
        if (next->length == 0) continue;
        unsigned index = length_codes[next->length];
        huffman_code code = literals[END_OF_BLOCK + 1 + index];
        add_bits(
            &writer, match_bits(code, next->length - cdeflate_length_bases[index]),
            code.length + cdeflate_length_bits[index]);
        index = cdeflate_distance_code(next->distance);
        code = distances[index];
        add_bits(
            &writer, match_bits(code, next->distance - distance_base(index)),
            code.length + cdeflate_distance_bits(index));
        put_bytes(&writer);
        start += next->length;
    }
    *to = writer;
}

/// Returns the bits of symbols and of their extra bits, without the codes.
static uint64_t bits_of_symbols(
    const cdeflate_histogram *counts, const huffman_code *literals,
    const huffman_code *distances) {
    uint64_t bits = 0;
    for (int code = 0; code < CDEFLATE_LITERALS; code++) {
        unsigned more = code > END_OF_BLOCK ? cdeflate_length_bits[code - 257] : 0;
        bits += (uint64_t)counts->literals[code] * (literals[code].length + more);
    }
    for (unsigned code = 0; code < CDEFLATE_DISTANCES; code++) {
        bits += (uint64_t)counts->distances[code] * (distances[code].length + cdeflate_distance_bits(code));
    }
    return bits;
}

bool cdeflate_put_block(
    cdeflate_bit_writer *to, const uint8_t *start, size_t length, const cdeflate_sequence *sequences, size_t count,
    const uint8_t *length_codes, cdeflate_histogram *counts, bool is_last) {
    huffman_code literals[CDEFLATE_LITERALS], distances[CDEFLATE_DISTANCES], runs[19];
    counts->literals[END_OF_BLOCK] = 1;
    // A complete code has two symbols; decoders differ in which incomplete ones they accept.
    for (int code = 0; code < 2; code++) {
        if (counts->distances[code] == 0) counts->distances[code] = 1;
    }
    make_codes(counts->literals, CDEFLATE_LITERALS, LONGEST_CODE, literals);
    make_codes(counts->distances, CDEFLATE_DISTANCES, LONGEST_CODE, distances);
    int literal_codes = CDEFLATE_LITERALS, distance_codes = CDEFLATE_DISTANCES;
    while (literal_codes > 257 && literals[literal_codes - 1].length == 0) literal_codes--;
    while (distances[distance_codes - 1].length == 0) distance_codes--;
    uint8_t lengths[CDEFLATE_LITERALS + CDEFLATE_DISTANCES], symbols[CDEFLATE_LITERALS + CDEFLATE_DISTANCES];
    uint8_t extra[CDEFLATE_LITERALS + CDEFLATE_DISTANCES] = {0};
    for (int code = 0; code < literal_codes; code++) lengths[code] = literals[code].length;
    for (int code = 0; code < distance_codes; code++) {
        lengths[literal_codes + code] = distances[code].length;
    }
    int made = run_lengths(lengths, literal_codes + distance_codes, symbols, extra);
    uint32_t run_counts[19] = {0};
    for (int index = 0; index < made; index++) run_counts[symbols[index]]++;
    if (run_counts[0] == 0) run_counts[0] = 1;
    if (run_counts[1] == 0) run_counts[1] = 1;
    make_codes(run_counts, 19, 7, runs);
    static const uint8_t order[19] = {
        16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    int order_count = 19;
    while (runs[order[order_count - 1]].length == 0) order_count--;

    uint64_t bits = 3 + 14 + 3 * (unsigned)order_count + bits_of_symbols(counts, literals, distances);
    for (int code = 0; code < 19; code++) {
        bits += (uint64_t)run_counts[code] * (runs[code].length + run_bits[code]);
    }
    size_t parts = length / MOST_STORED + 1;
    if (bits / 8 >= length + 5 * parts) return put_stored(to, start, length, is_last);
    cdeflate_bit_writer writer = *to;
    if ((size_t)(writer.end - writer.next) < bits / 8 + 16) return false;

    put(&writer, is_last, 1);
    put(&writer, 2, 2);
    put(&writer, (unsigned)literal_codes - 257, 5);
    put(&writer, (unsigned)distance_codes - 1, 5);
    put(&writer, (unsigned)order_count - 4, 4);
    for (int index = 0; index < order_count; index++) put(&writer, runs[order[index]].length, 3);
    for (int index = 0; index < made; index++) {
        huffman_code code = runs[symbols[index]];
        put(&writer, code.code, code.length);
        put(&writer, extra[index], run_bits[symbols[index]]);
    }
    put_sequences(&writer, start, sequences, count, length_codes, literals, distances);
    put(&writer, literals[END_OF_BLOCK].code, literals[END_OF_BLOCK].length);
    *to = writer;
    return true;
}
