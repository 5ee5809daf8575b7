// Image data as a whole: unpacked in one call of libdeflate to where the rows will be. It takes half
// the time that zlib takes row by row, which leaves its fast loop 260 bytes before each row's end.
#ifndef CPNG_WHOLE_H
#define CPNG_WHOLE_H

#include "cpng.h"

/// Whether so many bytes of rows, and of a stream, are unpacked in one call, which nothing can
/// interrupt: 0.1 s for the most rows of noise. At worst it is 2 s, for the most of a stream that is
/// made to be slow, of blocks that hold nothing but new codes (4.6 MB/s).
static inline bool cpng_is_unpacked_at_once(uint64_t rows, uint64_t stream) {
    return rows <= CPNG_MOST_BYTES_AT_ONCE && stream <= CPNG_MOST_STREAM_AT_ONCE;
}

/// Whether a stream that begins with this byte says that it looks back as far as it may, or as there
/// are bytes; `rows` is 0 for more than any window. The decoder holds a stream to its word,
/// libdeflate does not, and zlib only beyond what one call gives.
bool cpng_has_whole_window(uint8_t first, size_t rows);

/// Unpacks a zlib stream (RFC 1950) of so many bytes, neither more nor fewer, whose checksum is
/// right. `*taken` says how long it is: what follows has no effect.
bool cpng_unpack(
    const uint8_t *stream, size_t length, uint8_t *rows, size_t row_bytes, size_t *taken);

/// The image data of a file, which begins with the chunk at `begin`, as far as chunks of it follow
/// one another.
typedef struct {
    /// Of the file.
    const uint8_t *source;
    size_t begin;
    /// Behind the last of the chunks.
    size_t end;
    /// Of the data in all of them.
    size_t length;
    size_t chunks;
} cpng_image_data;

/// Finds the image data whose first chunk begins at `begin`. False for what is left to libpng: data
/// that is cut, a wrong checksum, a chunk of more than `maximum_chunk_bytes`, data in two places,
/// and more than is unpacked at once.
bool cpng_find_image_data(
    const uint8_t *source, size_t length, size_t begin, uint64_t maximum_chunk_bytes,
    cpng_image_data *data);

/// Unpacks it to rows with their filter types, of so many bytes. False for what is left to libpng:
/// whatever is not exactly one stream of exactly the rows, and where there is no memory.
bool cpng_unpack_image_data(const cpng_image_data *data, uint8_t *rows, size_t row_bytes);

#endif
