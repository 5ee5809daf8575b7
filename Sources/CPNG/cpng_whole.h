// Image data unpacked by one call of libdeflate, directly to the rows. It takes half the time of
// zlib row by row, which leaves its fast loop 260 bytes before each row's end.
#pragma once

#include "cpng.h"

/// Whether rows and a stream of these sizes are unpacked in one call, which cannot be interrupted.
/// The most rows of noise take 0.1 s. The worst case is 2 s, for a maximal stream crafted from
/// blocks that hold only new codes (4.6 MB/s).
static inline bool cpng_is_unpacked_at_once(uint64_t rows, uint64_t stream) {
    return rows <= CPNG_MOST_BYTES_AT_ONCE && stream <= CPNG_MOST_STREAM_AT_ONCE;
}

/// The bytes of all rows with their filter types; the greatest number if they cannot be counted.
uint64_t cpng_bytes_of_rows(const cpng_form *form);

/// Whether a stream's first byte declares the full window, or one as large as the data; `rows` is 0
/// for more than any window. libpng enforces the declared window, libdeflate does not, and zlib
/// only beyond one call's output.
bool cpng_has_whole_window(uint8_t first, size_t rows);

/// Unpacks a zlib stream (RFC 1950) of exactly `row_bytes`, with the right checksum. `*taken` is
/// the stream's length; bytes after it have no effect.
bool cpng_unpack(
    const uint8_t *stream, size_t length, uint8_t *rows, size_t row_bytes, size_t *taken);

/// A chunk: its length, four letters, the data, and the checksum of letters and data.
enum {
    CPNG_CHUNK_LENGTH = 4,
    CPNG_CHUNK_TYPE = 4,
    CPNG_CHUNK_HEAD = CPNG_CHUNK_LENGTH + CPNG_CHUNK_TYPE,
    CPNG_CHUNK_CHECKSUM = 4,
    CPNG_CHUNK_FRAME = CPNG_CHUNK_HEAD + CPNG_CHUNK_CHECKSUM,
};

/// Whether the type is letters and the length is valid.
bool cpng_has_valid_head(const uint8_t *chunk);

/// Returns the size of the chunk at `offset` with its frame; 0 if it is cut or has no valid head.
size_t cpng_chunk_bytes(const uint8_t *source, size_t length, size_t offset);

/// The checksum at the end of a zlib stream, in bytes.
enum { CPNG_SUM_OF_DATA = 4 };

/// Returns the size of the head and the data, as much as there is, of a chunk of image data that is
/// cut inside the checksums at its end; 0 for another place.
size_t cpng_cut_image_data(const uint8_t *source, size_t length, size_t offset);

/// Writes a number, the most significant byte first.
static inline void cpng_store_32(uint8_t *to, uint32_t value) {
    for (int index = 0; index < 4; index++) to[index] = (uint8_t)(value >> (24 - 8 * index));
}

bool cpng_is_type(const uint8_t *chunk, const char *type);

/// Whether a decoder may pass over the chunk (PNG section 5.4).
bool cpng_is_ancillary(const uint8_t *chunk);

/// Whether the checksum of a whole chunk is right.
bool cpng_is_intact(const uint8_t *chunk, size_t bytes);

/// A file's image data: consecutive chunks from `begin`.
typedef struct {
    /// The whole file.
    const uint8_t *source;
    size_t begin;
    /// The end of the last chunk.
    size_t end;
    /// The length of the data in all chunks.
    size_t length;
    size_t chunks;
} cpng_image_data;

/// Finds the image data with a first chunk at `begin`. Returns false to leave it to libpng: if it
/// is damaged, or more than is unpacked in one piece.
bool cpng_find_image_data(
    const uint8_t *source, size_t length, size_t begin, cpng_image_data *data);

/// Unpacks image data to rows with their filter types. Returns false to leave it to libpng:
/// anything but exactly one stream of exactly the rows, or no memory.
bool cpng_unpack_image_data(const cpng_image_data *data, uint8_t *rows, size_t row_bytes);
