#ifndef CJPEG_TRANSCODE_H
#define CJPEG_TRANSCODE_H

// Baseline JPEG to baseline JPEG of a coarser quality, from symbol to symbol.
//
// The data of a baseline file (ITU-T T.81, annexes B and F) is a row of bits in which each block of 8×8 is one DC symbol,
// then AC symbols. A symbol has a Huffman code, and says how many bits of magnitude follow it (its category, SSSS); an AC
// symbol also says how many coefficients before this one are zero (RRRR). 0x00 ends the block, 0xF0 is sixteen zeros. DC
// coefficients are differences to the block before. Components come interleaved, a unit of the scan (MCU) at a time. A
// zero is stuffed behind each 0xFF byte, and restart markers may stand between units.
//
// libjpeg reads this into arrays of 64 coefficients a block, of which some nine are not zero, works through them, and
// codes them again. Here each coefficient is divided where it is decoded, and becomes the symbol that is to be written,
// of 32 bits. When all are there, so is how often each comes, which is what the best Huffman tables are made from; then
// one loop writes codes. That is 2.5 times as fast on photographs of quality 88 to 85 (decoding 1.6 ×, encoding 5.5 ×), takes
// 1.1 bytes a pixel in place of 3, and gives 0.995 of the size, as libjpeg's path has its tables from a sample.
//
//     cjpeg_bits.c             bytes without their stuffing, bits, codes
//     cjpeg_table_cache.c             tables that a thread keeps from picture to picture
//     cjpeg_blocks.c           a block's symbols, read and requantised
//     cjpeg_mcus.c            units, restarts, the scan's end
//     cjpeg_transcode_read.c   the scan, and what is kept of it
//     cjpeg_transcode_write.c  tables, headers, codes
//
// The coefficients are those that libjpeg's path writes, bit by bit. Whatever is odd, or no part of this, is a doubt: then
// nothing has happened, and libjpeg's path decides and words the error. So no verdict is another than before.
//
// What it brought, each of the whole (docs/decisions/jpeg.md has how it was measured, and what brought nothing):
//
//     codes by a table of 10 bits that also has run and magnitude, as one sum      7 %
//     registers in place of the members of structures while a block is read        3 %
//     magnitudes of five bits and less requantised by a table                      5 %
//     BMI2 and LZCNT where the processor has them                                  3 %
//     a loop without a branch on zeros where there are many, to 75 and less      18 %
//     symbols that have their table's number, and so no branch in writing          most of 5 ×
//     bits filled beside the look-up of a symbol (`cjpeg_fill`)                    8 %
//     codes that are shifted beforehand, and BMI2, in writing                      7 %
//     tables kept from picture to picture                                          3 %, of small ones 16 %

#include "cjpeg_preview.h"
#include "cjpeg_session.h"

/// The result's Huffman tables: DC 0, DC 1, AC 0, AC 1.
enum { CJPEG_TABLES = 4, CJPEG_AC = 2 };

/// A scan as the symbols that are to be written, 32 bits each:
///
///     bits  0…15   the magnitude's bits below its category (T.81, F.1.2.1.1 and F.1.2.2.1)
///     bits 16…19   the category, SSSS: how many bits these are
///     bits 20…23   RRRR, of an AC symbol: the zeros before the coefficient
///     bits 24…25   the table that has its code
///
/// so that bits 16…25 are an index into the codes of all four tables, and writing needs no branch.
typedef struct {
    uint32_t *first;
    size_t count;
    /// How often each symbol comes, by table: what the codes are made from.
    uint32_t counts[CJPEG_TABLES][256];
    /// Of each component the table, 0 or 1, of its DC and AC symbols.
    unsigned table_of[MAX_COMPONENTS];
    /// Empty where no preview is wanted.
    cjpeg_preview_blocks preview;
} cjpeg_symbols;

/// The least and the largest quantised coefficient that a baseline file has codes for (T.81, tables F.1 and F.2).
enum { CJPEG_LEAST_DC = -1024, CJPEG_MOST_COEFFICIENT = 1023 };

/// Reads the only scan of the source, of which the header has been read, and requantises it from the source's tables to
/// those wanted, by slot and in natural order. Keeps what a preview takes.
///
/// Returns false on any doubt; the decompressor is as before then, and libjpeg is to be asked. What the symbols keep is
/// the session's. May jump when it is interrupted.
bool cjpeg_read_symbols(
    cjpeg_session *s, const JQUANT_TBL wanted[NUM_QUANT_TBLS], cjpeg_symbols *symbols);

/// Writes tables, frame and scan, with the quantisation tables of the target, after what has been written; takes nothing
/// over where the whole would reach the largest output. May jump.
void cjpeg_write_symbols(cjpeg_session *s, const cjpeg_symbols *symbols, cjpeg_result *result);

#endif
