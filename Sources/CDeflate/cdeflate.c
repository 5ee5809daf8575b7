#include "cdeflate.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <libdeflate.h>
#include <zlib.h>

// MARK: - Compressors of a thread

enum { MOST_KEPT = 6 };

/// Indexed by level; NULL while in use, and before the first use.
static _Thread_local struct libdeflate_compressor *kept[MOST_KEPT + 1];

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int has_key;

static void free_kept(void *all) {
    struct libdeflate_compressor **compressors = all;
    for (int level = 0; level <= MOST_KEPT; level++) {
        libdeflate_free_compressor(compressors[level]);
        compressors[level] = NULL;
    }
}

static void make_key(void) { has_key = pthread_key_create(&key, free_kept) == 0; }

/// Returns a compressor for exclusive use until it is returned; NULL without memory.
///
/// Creating one takes 190,000 instructions, more than everything else for a small picture. So each
/// thread keeps one for every level up to 6, some 0.7 MB each, until it ends. At higher levels the
/// compressor is a small part of the cost.
static struct libdeflate_compressor *take_compressor(int level) {
    if (level > MOST_KEPT || kept[level] == NULL) return libdeflate_alloc_compressor(level);
    struct libdeflate_compressor *compressor = kept[level];
    kept[level] = NULL;
    return compressor;
}

/// Returns a compressor to the thread's cache, or frees it.
static void return_compressor(struct libdeflate_compressor *compressor, int level) {
    if (compressor == NULL) return;
    pthread_once(&once, make_key);
    // The key's destructor frees the cache with the thread; without a key nothing is cached.
    if (level <= MOST_KEPT && kept[level] == NULL && has_key
        && pthread_setspecific(key, kept) == 0) {
        kept[level] = compressor;
    } else {
        libdeflate_free_compressor(compressor);
    }
}

// MARK: - Whole buffers

uint8_t *cdeflate_compress(const uint8_t *bytes, size_t length, int level, size_t *output_length) {
    struct libdeflate_compressor *compressor = take_compressor(level);
    if (compressor == NULL) return NULL;
    size_t bound = libdeflate_zlib_compress_bound(compressor, length);
    uint8_t *output = malloc(bound);
    if (output != NULL) {
        *output_length = libdeflate_zlib_compress(compressor, bytes, length, output, bound);
    }
    return_compressor(compressor, level);
    return output;
}

uint8_t *cdeflate_decompress(
    const uint8_t *bytes, size_t length, size_t maximum, size_t *output_length) {
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    if (decompressor == NULL) return NULL;
    uint8_t *output = malloc(maximum);
    if (output != NULL
        && libdeflate_zlib_decompress(decompressor, bytes, length, output, maximum, output_length)
            != LIBDEFLATE_SUCCESS) {
        free(output);
        output = NULL;
    }
    libdeflate_free_decompressor(decompressor);
    return output;
}

size_t cdeflate_most_bytes(size_t length) {
    return libdeflate_zlib_compress_bound(NULL, length) + length / 1024 + 64;
}

const char *cdeflate_library_version(void) { return LIBDEFLATE_VERSION_STRING; }

// MARK: - Pieces

/// One call takes a few tenths of a second on noise, the slowest input. Level 4
/// compresses 50 MB/s, level 9 12, level 12 5 to 9.
///
/// No match reaches into the previous piece. That costs 0.2 to 0.5 % at level 12, 0.1 % at level 9
/// and nothing measurable below.
static size_t piece_bytes(int level) {
    return level > 9 ? 1 << 20 : level > 6 ? 2 << 20 : 8 << 20;
}

/// Finds the start and the end of a deflate stream's last block, in bits.
static bool find_last_block(
    const uint8_t *stream, size_t length, size_t *begin, size_t *end) {
    enum { SCRATCH = 1 << 17 };
    z_stream reader;
    memset(&reader, 0, sizeof reader);
    uint8_t *scratch = malloc(SCRATCH);
    if (scratch == NULL || inflateInit2(&reader, -MAX_WBITS) != Z_OK) {
        free(scratch);
        return false;
    }
    // The pointer type is not const, but zlib only reads.
    reader.next_in = (Bytef *)(uintptr_t)stream;
    reader.avail_in = (uInt)length;
    bool is_found = false;
    *begin = 0;
    while (!is_found) {
        reader.next_out = scratch;
        reader.avail_out = SCRATCH;
        if (inflate(&reader, Z_BLOCK) != Z_OK) break;
        // At the end of a block. The low three bits count the unused bits of the last byte.
        if ((reader.data_type & 128) == 0) continue;
        size_t place = 8 * (length - reader.avail_in) - (size_t)(reader.data_type & 7);
        if ((reader.data_type & 64) != 0) {
            *end = place;
            is_found = true;
        } else {
            *begin = place;
        }
    }
    inflateEnd(&reader);
    free(scratch);
    return is_found;
}

/// Lets more blocks follow the last one, at a byte's start. Clears its flag and adds an empty
/// stored block (RFC 1951 section 3.2.4) of up to five bytes. Returns the new length, 0 without
/// memory.
static size_t open_end(uint8_t *stream, size_t length) {
    size_t begin, end;
    if (!find_last_block(stream, length, &begin, &end)) return 0;
    stream[begin / 8] &= (uint8_t)~(1u << begin % 8);
    if (end % 8 != 0) stream[end / 8] &= (uint8_t)((1u << end % 8) - 1);
    // Three zero bits and the rest of their byte.
    size_t next = (end + 3 + 7) / 8;
    for (size_t index = (end + 7) / 8; index < next; index++) stream[index] = 0;
    static const uint8_t no_bytes[4] = {0, 0, 0xFF, 0xFF};
    memcpy(stream + next, no_bytes, sizeof no_bytes);
    return next + sizeof no_bytes;
}

ccodec_status cdeflate_compress_in_pieces(
    const uint8_t *bytes, size_t length, int level, cinterruption *interruption, uint8_t *output,
    size_t capacity, size_t *output_length) {
    enum { HEADER = 2, TRAILER = 4, JOINT = 5 };
    *output_length = 0;
    if (cinterruption_after(interruption, length)) return CCODEC_INTERRUPTED;
    struct libdeflate_compressor *compressor = take_compressor(level);
    if (compressor == NULL) return CCODEC_OUT_OF_MEMORY;
    size_t most = piece_bytes(level), used = HEADER;
    ccodec_status status = CCODEC_OK;
    if (length <= most) {
        *output_length = libdeflate_zlib_compress(compressor, bytes, length, output, capacity);
        used = 0;
    }
    for (size_t offset = 0; used > 0 && offset < length; offset += most) {
        if (cinterruption_after(interruption, most)) status = CCODEC_INTERRUPTED;
        if (status != CCODEC_OK || used + JOINT + TRAILER >= capacity) break;
        bool is_last = length - offset <= most;
        size_t made = libdeflate_deflate_compress(
            compressor, bytes + offset, is_last ? length - offset : most, output + used,
            capacity - used - JOINT - TRAILER);
        if (made == 0) break;
        if (!is_last) {
            made = open_end(output + used, made);
            if (made == 0) status = CCODEC_OUT_OF_MEMORY;
        }
        used += made;
        if (!is_last) continue;
        // RFC 1950: a window of 32 KiB; decoders ignore the level.
        output[0] = 0x78;
        output[1] = 0x9C;
        uint32_t checksum = libdeflate_adler32(1, bytes, length);
        for (int index = 0; index < TRAILER; index++) {
            output[used++] = (uint8_t)(checksum >> (24 - 8 * index));
        }
        *output_length = used;
    }
    return_compressor(compressor, level);
    return status;
}
