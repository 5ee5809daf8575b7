#ifndef CJPEG_BLOCKS_H
#define CJPEG_BLOCKS_H

// The blocks of a scan that is transcoded: how they are read and requantised.

#include "cjpeg_bits.h"
#include "cjpeg_mcus.h"
#include "cjpeg_requantisation.h"
#include "cjpeg_transcode.h"

/// At most 1 DC coefficient, 63 others and the end of a block, or a run of 16 zeros in the place of sixteen of them.
enum { CJPEG_BLOCK_SYMBOLS = 80 };

/// Where coefficients are counted that become nothing: of a run of 0 and 15 bits, which there is not.
enum { CJPEG_NO_SYMBOL = 0x0F };

/// A component's prediction of DC coefficients, as the source and as the result have them (T.81, F.1.1.5.1).
typedef struct {
    int read, written;
} cjpeg_prediction;

/// A block of a unit of the scan. They are a ring, so that the loop over blocks has no end at each unit, which a
/// processor cannot foresee: 27 cycles each.
typedef struct cjpeg_place cjpeg_place;
struct cjpeg_place {
    cjpeg_place *next;
    const cjpeg_codes *dc, *ac;
    const cjpeg_requantisation *to;
    cjpeg_prediction *last;
    /// The counts that symbols are added to; those of nobody where the block is padding.
    uint32_t *dc_counts, *ac_counts;
    /// The tables, where a symbol has them.
    uint32_t dc_table, ac_table;
    /// Where the next block's coefficients go, or its DC coefficient, and how far that is from there to the one after it.
    JCOEF *kept;
    size_t kept_step;
    /// Beyond the picture's right or lower edge, there only to fill the unit: the result has nothing but the block
    /// before it there, as libjpeg writes it.
    bool is_padding;
    int component, x, y;
};

typedef struct {
    cjpeg_session *s;
    cjpeg_symbols *symbols;
    cjpeg_window window;
    cjpeg_bits bits;
    /// Where the next symbol goes, and from where on there is no room for a block's.
    uint32_t *to, *limit;
    cjpeg_place places[CJPEG_MOST_BLOCKS];
    size_t blocks;
    cjpeg_prediction last[MAX_COMPONENTS];
    uint32_t padding_counts[256];
    /// Of all blocks the DC coefficient goes somewhere, which takes no branch.
    JCOEF unwanted;
    /// Many coefficients become zero.
    bool is_coarse;
} cjpeg_scan;

/// Reads so many blocks, which begin with the first of a unit. Returns false on doubt.
bool cjpeg_read_blocks(cjpeg_scan *scan, size_t count);

#endif
