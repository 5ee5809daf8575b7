#ifndef CJPEG_MAGNITUDES_H
#define CJPEG_MAGNITUDES_H

// Look-up tables for AC symbols, where coefficients are decoded and where they are skipped.

#include "cjpeg_bits.h"

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

void cjpeg_make_magnitudes(const cjpeg_codes *codes, cjpeg_magnitudes *magnitudes);
void cjpeg_make_steps(const cjpeg_codes *codes, cjpeg_steps *steps);

#endif
