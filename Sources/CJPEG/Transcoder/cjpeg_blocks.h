#pragma once

// Reading and requantising the blocks of a transcoded scan.

#include "cjpeg_bits.h"
#include "cjpeg_mcus.h"
#include "cjpeg_tables.h"
#include "cjpeg_transcode.h"

/// The most symbols of a block: 1 DC coefficient, 63 AC coefficients, the end of the block, and
/// runs of 16 zeros.
enum { CJPEG_BLOCK_SYMBOLS = 80 };

/// Counts coefficients that become zero. A run of 0 with category 15 does not exist.
enum { CJPEG_NO_SYMBOL = 0x0F };

/// A component's DC prediction in the source and in the result (T.81, F.1.1.5.1).
typedef struct {
    int read, written;
} cjpeg_prediction;

/// A block of an MCU. They form a ring, so the loop over blocks does not end at each MCU: a
/// branch that processors mispredict, at 27 cycles.
typedef struct cjpeg_place cjpeg_place;
struct cjpeg_place {
    cjpeg_place *next;
    const cjpeg_codes *dc, *ac;
    const cjpeg_requantisation *to;
    cjpeg_prediction *last;
    /// Counters of the written symbols; a dummy array for padding blocks.
    uint32_t *dc_counts, *ac_counts;
    /// The tables' numbers, shifted to their place in a symbol.
    uint32_t dc_table, ac_table;
    /// Destination of the next block's coefficients, or of its DC coefficient, and the distance to
    /// the following one.
    JCOEF *kept;
    size_t kept_step;
    /// Beyond the picture's right or lower edge, only to fill the MCU. The result repeats the
    /// previous block's DC there, as libjpeg does.
    bool is_padding;
    int component, x, y;
};

typedef struct {
    cjpeg_session *s;
    cjpeg_symbols *symbols;
    cjpeg_window window;
    cjpeg_bits bits;
    /// The next symbol's destination, and the limit from which there is no room for a block's
    /// symbols.
    uint32_t *to, *limit;
    cjpeg_place places[CJPEG_MOST_BLOCKS];
    size_t blocks;
    cjpeg_prediction last[MAX_COMPONENTS];
    uint32_t padding_counts[256];
    /// Receives unneeded DC coefficients, to avoid a branch.
    JCOEF unwanted;
    /// Whether many coefficients become zero.
    bool is_coarse;
} cjpeg_scan;

/// Reads that many blocks, starting with the first of an MCU. Returns false to fall back to
/// libjpeg.
bool cjpeg_read_blocks(cjpeg_scan *scan, size_t count);
