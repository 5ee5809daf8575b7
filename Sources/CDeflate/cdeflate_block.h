// Blocks of DEFLATE (RFC 1951), for our own compressor.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CDEFLATE_LITERALS = 286,
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

/// A run of literals, then a match; `length` is 0 at a segment's end without one.
typedef struct {
    uint32_t literals;
    uint16_t length;
    uint16_t distance;
} cdeflate_sequence;

/// Symbol frequencies.
typedef struct {
    uint32_t literals[CDEFLATE_LITERALS];
    uint32_t distances[CDEFLATE_DISTANCES];
    uint32_t symbols;
} cdeflate_histogram;

/// Writes bits to a stream. Fewer than 32 bits, in the lower end, are not written yet.
typedef struct {
    uint8_t *next;
    uint8_t *end;
    uint64_t bits;
    uint32_t count;
} cdeflate_bit_writer;

/// log2, within 0.01.
float cdeflate_about_log2(float value);

/// Estimates a block's size without its header, and without extra bits, which do not depend on the
/// codes.
float cdeflate_estimated_bits(const cdeflate_histogram *counts);

/// Writes `count` sequences of bytes from `start` as a block with its own codes, or stored if that
/// is smaller. Returns false if the output is full.
///
/// - `length_codes`: indexed by a match's length.
/// - `counts`: the symbols that every block has are added.
bool cdeflate_put_block(
    cdeflate_bit_writer *writer, const uint8_t *start, size_t length, const cdeflate_sequence *sequences, size_t count,
    const uint8_t *length_codes, cdeflate_histogram *counts, bool is_last);

/// Pads the last byte.
void cdeflate_put_to_byte(cdeflate_bit_writer *writer);
