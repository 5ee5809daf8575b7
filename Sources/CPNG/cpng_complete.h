// Image data with all rows but without its end, as a stream that has one.

#pragma once

#include "cpng.h"

#include <zlib.h>

/// The most bytes of rows in a made chunk, which is a stored block (RFC 1951, 3.2.4). They fit the
/// processor's caches.
enum { CPNG_MOST_COMPLETED = 1 << 15 };

typedef struct {
    const uint8_t *source;
    /// The next chunk of the source, and the end of the last one.
    size_t next, end;
    z_stream stream;
    /// Bytes of rows that are still to come.
    uint64_t rows_left;
    uint32_t sum;
    bool is_begun;
    /// A chunk of image data: its head, the zlib header of the first, a block, the checksum of the
    /// last, and its own.
    uint8_t chunk[8 + 2 + 5 + CPNG_MOST_COMPLETED + 4 + 4];
    size_t length;
} cpng_completion;

/// Begins to read the chunks from `begin` to `end`, with right checksums, for `rows` bytes of rows.
/// The last may end with its data, as many as there are.
/// Returns NULL without memory.
cpng_completion *cpng_begin_completion(
    const uint8_t *source, size_t begin, size_t end, uint64_t rows);

/// Makes the next chunk; one of length 0 behind the last. Returns false if rows are missing.
bool cpng_complete_chunk(cpng_completion *completion);

/// Accepts NULL.
void cpng_end_completion(cpng_completion *completion);
