#pragma once

// Tables for decoding and requantisation, which a thread reuses from picture to picture.

#include "cjpeg_bits.h"
#include "cjpeg_processors.h"
#include "cjpeg_session.h"

// No fused operations, so every processor and both ways to requantise give the same.
#pragma STDC FP_CONTRACT OFF

/// The largest place that a run can reach from the last coefficient but one. Places beyond the
/// block are detected afterwards.
enum { CJPEG_MOST_PLACES = DCTSIZE2 + 16 };

/// The place in natural order of each coefficient in coding order (T.81, figure A.6).
static const uint8_t cjpeg_natural_place[CJPEG_MOST_PLACES] = {
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
};

/// Converts from one quantisation table to another, in coding order.
typedef struct {
    float ratio[CJPEG_MOST_PLACES];
    /// Indexed by place and by `cjpeg_magnitude`: the symbol without run and table; 0 if the value
    /// becomes zero.
    uint32_t small[CJPEG_MOST_PLACES * CJPEG_SMALL_MAGNITUDES];
} cjpeg_requantisation;

/// Rounds to nearest, halves to even: next to 1.5·2²³ a float has no fraction. That vectorises on
/// every x86-64 and arm64, where a call of `lrintf` may not.
INLINED int cjpeg_rounded(float value) {
    const float magic = 12582912.0f;
    return (int)((value + magic) - magic);
}

INLINED int cjpeg_requantised(int value, float ratio) {
    return cjpeg_rounded((float)value * ratio);
}

INLINED unsigned cjpeg_category(int value) {
    unsigned magnitude = (unsigned)(value < 0 ? -value : value);
    return magnitude == 0 ? 0 : 32 - (unsigned)__builtin_clz(magnitude);
}

/// The category and magnitude bits of a symbol. A negative value has the bits of the value less 1.
INLINED uint32_t cjpeg_symbol_of(int value) {
    unsigned size = cjpeg_category(value);
    return ((uint32_t)(value + (value >> 31)) & ((1u << size) - 1)) | size << 16;
}

// MARK: - AC symbols

/// AC symbols with decoded coefficients. Indexed by the next ten bits:
///
/// - bits 0…7: how many bits to take, code and magnitude together;
/// - bits 8…15: the distance to the previous coefficient; 0 for the end of the block;
/// - bits 16…31: the coefficient.
///
/// 0 if more bits are needed or the symbol is unusual.
typedef struct {
    uint32_t known[1 << CJPEG_LOOK];
} cjpeg_magnitudes;

/// Skips AC symbols: all that have their whole codes in the next ten bits. The magnitude bits of
/// the last one may lie beyond. Indexed by the next ten bits:
///
/// - bits 0…4: how many bits to take;
/// - bits 5…15: how many places to advance, plus `CJPEG_END` if the last symbol ends the block;
///   `CJPEG_UNKNOWN` if ten bits hold no whole code.
///
/// Decoding a photograph at 1/8 is equally fast with 11 and 12 bits, 4 % slower with 9, and 28 %
/// slower symbol by symbol.
typedef struct {
    uint16_t known[1 << CJPEG_LOOK];
} cjpeg_steps;

/// `CJPEG_STEP` is an advance of one place. The others are larger than any sum of a place in a
/// block and an advance, and tell the cases apart in such a sum.
enum { CJPEG_STEP = 1 << 5, CJPEG_UNKNOWN = 128, CJPEG_END = 256 };

// MARK: - Tables of a thread

/// Tables derived from Huffman and quantisation tables, by slot. Most pictures of a list share the
/// tables of their camera or encoder. Building them takes 10 µs, as long as reading 15,000 pixels.
struct cjpeg_table_cache;

/// Gives the session the thread's tables, which no other session uses until `cjpeg_end` returns
/// them. Returns false without memory. A thread keeps the tables of one picture, 164 KB, until it
/// ends.
bool cjpeg_take_tables(cjpeg_session *s);

/// A slot's codes; NULL for an invalid table (T.81, annex C), which libjpeg refuses: 16 bits cannot
/// hold its codes, or one of them is all ones.
const cjpeg_codes *cjpeg_cached_codes(cjpeg_table_cache *cache, const JHUFF_TBL *table, bool is_dc, int slot);

/// Derived tables for the AC codes of a slot: to decode coefficients, and to skip them. The codes
/// must have been requested before.
const cjpeg_magnitudes *cjpeg_cached_magnitudes(cjpeg_table_cache *cache, int slot);
const cjpeg_steps *cjpeg_cached_steps(cjpeg_table_cache *cache, int slot);

/// A slot's requantisation to a table that is nowhere finer; no step is 0.
const cjpeg_requantisation *cjpeg_cached_requantisation(
    cjpeg_table_cache *cache, const JQUANT_TBL *from, const JQUANT_TBL *wanted, int slot);
