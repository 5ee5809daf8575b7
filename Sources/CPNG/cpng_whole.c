#include "cpng_whole.h"

#include <stdlib.h>
#include <string.h>

#include <libdeflate.h>
#include <zlib.h>

bool cpng_has_whole_window(uint8_t first, size_t rows) {
    size_t window = (size_t)1 << (8 + (first >> 4));
    return window >= 1 << MAX_WBITS || (rows > 0 && window >= rows);
}

bool cpng_unpack(
    const uint8_t *stream, size_t length, uint8_t *rows, size_t row_bytes, size_t *taken) {
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    if (decompressor == NULL) return false;
    enum libdeflate_result result = libdeflate_zlib_decompress_ex(
        decompressor, stream, length, rows, row_bytes, taken, NULL);
    libdeflate_free_decompressor(decompressor);
    return result == LIBDEFLATE_SUCCESS;
}

static uint32_t load_32(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8
        | bytes[3];
}

bool cpng_is_type(const uint8_t *chunk, const char *type) {
    return memcmp(chunk + CPNG_CHUNK_LENGTH, type, CPNG_CHUNK_TYPE) == 0;
}

bool cpng_is_ancillary(const uint8_t *chunk) { return chunk[CPNG_CHUNK_LENGTH] & 0x20; }

bool cpng_has_valid_head(const uint8_t *chunk) {
    for (int index = 0; index < CPNG_CHUNK_TYPE; index++) {
        uint8_t letter = chunk[CPNG_CHUNK_LENGTH + index] | 0x20;
        if (letter < 'a' || letter > 'z') return false;
    }
    return load_32(chunk) <= INT32_MAX;
}

size_t cpng_chunk_bytes(const uint8_t *source, size_t length, size_t offset) {
    size_t left = length - offset;
    if (left < CPNG_CHUNK_FRAME || !cpng_has_valid_head(source + offset)) return 0;
    size_t count = load_32(source + offset);
    return count <= left - CPNG_CHUNK_FRAME ? CPNG_CHUNK_FRAME + count : 0;
}

size_t cpng_cut_image_data(const uint8_t *source, size_t length, size_t offset) {
    const uint8_t *chunk = source + offset;
    size_t left = length - offset;
    if (left <= CPNG_CHUNK_HEAD || cpng_chunk_bytes(source, length, offset) > 0
        || !cpng_has_valid_head(chunk) || !cpng_is_type(chunk, "IDAT")) {
        return 0;
    }
    size_t count = load_32(chunk);
    if (count > left - CPNG_CHUNK_HEAD + CPNG_SUM_OF_DATA) return 0;
    return count < left - CPNG_CHUNK_HEAD ? CPNG_CHUNK_HEAD + count : left;
}

bool cpng_is_intact(const uint8_t *chunk, size_t bytes) {
    size_t end = bytes - CPNG_CHUNK_CHECKSUM;
    return libdeflate_crc32(0, chunk + CPNG_CHUNK_LENGTH, end - CPNG_CHUNK_LENGTH)
        == load_32(chunk + end);
}

bool cpng_find_image_data(
    const uint8_t *source, size_t length, size_t begin, cpng_image_data *data) {
    *data = (cpng_image_data){.source = source, .begin = begin, .end = begin};
    for (size_t bytes; (bytes = cpng_chunk_bytes(source, length, data->end)) > 0;) {
        const uint8_t *chunk = source + data->end;
        if (!cpng_is_type(chunk, "IDAT")) break;
        data->length += bytes - CPNG_CHUNK_FRAME;
        if (!cpng_is_unpacked_at_once(0, data->length) || !cpng_is_intact(chunk, bytes)) return false;
        data->chunks++;
        data->end += bytes;
    }
    return data->length > 0;
}

/// The data of all chunks, joined, for the caller to release with `free`.
static uint8_t *joined(const cpng_image_data *data) {
    uint8_t *stream = malloc(data->length);
    if (stream == NULL) return NULL;
    uint8_t *target = stream;
    for (size_t offset = data->begin; offset < data->end;) {
        size_t count = load_32(data->source + offset);
        memcpy(target, data->source + offset + CPNG_CHUNK_HEAD, count);
        target += count;
        offset += CPNG_CHUNK_FRAME + count;
    }
    return stream;
}

bool cpng_unpack_image_data(const cpng_image_data *data, uint8_t *rows, size_t row_bytes) {
    bool is_joined = data->chunks > 1;
    const uint8_t *stream = is_joined ? joined(data) : data->source + data->begin + CPNG_CHUNK_HEAD;
    if (stream == NULL) return false;
    size_t taken;
    bool is_whole = cpng_has_whole_window(*stream, row_bytes)
        && cpng_unpack(stream, data->length, rows, row_bytes, &taken) && taken == data->length;
    // `free` takes no pointer to const.
    if (is_joined) free((void *)(uintptr_t)stream);
    return is_whole;
}
