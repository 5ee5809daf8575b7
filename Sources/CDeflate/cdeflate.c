#include "cdeflate.h"
#include "cdeflate_compressors.h"

#include <stdlib.h>

uint8_t *cdeflate_compress(const uint8_t *bytes, size_t length, int level, size_t *output_length) {
    struct libdeflate_compressor *compressor = cdeflate_take_compressor(level);
    if (compressor == NULL) return NULL;
    size_t bound = libdeflate_zlib_compress_bound(compressor, length);
    uint8_t *output = malloc(bound);
    if (output != NULL) {
        *output_length = libdeflate_zlib_compress(compressor, bytes, length, output, bound);
    }
    cdeflate_return_compressor(compressor, level);
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
