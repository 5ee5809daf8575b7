#include "cpng_deflate.h"
#include "cpng_huffman.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <libdeflate.h>

enum {
    WINDOW = 32768,
    HASH_BITS = 16,
    /// A match this long is taken without looking for a longer one.
    GOOD_MATCH = 64,
    /// A match this long is taken without looking whether one at the next byte is better.
    LAZY_MATCH = 16,
    MOST_MATCH = 258,
    /// For each so many bytes since the last match one more is passed over before a match is looked
    /// for again, up to the most. It nearly doubles the speed, for half a percent of size on
    /// photographs and less on noise.
    PASS_MORE_AFTER = 16,
    MOST_PASSED = 16,
    LITERALS = CPNG_MOST_SYMBOLS,
    DISTANCES = 30,
    END_OF_BLOCK = 256,
    /// Symbols after which it is decided whether the block goes on.
    SEGMENT_SYMBOLS = 8192,
    MOST_SYMBOLS = 1 << 18,
    MOST_MATCHES = 32768,
    /// A stored block's length has 16 bits.
    MOST_STORED = 65535,
};

/// A run of literals, then a match; `length` 0 for none, at a segment's end.
typedef struct {
    uint32_t literals;
    uint16_t length;
    uint16_t distance;
} sequence;

typedef struct {
    uint32_t literals[LITERALS];
    uint32_t distances[DISTANCES];
    uint32_t symbols;
} histogram;

typedef struct {
    uint8_t *next;
    uint8_t *end;
    uint64_t bits;
    unsigned count;
} bit_writer;

typedef struct {
    /// The last place of a hash, and from a place, modulo the window, the one before it.
    uint32_t heads[1 << HASH_BITS];
    uint32_t chain[WINDOW];
    /// What symbols cost, in eighths of a bit, as far as the last segments tell.
    uint16_t literal_costs[256];
    uint16_t length_costs[29];
    uint16_t distance_costs[DISTANCES];
    sequence sequences[MOST_MATCHES + 2];
    /// From a match's length to its code, extra bits and their value.
    uint8_t length_codes[MOST_MATCH + 1];
    bit_writer writer;
    const uint8_t *bytes;
    /// How many places are looked at for a match.
    int depth;
    cinterruption *interruption;
} compressor;

// MARK: - Tables of RFC 1951 section 3.2.5

static const uint16_t length_bases[29] = {
    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115,
    131, 163, 195, 227, 258,
};
static const uint8_t length_bits[29] = {
    0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0,
};

static unsigned log2_floor(uint32_t value) { return 31 - (unsigned)__builtin_clz(value); }

/// Two codes for each power of two.
static unsigned distance_code(unsigned distance) {
    if (distance <= 2) return distance - 1;
    unsigned power = log2_floor(distance - 1);
    return 2 * power + ((distance - 1) >> (power - 1) & 1);
}

static unsigned distance_bits(unsigned code) { return code < 2 ? 0 : code / 2 - 1; }

static unsigned distance_base(unsigned code) {
    return code < 2 ? code + 1 : ((2 + (code & 1)) << (code / 2 - 1)) + 1;
}

// MARK: - Bits

/// At most 32 bits at a time; the caller has made sure of the room.
static inline void put(bit_writer *writer, uint64_t bits, unsigned count) {
    writer->bits |= bits << writer->count;
    writer->count += count;
    if (writer->count >= 32) {
        memcpy(writer->next, &writer->bits, 4);
        writer->next += 4;
        writer->bits >>= 32;
        writer->count -= 32;
    }
}

static void put_to_byte(bit_writer *writer) {
    while (writer->count > 0) {
        *writer->next++ = (uint8_t)writer->bits;
        writer->bits >>= 8;
        writer->count = writer->count > 8 ? writer->count - 8 : 0;
    }
    writer->bits = 0;
}

// MARK: - Blocks

/// About log2, within 0.01.
static float about_log2(float value) {
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
        if (counts[symbol] > 0) sum += count * about_log2(count);
    }
    return total > 0 ? total * about_log2(total) - sum : 0;
}

/// Without extra bits, which are the same in every block.
static float estimated_bits(const histogram *counts) {
    return bits_of(counts->literals, LITERALS) + bits_of(counts->distances, DISTANCES);
}

static void add(histogram *sum, const histogram *other) {
    for (int symbol = 0; symbol < LITERALS; symbol++) {
        sum->literals[symbol] += other->literals[symbol];
    }
    for (int symbol = 0; symbol < DISTANCES; symbol++) {
        sum->distances[symbol] += other->distances[symbol];
    }
    sum->symbols += other->symbols;
}

/// The code lengths as run lengths (RFC 1951 section 3.2.7); answers how many symbols they take.
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

static bool put_stored(compressor *c, const uint8_t *start, size_t length, bool is_last) {
    bit_writer *writer = &c->writer;
    do {
        size_t part = length < MOST_STORED ? length : MOST_STORED;
        if ((size_t)(writer->end - writer->next) < part + 16) return false;
        put(writer, is_last && part == length, 3);
        put_to_byte(writer);
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

/// Writes `count` sequences that begin at `start`; false when they do not fit.
static bool put_block(
    compressor *c, const uint8_t *start, size_t length, size_t count, histogram *counts,
    bool is_last) {
    cpng_huffman_code literals[LITERALS], distances[DISTANCES], runs[19];
    counts->literals[END_OF_BLOCK] = 1;
    // A complete code has two: decoders differ in what else they accept.
    for (int code = 0; code < 2; code++) {
        if (counts->distances[code] == 0) counts->distances[code] = 1;
    }
    cpng_make_codes(counts->literals, LITERALS, CPNG_LONGEST_CODE, literals);
    cpng_make_codes(counts->distances, DISTANCES, CPNG_LONGEST_CODE, distances);
    int literal_codes = LITERALS, distance_codes = DISTANCES;
    while (literal_codes > 257 && literals[literal_codes - 1].length == 0) literal_codes--;
    while (distances[distance_codes - 1].length == 0) distance_codes--;
    uint8_t lengths[LITERALS + DISTANCES], symbols[LITERALS + DISTANCES];
    uint8_t extra[LITERALS + DISTANCES] = {0};
    for (int code = 0; code < literal_codes; code++) lengths[code] = literals[code].length;
    for (int code = 0; code < distance_codes; code++) {
        lengths[literal_codes + code] = distances[code].length;
    }
    int made = run_lengths(lengths, literal_codes + distance_codes, symbols, extra);
    uint32_t run_counts[19] = {0};
    for (int index = 0; index < made; index++) run_counts[symbols[index]]++;
    if (run_counts[0] == 0) run_counts[0] = 1;
    if (run_counts[1] == 0) run_counts[1] = 1;
    cpng_make_codes(run_counts, 19, 7, runs);
    static const uint8_t order[19] = {
        16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    int order_count = 19;
    while (runs[order[order_count - 1]].length == 0) order_count--;

    uint64_t bits = 3 + 14 + 3 * (unsigned)order_count;
    for (int code = 0; code < 19; code++) {
        bits += (uint64_t)run_counts[code] * (runs[code].length + run_bits[code]);
    }
    for (int code = 0; code < LITERALS; code++) {
        unsigned more = code > END_OF_BLOCK ? length_bits[code - 257] : 0;
        bits += (uint64_t)counts->literals[code] * (literals[code].length + more);
    }
    for (unsigned code = 0; code < DISTANCES; code++) {
        bits += (uint64_t)counts->distances[code] * (distances[code].length + distance_bits(code));
    }
    size_t parts = length / MOST_STORED + 1;
    if (bits / 8 >= length + 5 * parts) return put_stored(c, start, length, is_last);
    bit_writer writer = c->writer;
    if ((size_t)(writer.end - writer.next) < bits / 8 + 16) return false;

    put(&writer, is_last, 1);
    put(&writer, 2, 2);
    put(&writer, (unsigned)literal_codes - 257, 5);
    put(&writer, (unsigned)distance_codes - 1, 5);
    put(&writer, (unsigned)order_count - 4, 4);
    for (int index = 0; index < order_count; index++) put(&writer, runs[order[index]].length, 3);
    for (int index = 0; index < made; index++) {
        cpng_huffman_code code = runs[symbols[index]];
        put(&writer, code.code, code.length);
        put(&writer, extra[index], run_bits[symbols[index]]);
    }
    for (const sequence *next = c->sequences; count > 0; next++, count--) {
        const uint8_t *stop = start + next->literals;
        for (; stop - start >= 2; start += 2) {
            cpng_huffman_code first = literals[start[0]], second = literals[start[1]];
            put(&writer, first.code | (uint64_t)second.code << first.length,
                (unsigned)first.length + second.length);
        }
        if (start < stop) {
            cpng_huffman_code code = literals[*start++];
            put(&writer, code.code, code.length);
        }
        if (next->length == 0) continue;
        unsigned index = c->length_codes[next->length];
        cpng_huffman_code code = literals[257 + index];
        put(&writer, code.code | (uint64_t)(next->length - length_bases[index]) << code.length,
            code.length + length_bits[index]);
        index = distance_code(next->distance);
        code = distances[index];
        put(&writer,
            code.code | (uint64_t)(next->distance - distance_base(index)) << code.length,
            code.length + distance_bits(index));
        start += next->length;
    }
    put(&writer, literals[END_OF_BLOCK].code, literals[END_OF_BLOCK].length);
    c->writer = writer;
    return true;
}

// MARK: - Matches

static inline uint64_t load_64(const uint8_t *bytes) {
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static inline uint32_t hash_of(uint64_t value) {
    return (uint32_t)(value * 0x9E3779B97F4A7C15u >> (64 - HASH_BITS));
}

static size_t match_length(const uint8_t *here, const uint8_t *there, size_t most) {
    size_t length = 0;
    while (most - length >= 8) {
        uint64_t difference = load_64(here + length) ^ load_64(there + length);
        if (difference != 0) return length + (size_t)__builtin_ctzll(difference) / 8;
        length += 8;
    }
    while (length < most && here[length] == there[length]) length++;
    return length;
}

/// In eighths of a bit. Symbols that have not come are taken to come half a time.
static void set_costs(
    uint16_t *costs, const uint32_t *counts, int symbols, float total) {
    float whole = about_log2(total);
    for (int symbol = 0; symbol < symbols; symbol++) {
        costs[symbol] = (uint16_t)(8 * (whole - about_log2((float)counts[symbol] + 0.5f)) + 0.5f);
    }
}

static void learn(compressor *c, const histogram *counts) {
    float total = 0, distances = 0;
    for (int symbol = 0; symbol < LITERALS; symbol++) total += (float)counts->literals[symbol];
    for (int code = 0; code < DISTANCES; code++) distances += (float)counts->distances[code];
    set_costs(c->literal_costs, counts->literals, 256, total + 1);
    set_costs(c->length_costs, counts->literals + 257, 29, total + 1);
    set_costs(c->distance_costs, counts->distances, DISTANCES, distances + DISTANCES / 2);
}

/// What a match saves against its literals, in eighths of a bit; zero or less for none.
static inline int gain(
    const compressor *c, const uint8_t *here, size_t length, size_t distance) {
    unsigned code = distance_code((unsigned)distance), index = c->length_codes[length];
    int cost = c->distance_costs[code] + c->length_costs[index]
        + 8 * (int)(distance_bits(code) + length_bits[index]);
    int literals = 0;
    for (size_t offset = 0; offset < length; offset++) literals += c->literal_costs[here[offset]];
    return literals - cost;
}

static inline void insert(compressor *c, size_t position, uint32_t hash) {
    c->chain[position % WINDOW] = c->heads[hash];
    c->heads[hash] = (uint32_t)position;
}

/// The match that saves most, of at least eight bytes; 0 when none saves anything. Remembers
/// `position`.
///
/// Shorter ones save little against literals of four or five bits, and by asking for eight bytes few
/// places have to be looked at that bytes have in common by chance. Measured on 28 photographs, four
/// to eight bytes: eight gives the smallest files and the highest speed.
static inline size_t find(
    compressor *c, size_t position, size_t length, size_t *distance, int *saved) {
    const uint8_t *here = c->bytes + position;
    uint64_t value = load_64(here);
    uint32_t hash = hash_of(value), place = c->heads[hash];
    insert(c, position, hash);
    size_t rest = length - position, most = rest < MOST_MATCH ? rest : MOST_MATCH;
    size_t found = 0, last = 0;
    *saved = 0;
    for (int step = 0; step < c->depth; step++) {
        // Places in a chain grow older; one that does not was overwritten, or was never there.
        size_t back = (uint32_t)((uint32_t)position - place);
        if (back <= last || back >= WINDOW || back > position) break;
        last = back;
        place = c->chain[place % WINDOW];
        const uint8_t *there = here - back;
        if (load_64(there) != value) continue;
        if (found == most || here[found] != there[found]) continue;
        size_t same = match_length(here, there, most);
        if (same <= found) continue;
        int gained = gain(c, here, same, back);
        if (gained <= *saved) continue;
        *saved = gained;
        *distance = back;
        found = same;
        if (found >= GOOD_MATCH) break;
    }
    return found;
}

/// False when it does not fit, and when interrupted.
static bool run(compressor *c, size_t length) {
    histogram block = {0}, segment = {0};
    size_t position = 0, run_start = 0, block_start = 0, count = 0;
    // What of `count` and of the bytes belongs to the block, the segment not counted.
    size_t block_count = 0, block_end = 0;
    size_t searchable = length > 8 ? length - 8 : 0;
    while (position < length) {
        size_t distance = 0, found = 0;
        if (position < searchable) {
            int saved = 0;
            found = find(c, position, length, &distance, &saved);
            if (found > 0 && found < LAZY_MATCH && position + 1 < searchable) {
                // A better one that begins a byte later.
                size_t other = 0;
                int more = 0;
                size_t better = find(c, position + 1, length, &other, &more);
                if (more > saved) {
                    segment.literals[c->bytes[position++]]++;
                    segment.symbols++;
                    found = better;
                    distance = other;
                }
            }
        }
        if (found > 0) {
            c->sequences[count++] = (sequence){
                (uint32_t)(position - run_start), (uint16_t)found, (uint16_t)distance};
            segment.literals[257 + c->length_codes[found]]++;
            segment.distances[distance_code((unsigned)distance)]++;
            segment.symbols++;
            size_t end = position + found;
            for (size_t inside = position + 2; inside < end && inside < searchable; inside++) {
                insert(c, inside, hash_of(load_64(c->bytes + inside)));
            }
            position = run_start = end;
        } else {
            size_t passed = 1 + (position - run_start) / PASS_MORE_AFTER;
            if (passed > MOST_PASSED) passed = MOST_PASSED;
            if (passed > length - position) passed = length - position;
            for (size_t end = position + passed; position < end; position++) {
                segment.literals[c->bytes[position]]++;
            }
            segment.symbols += (uint32_t)passed;
        }
        bool is_over = position == length;
        if (segment.symbols < SEGMENT_SYMBOLS && count < MOST_MATCHES && !is_over) continue;

        if (position > run_start) {
            c->sequences[count++] = (sequence){(uint32_t)(position - run_start), 0, 0};
            run_start = position;
        }
        if (cinterruption_after(c->interruption, position - block_end)) return false;
        learn(c, &segment);
        // A header takes some 80 bytes.
        const float header_bits = 640;
        histogram both = block;
        add(&both, &segment);
        if (block.symbols > 0
            && (count >= MOST_MATCHES || both.symbols > MOST_SYMBOLS
                || estimated_bits(&block) + estimated_bits(&segment) + header_bits
                    < estimated_bits(&both))) {
            if (!put_block(
                    c, c->bytes + block_start, block_end - block_start, block_count, &block,
                    false)) {
                return false;
            }
            memmove(
                c->sequences, c->sequences + block_count,
                (count - block_count) * sizeof *c->sequences);
            count -= block_count;
            block_start = block_end;
            block = segment;
        } else {
            block = both;
        }
        memset(&segment, 0, sizeof segment);
        block_count = count;
        block_end = position;
    }
    return put_block(
        c, c->bytes + block_start, block_end - block_start, block_count, &block, true);
}

cpng_status cpng_compress_photograph(
    const uint8_t *bytes, size_t length, int depth, cinterruption *interruption, uint8_t *output,
    size_t capacity, size_t *output_length) {
    *output_length = 0;
    // Places have 32 bits.
    if (length > UINT32_MAX) return CPNG_LIMIT;
    if (length == 0 || capacity < 32) return CPNG_OK;
    compressor *c = malloc(sizeof *c);
    if (c == NULL) return CPNG_OUT_OF_MEMORY;
    memset(c->heads, 0, sizeof c->heads);
    // Places of a picture that is smaller than the window are only so many.
    memset(c->chain, 0, (length < WINDOW ? length : WINDOW) * sizeof *c->chain);
    for (unsigned code = 0; code < 29; code++) {
        unsigned last = code < 28 ? length_bases[code + 1] : MOST_MATCH + 1;
        for (unsigned value = length_bases[code]; value < last; value++) {
            c->length_codes[value] = (uint8_t)code;
        }
    }
    c->bytes = bytes;
    c->depth = depth;
    c->interruption = interruption;
    // Until the first segment tells more.
    for (int symbol = 0; symbol < 256; symbol++) c->literal_costs[symbol] = 8 * 5;
    for (int code = 0; code < 29; code++) c->length_costs[code] = 8 * 7;
    for (int code = 0; code < DISTANCES; code++) c->distance_costs[code] = 8 * 5;
    // RFC 1950: a window of 32 KiB, the fastest of the four levels.
    output[0] = 0x78;
    output[1] = 0x01;
    c->writer = (bit_writer){output + 2, output + capacity - 4, 0, 0};
    if (run(c, length)) {
        put_to_byte(&c->writer);
        uint32_t checksum = libdeflate_adler32(1, bytes, length);
        for (int index = 0; index < 4; index++) {
            *c->writer.next++ = (uint8_t)(checksum >> (24 - 8 * index));
        }
        *output_length = (size_t)(c->writer.next - output);
    }
    free(c);
    return cinterruption_after(interruption, 0) ? CPNG_INTERRUPTED : CPNG_OK;
}
