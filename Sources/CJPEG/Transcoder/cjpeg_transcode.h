#pragma once

// Baseline JPEG to baseline JPEG of a coarser quality, symbol by symbol.
//
// In a baseline file (ITU-T T.81, annexes B and F) each block of 8×8 is one DC symbol, then AC
// symbols. A symbol has a Huffman code, and says how many magnitude bits follow (its category,
// SSSS). An AC symbol also says how many zeros precede the coefficient (RRRR). 0x00 ends the block,
// 0xF0 is sixteen zeros. DC coefficients are differences to the previous block. Components are
// interleaved, one minimum coded unit (MCU) at a time. A zero is stuffed behind each 0xFF byte, and
// restart markers may stand between MCUs.
//
// libjpeg decodes this into arrays of 64 coefficients a block, some nine of them nonzero, processes
// the arrays, and encodes them again. Here each coefficient is requantised when it is decoded, and
// becomes the symbol to write, of 32 bits. At the end all frequencies are known, from which the
// optimal Huffman tables are made; then one loop writes codes. On photographs from quality 88 to 85
// that is 2.5 times as fast (decoding 1.6 ×, encoding 5.5 ×). It takes 1.1 bytes a pixel; arrays
// take 3. The result has 0.995 of the size, since libjpeg's path makes its tables from a sample.
//
//     cjpeg_bits.c             bytes without stuffing, and bits
//     cjpeg_tables.c           tables of codes and requantisation that a thread keeps
//     cjpeg_mcus.c             MCUs, restarts, the scan's end
//     cjpeg_blocks.c           a block's symbols, read and requantised
//     cjpeg_transcode_read.c   the scan, and the coefficients that a preview needs
//     cjpeg_transcode_write.c  tables, headers, codes
//
// The coefficients equal libjpeg's path bit by bit. Anything unusual or unsupported falls
// back to it with no effect; it alone decides and words the error.
//
// Gains, each of the whole time (docs/decisions/jpeg.md says how they were measured, and lists
// attempts without effect):
//
//     codes by a table of 10 bits that also has run and magnitude, as one sum      7 %
//     registers in place of the members of structures while a block is read        3 %
//     magnitudes of five bits and less requantised by a table                      5 %
//     BMI2 and LZCNT where the processor has them                                  3 %
//     a loop without a branch on zeros if there are many, to quality 75 and less   18 %
//     symbols with their table's number, so writing has no branch      most of 5 ×
//     bits filled during the look-up of a symbol (`cjpeg_fill`)                    8 %
//     codes shifted in advance, and BMI2, in writing                               7 %
//     tables kept from picture to picture                          3 %, of small ones 16 %

#include "cjpeg_preview.h"
#include "cjpeg_session.h"

/// The result's Huffman tables: DC 0, DC 1, AC 0, AC 1.
enum { CJPEG_TABLES = 4, CJPEG_AC = 2 };

/// A scan as the symbols to write, 32 bits each:
///
///     bits  0…15   the magnitude's bits below its category (T.81, F.1.2.1.1 and F.1.2.2.1)
///     bits 16…19   the category, SSSS: the number of these bits
///     bits 20…23   RRRR, of an AC symbol: the zeros before the coefficient
///     bits 24…25   the table that has its code
///
/// Bits 16…25 are an index into the codes of all four tables, so writing needs no branch.
typedef struct {
    uint32_t *first;
    size_t count;
    /// Symbol frequencies by table, from which the codes are made.
    uint32_t counts[CJPEG_TABLES][256];
    /// The table, 0 or 1, of each component's DC and AC symbols.
    unsigned table_of[MAX_COMPONENTS];
    /// Empty unless a preview is wanted.
    cjpeg_preview_blocks preview;
} cjpeg_symbols;

/// The range of quantised coefficients in a baseline file (T.81, tables F.1 and F.2).
enum { CJPEG_LEAST_DC = -1024, CJPEG_MOST_COEFFICIENT = 1023 };

/// Reads the source's only scan, after the header, and requantises it to the `wanted` tables (by
/// slot, in natural order). Keeps the coefficients that a preview needs.
///
/// Returns false to fall back to libjpeg, with the decompressor unchanged. The session owns the
/// symbols' memory. May jump when interrupted.
bool cjpeg_read_symbols(
    cjpeg_session *s, const JQUANT_TBL wanted[NUM_QUANT_TBLS], cjpeg_symbols *symbols);

/// Writes tables, frame and scan after the segments written so far, with the target's quantisation
/// tables. Sets no result if the file would reach the largest output. May jump.
void cjpeg_write_symbols(cjpeg_session *s, const cjpeg_symbols *symbols, cjpeg_result *result);
