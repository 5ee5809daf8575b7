// Blocks of DEFLATE (RFC 1951), for the writer's own compressor.
#ifndef CPNG_DEFLATE_BLOCK_H
#define CPNG_DEFLATE_BLOCK_H

#include "cpng_huffman.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CPNG_LITERALS = CPNG_MOST_SYMBOLS,
    CPNG_LENGTHS = 29,
    CPNG_DISTANCES = 30,
    CPNG_MOST_MATCH = 258,
};

// MARK: - Tables of RFC 1951 section 3.2.5

static const uint16_t cpng_length_bases[CPNG_LENGTHS] = {
    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115,
    131, 163, 195, 227, 258,
};
static const uint8_t cpng_length_bits[CPNG_LENGTHS] = {
    0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0,
};

/// Two codes for each power of two.
static inline unsigned cpng_distance_code(unsigned distance) {
    if (distance <= 2) return distance - 1;
    unsigned power = 31 - (unsigned)__builtin_clz(distance - 1);
    return 2 * power + ((distance - 1) >> (power - 1) & 1);
}

static inline unsigned cpng_distance_bits(unsigned code) { return code < 2 ? 0 : code / 2 - 1; }

// MARK: - Blocks

/// A run of literals, then a match; `length` 0 for none, at a segment's end.
typedef struct {
    uint32_t literals;
    uint16_t length;
    uint16_t distance;
} cpng_sequence;

/// How often each symbol comes.
typedef struct {
    uint32_t literals[CPNG_LITERALS];
    uint32_t distances[CPNG_DISTANCES];
    uint32_t symbols;
} cpng_histogram;

/// Where a stream is written to. Fewer than 32 bits have no byte yet, in the lower end.
typedef struct {
    uint8_t *next;
    uint8_t *end;
    uint64_t bits;
    uint32_t count;
} cpng_bit_writer;

/// What log2 is, within 0.01.
float cpng_about_log2(float value);

/// Without extra bits, which are the same in every block, and without a header.
float cpng_estimated_bits(const cpng_histogram *counts);

/// Writes the bytes of `count` sequences, which begin at `start`, as a block with codes of its own, or as they are where that is
/// less. Returns false when they do not fit.
///
/// - `length_codes`: from a match's length to its code.
/// - `counts`: gets the symbols that every block has.
bool cpng_put_block(
    cpng_bit_writer *writer, const uint8_t *start, size_t length, const cpng_sequence *sequences, size_t count,
    const uint8_t *length_codes, cpng_histogram *counts, bool is_last);

/// Fills up the last byte.
void cpng_put_to_byte(cpng_bit_writer *writer);

#endif
