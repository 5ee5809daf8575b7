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

// A chunk: its length, four letters, the data, and the checksum of letters and data.
enum { LENGTH = 4, TYPE = 4, HEAD = LENGTH + TYPE, CHECKSUM = 4, FRAME = HEAD + CHECKSUM };

static bool is_type(const uint8_t *chunk, const char *type) {
    return memcmp(chunk + LENGTH, type, TYPE) == 0;
}

bool cpng_find_image_data(
    const uint8_t *source, size_t length, size_t begin, uint64_t maximum_chunk_bytes,
    cpng_image_data *data) {
    *data = (cpng_image_data){.source = source, .begin = begin};
    size_t offset = begin;
    while (length - offset >= FRAME && is_type(source + offset, "IDAT")) {
        const uint8_t *chunk = source + offset;
        size_t count = load_32(chunk);
        if (count > length - offset - FRAME || count > maximum_chunk_bytes) return false;
        data->length += count;
        if (!cpng_is_unpacked_at_once(0, data->length)) return false;
        uint32_t checksum = libdeflate_crc32(0, chunk + LENGTH, TYPE + count);
        if (checksum != load_32(chunk + HEAD + count)) return false;
        data->chunks++;
        offset += FRAME + count;
    }
    data->end = offset;
    // If image data follows elsewhere, libpng reads the file: its message depends on the rows read.
    while (length - offset >= HEAD && !is_type(source + offset, "IEND")) {
        size_t count = load_32(source + offset);
        if (is_type(source + offset, "IDAT")) return false;
        if (length - offset - HEAD < CHECKSUM || count > length - offset - FRAME) break;
        offset += FRAME + count;
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
        memcpy(target, data->source + offset + HEAD, count);
        target += count;
        offset += FRAME + count;
    }
    return stream;
}

bool cpng_unpack_image_data(const cpng_image_data *data, uint8_t *rows, size_t row_bytes) {
    bool is_joined = data->chunks > 1;
    const uint8_t *stream = is_joined ? joined(data) : data->source + data->begin + HEAD;
    if (stream == NULL) return false;
    size_t taken;
    bool is_whole = cpng_has_whole_window(*stream, row_bytes)
        && cpng_unpack(stream, data->length, rows, row_bytes, &taken) && taken == data->length;
    // `free` takes no pointer to const.
    if (is_joined) free((void *)(uintptr_t)stream);
    return is_whole;
}
