// Blocks of DEFLATE (RFC 1951), for the writer's own compressor.
#ifndef CDEFLATE_BLOCK_H
#define CDEFLATE_BLOCK_H

#include "cdeflate_huffman.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CDEFLATE_LITERALS = CDEFLATE_MOST_SYMBOLS,
    CDEFLATE_LENGTHS = 29,
    CDEFLATE_DISTANCES = 30,
    CDEFLATE_MOST_MATCH = 258,
};

// MARK: - Tables of RFC 1951 section 3.2.5

static const uint16_t cdeflate_length_bases[CDEFLATE_LENGTHS] = {
    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115,
    131, 163, 195, 227, 258,
};
static const uint8_t cdeflate_length_bits[CDEFLATE_LENGTHS] = {
    0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0,
};

/// Two codes for each power of two.
static inline unsigned cdeflate_distance_code(unsigned distance) {
    if (distance <= 2) return distance - 1;
    unsigned power = 31 - (unsigned)__builtin_clz(distance - 1);
    return 2 * power + ((distance - 1) >> (power - 1) & 1);
}

static inline unsigned cdeflate_distance_bits(unsigned code) { return code < 2 ? 0 : code / 2 - 1; }

// MARK: - Blocks

/// A run of literals, then a match; `length` 0 for none, at a segment's end.
typedef struct {
    uint32_t literals;
    uint16_t length;
    uint16_t distance;
} cdeflate_sequence;

/// How often each symbol comes.
typedef struct {
    uint32_t literals[CDEFLATE_LITERALS];
    uint32_t distances[CDEFLATE_DISTANCES];
    uint32_t symbols;
} cdeflate_histogram;

/// Where a stream is written to. Fewer than 32 bits have no byte yet, in the lower end.
typedef struct {
    uint8_t *next;
    uint8_t *end;
    uint64_t bits;
    uint32_t count;
} cdeflate_bit_writer;

/// What log2 is, within 0.01.
float cdeflate_about_log2(float value);

/// Without extra bits, which are the same in every block, and without a header.
float cdeflate_estimated_bits(const cdeflate_histogram *counts);

/// Writes the bytes of `count` sequences, which begin at `start`, as a block with codes of its own, or as they are where that is
/// less. Returns false when they do not fit.
///
/// - `length_codes`: from a match's length to its code.
/// - `counts`: gets the symbols that every block has.
bool cdeflate_put_block(
    cdeflate_bit_writer *writer, const uint8_t *start, size_t length, const cdeflate_sequence *sequences, size_t count,
    const uint8_t *length_codes, cdeflate_histogram *counts, bool is_last);

/// Fills up the last byte.
void cdeflate_put_to_byte(cdeflate_bit_writer *writer);

#endif
