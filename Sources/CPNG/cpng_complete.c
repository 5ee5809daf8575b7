#include "cpng_complete.h"
#include "cpng_whole.h"

#include <stdlib.h>
#include <string.h>

#include <libdeflate.h>

cpng_completion *cpng_begin_completion(
    const uint8_t *source, size_t begin, size_t end, uint64_t rows) {
    cpng_completion *completion = calloc(1, sizeof *completion);
    if (completion == NULL || inflateInit(&completion->stream) != Z_OK) {
        free(completion);
        return NULL;
    }
    completion->source = source;
    completion->next = begin;
    completion->end = end;
    completion->rows_left = rows;
    completion->sum = libdeflate_adler32(0, NULL, 0);
    return completion;
}

void cpng_end_completion(cpng_completion *completion) {
    if (completion == NULL) return;
    inflateEnd(&completion->stream);
    free(completion);
}

/// Unpacks `count` bytes of rows. Returns false if the data has fewer.
static bool unpack(cpng_completion *completion, uint8_t *rows, size_t count) {
    z_stream *stream = &completion->stream;
    stream->next_out = rows;
    stream->avail_out = (uInt)count;
    while (stream->avail_out > 0) {
        if (stream->avail_in == 0 && completion->next < completion->end) {
            const uint8_t *chunk = completion->source + completion->next;
            size_t bytes = cpng_chunk_bytes(completion->source, completion->end, completion->next);
            size_t left = completion->end - completion->next;
            // The pointer type is not const, but zlib only reads.
            stream->next_in = (Bytef *)(uintptr_t)(chunk + CPNG_CHUNK_HEAD);
            stream->avail_in =
                (uInt)(bytes > 0 ? bytes - CPNG_CHUNK_FRAME : left - CPNG_CHUNK_HEAD);
            completion->next += bytes > 0 ? bytes : left;
            continue;
        }
        if (inflate(stream, Z_NO_FLUSH) != Z_OK) break;
    }
    return stream->avail_out == 0;
}

static uint8_t *put_32(uint8_t *to, uint32_t value) {
    cpng_store_32(to, value);
    return to + 4;
}

bool cpng_complete_chunk(cpng_completion *completion) {
    completion->length = 0;
    if (completion->rows_left == 0) return true;
    size_t count = completion->rows_left < CPNG_MOST_COMPLETED
        ? (size_t)completion->rows_left : CPNG_MOST_COMPLETED;
    uint8_t *to = completion->chunk + CPNG_CHUNK_HEAD;
    if (!completion->is_begun) {
        // Deflate with a window of 32 KiB.
        *to++ = 0x78;
        *to++ = 0x01;
        completion->is_begun = true;
    }
    bool is_last = count == completion->rows_left;
    const uint8_t head[] = {
        is_last, (uint8_t)count, (uint8_t)(count >> 8), (uint8_t)~count, (uint8_t)(~count >> 8)};
    memcpy(to, head, sizeof head);
    to += sizeof head;
    if (!unpack(completion, to, count)) return false;
    completion->sum = libdeflate_adler32(completion->sum, to, count);
    completion->rows_left -= count;
    to += count;
    if (is_last) to = put_32(to, completion->sum);
    uint8_t *type = completion->chunk + CPNG_CHUNK_LENGTH;
    put_32(completion->chunk, (uint32_t)(to - type - CPNG_CHUNK_TYPE));
    memcpy(type, "IDAT", CPNG_CHUNK_TYPE);
    to = put_32(to, libdeflate_crc32(0, type, (size_t)(to - type)));
    completion->length = (size_t)(to - completion->chunk);
    return true;
}
