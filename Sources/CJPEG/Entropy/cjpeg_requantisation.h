#ifndef CJPEG_REQUANTISATION_H
#define CJPEG_REQUANTISATION_H

// From one quantisation table to another, coefficient by coefficient.

#include "cjpeg_bits.h"
#include "cjpeg_processors.h"

// No fused operations, as in `requantise_row`.
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

/// Prepares requantisation to a table that is nowhere finer; both are in natural order.
void cjpeg_make_requantisation(
    const JQUANT_TBL *from, const JQUANT_TBL *wanted, cjpeg_requantisation *to);

/// Rounds to nearest, halves to even: next to 1.5·2²³ a float has no fraction.
INLINED int cjpeg_requantised(int value, float ratio) {
    const float magic = 12582912.0f;
    float scaled = (float)value * ratio;
    return (int)((scaled + magic) - magic);
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

#endif
