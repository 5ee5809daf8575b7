// libdeflate in pieces: it compresses a whole buffer in one call, which nothing can interrupt.
#ifndef CPNG_PIECES_H
#define CPNG_PIECES_H

#include "cpng.h"

/// Compresses to a zlib stream (RFC 1950, 1951). `*output_length` is 0 with `CPNG_OK` when it does
/// not fit into `capacity`; `CPNG_INTERRUPTED` answers an interruption.
///
/// - `level`: libdeflate's, 1…12.
cpng_status cpng_compress_in_pieces(
    const uint8_t *bytes, size_t length, int level, cinterruption *interruption,
    uint8_t *output, size_t capacity, size_t *output_length);

#endif
