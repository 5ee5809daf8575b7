// Length-limited Huffman codes from frequencies, for our own compressor.
#ifndef CDEFLATE_HUFFMAN_H
#define CDEFLATE_HUFFMAN_H

#include <stdint.h>

enum {
    CDEFLATE_LONGEST_CODE = 15,
    /// The alphabet of literals and lengths.
    CDEFLATE_MOST_SYMBOLS = 286,
};

/// A code with its bits reversed, as they are written (RFC 1951 section 3.1.1).
typedef struct {
    uint16_t code;
    uint8_t length;
} cdeflate_huffman_code;

/// Makes the code of an alphabet; symbols that do not occur get length 0.
///
/// - `counts`: symbol frequencies, at least two of them above 0.
/// - `symbols`: at most `CDEFLATE_MOST_SYMBOLS`.
/// - `longest`: at most `CDEFLATE_LONGEST_CODE` bits, and enough for all symbols.
void cdeflate_make_codes(
    const uint32_t *counts, int symbols, unsigned longest, cdeflate_huffman_code *codes);

#endif
