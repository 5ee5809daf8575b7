#include "cdeflate.h"
#include "cpng.h"

#include <stdlib.h>
#include <string.h>

#include <libdeflate.h>

// Our own writer: libpng filters and compresses row by row through zlib, at a seventh of the speed.
// Nothing called here may jump.

/// Filters one row into `output[1...]` and its filter type into `output[0]`. Loops read raw
/// neighbours only and never their own results, so the compiler vectorises them.
static void filter_row(
    const uint8_t *restrict row, const uint8_t *restrict above, size_t count, size_t distance,
    cpng_filter filter, uint8_t *restrict output) {
    *output++ = (uint8_t)filter;
    size_t head = distance < count ? distance : count;
    switch (filter) {
    case CPNG_FILTER_SUB:
        memcpy(output, row, head);
        for (size_t i = head; i < count; i++) output[i] = (uint8_t)(row[i] - row[i - distance]);
        break;
    case CPNG_FILTER_UP:
        for (size_t i = 0; i < count; i++) output[i] = (uint8_t)(row[i] - above[i]);
        break;
    case CPNG_FILTER_AVERAGE:
        for (size_t i = 0; i < head; i++) output[i] = (uint8_t)(row[i] - (above[i] >> 1));
        for (size_t i = head; i < count; i++) {
            output[i] = (uint8_t)(row[i] - ((row[i - distance] + above[i]) >> 1));
        }
        break;
    case CPNG_FILTER_PAETH:
        for (size_t i = 0; i < head; i++) output[i] = (uint8_t)(row[i] - above[i]);
        for (size_t i = head; i < count; i++) {
            int16_t left = row[i - distance], up = above[i], corner = above[i - distance];
            int16_t to_left = (int16_t)(up - corner), to_up = (int16_t)(left - corner);
            int16_t to_corner = (int16_t)(to_left + to_up);
            to_left = (int16_t)(to_left < 0 ? -to_left : to_left);
            to_up = (int16_t)(to_up < 0 ? -to_up : to_up);
            to_corner = (int16_t)(to_corner < 0 ? -to_corner : to_corner);
            int16_t second = to_up <= to_corner ? up : corner;
            int16_t nearest = to_left <= to_corner ? left : corner;
            int16_t prediction = to_left <= to_up ? nearest : second;
            output[i] = (uint8_t)(row[i] - prediction);
        }
        break;
    default:
        memcpy(output, row, count);
    }
}

static uint64_t sum_of_differences(const uint8_t *bytes, size_t count) {
    uint64_t sum = 0;
    while (count > 0) {
        // A block's sum fits 32 bits, which vectorises better.
        size_t block = count < 65536 ? count : 65536;
        uint32_t part = 0;
        for (size_t i = 0; i < block; i++) {
            int8_t value = (int8_t)bytes[i];
            part += (uint8_t)(value < 0 ? -value : value);
        }
        sum += part;
        bytes += block;
        count -= block;
    }
    return sum;
}

/// Working memory for filtering.
typedef struct {
    /// The row above the first.
    uint8_t *zeros;
    /// Two filtered rows.
    uint8_t *scratch;
    /// For pairs: the last row that had each.
    uint32_t *pairs;
    uint32_t generation;
} filtering;

static bool filtering_make(filtering *state, const cpng_image *image, cpng_filter filter) {
    memset(state, 0, sizeof *state);
    state->zeros = calloc(image->row_bytes + 1, 1);
    state->scratch = malloc(2 * (image->row_bytes + 1));
    if (filter == CPNG_FILTER_PAIRS) state->pairs = calloc(65536, sizeof *state->pairs);
    return state->zeros != NULL && state->scratch != NULL
        && (filter != CPNG_FILTER_PAIRS || state->pairs != NULL);
}

static void filtering_free(filtering *state) {
    free(state->zeros);
    free(state->scratch);
    free(state->pairs);
}

static uint64_t different_pairs(filtering *state, const uint8_t *bytes, size_t count) {
    uint32_t *pairs = state->pairs;
    if (++state->generation == 0) {
        memset(pairs, 0, 65536 * sizeof *pairs);
        state->generation = 1;
    }
    uint64_t different = 0;
    for (size_t i = 1; i < count; i++) {
        uint32_t *last = &pairs[(size_t)bytes[i - 1] << 8 | bytes[i]];
        different += *last != state->generation;
        *last = state->generation;
    }
    return different;
}

/// Returns the half of `scratch` that holds the result.
static const uint8_t *filtered(
    filtering *state, const cpng_image *image, uint32_t y, cpng_filter filter) {
    size_t stride = image->row_bytes + 1;
    const uint8_t *row = image->rows + (size_t)y * stride + 1;
    const uint8_t *above = y > 0 ? row - stride : state->zeros;
    size_t distance = (size_t)image->filter_distance;
    if (filter < CPNG_FILTER_SUMS) {
        filter_row(row, above, image->row_bytes, distance, filter, state->scratch);
        return state->scratch;
    }
    uint8_t *best = state->scratch, *next = state->scratch + stride;
    uint64_t least = UINT64_MAX;
    for (int candidate = CPNG_FILTER_PAETH; candidate >= CPNG_FILTER_NONE; candidate--) {
        // By sums, no filter is right only for unrelated pixels.
        if (filter == CPNG_FILTER_SUMS && candidate == CPNG_FILTER_NONE) break;
        filter_row(row, above, image->row_bytes, distance, (cpng_filter)candidate, next);
        uint64_t value = filter == CPNG_FILTER_SUMS
            ? sum_of_differences(next + 1, image->row_bytes)
            : different_pairs(state, next + 1, image->row_bytes);
        if (value < least) {
            least = value;
            uint8_t *better = next;
            next = best;
            best = better;
        }
    }
    return best;
}

/// Sets `*size` to 0 with `CCODEC_OK` if it does not fit.
static ccodec_status compressed(
    const uint8_t *bytes, size_t length, cpng_strategy strategy, cinterruption *interruption,
    uint8_t *output, size_t capacity, size_t *size) {
    *size = 0;
    // For more than 32 bits, the faster of the others.
    int level = strategy.level;
    ccodec_status status = CCODEC_LIMIT;
    if (strategy.compressor == CPNG_PHOTOGRAPH) {
        status = cdeflate_compress_photograph(
            bytes, length, level, interruption, output, capacity, size);
        level = 1;
    }
    if (status == CCODEC_LIMIT) {
        status = cdeflate_compress_in_pieces(
            bytes, length, level, interruption, output, capacity, size);
    }
    return status;
}

size_t cpng_trial(const cpng_image *image, cpng_strategy strategy) {
    size_t stride = image->row_bytes + 1;
    size_t length = stride * image->height, bound = cdeflate_most_bytes(length), result = 0;
    filtering state;
    bool has_memory = filtering_make(&state, image, strategy.filter);
    uint8_t *rows = malloc(length), *output = malloc(bound);
    if (has_memory && rows != NULL && output != NULL) {
        for (uint32_t y = 0; y < image->height; y++) {
            if (cinterruption_after(image->interruption, stride)) break;
            memcpy(rows + y * stride, filtered(&state, image, y, strategy.filter), stride);
        }
        compressed(rows, length, strategy, image->interruption, output, bound, &result);
    }
    filtering_free(&state);
    free(rows);
    free(output);
    return result;
}

double cpng_flatness(const cpng_image *image) {
    size_t distance = (size_t)image->filter_distance, equal = 0, compared = 0;
    for (uint32_t y = 0; y < image->height; y += 8) {
        if (cinterruption_after(image->interruption, image->row_bytes)) break;
        const uint8_t *row = image->rows + y * (image->row_bytes + 1) + 1;
        for (size_t i = distance; i + distance <= image->row_bytes; i += distance) {
            equal += memcmp(row + i, row + i - distance, distance) == 0;
            compared++;
        }
    }
    return compared > 0 ? (double)equal / (double)compared : 1;
}

static unsigned chroma_distance(const uint8_t *one, const uint8_t *other) {
    int blue = one[2] - one[1] - (other[2] - other[1]);
    int red = one[0] - one[1] - (other[0] - other[1]);
    return (unsigned)(abs(blue) + abs(red));
}

double cpng_chroma_detail(const cpng_image *image) {
    bool has_alpha = image->color_type == 6;
    if (image->bit_depth != 8 || (image->color_type != 2 && !has_alpha)) return 0;
    uint64_t sum = 0, compared = 0;
    size_t stride = image->row_bytes + 1, size = has_alpha ? 4 : 3;
    // The second of every eight rows, which has one above; a single row is its own.
    for (uint32_t y = image->height > 1; y < image->height; y += 8) {
        if (cinterruption_after(image->interruption, image->row_bytes)) break;
        const uint8_t *row = image->rows + y * stride + 1, *above = y > 0 ? row - stride : row;
        for (size_t i = size; i + size <= image->row_bytes; i += size) {
            // The colour of a transparent pixel is meaningless.
            if (has_alpha && (row[i + 3] == 0 || row[i - 1] == 0 || above[i + 3] == 0)) continue;
            sum += chroma_distance(row + i, row + i - size) + chroma_distance(row + i, above + i);
            compared += 4;
        }
    }
    return compared > 0 ? (double)sum / (double)compared : 0;
}

static void store_32(uint8_t *bytes, uint32_t value) {
    for (int index = 0; index < 4; index++) bytes[index] = (uint8_t)(value >> (24 - 8 * index));
}

uint32_t cpng_crc(const uint8_t *bytes, size_t length) {
    return cpng_crc_continued(0, bytes, length);
}

uint32_t cpng_crc_continued(uint32_t checksum, const uint8_t *bytes, size_t length) {
    // Without bytes the library would restart the checksum.
    return bytes == NULL ? checksum : libdeflate_crc32(checksum, bytes, length);
}

/// Completes a chunk with its data at `chunk + 8`; returns its end.
static uint8_t *finish_chunk(uint8_t *chunk, const char *type, size_t length) {
    store_32(chunk, (uint32_t)length);
    memcpy(chunk + 4, type, 4);
    store_32(chunk + 8 + length, cpng_crc(chunk + 4, length + 4));
    return chunk + 12 + length;
}

ccodec_status cpng_encode(
    cpng_image *image, const uint8_t *chunks, size_t chunks_length, cpng_strategy strategy,
    bool keeps_rows, size_t maximum_output, uint8_t **output, size_t *output_length) {
    *output = NULL;
    *output_length = 0;
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    const size_t header = sizeof signature + 25, trailer = 12, frame = 12;
    size_t stride = image->row_bytes + 1, length = stride * image->height;
    size_t fixed = header + chunks_length + frame + trailer;
    // Must stay below `maximum_output`; a chunk's length has 31 bits.
    size_t bound = fixed + cdeflate_most_bytes(length);
    size_t capacity = bound < maximum_output ? bound : maximum_output;
    if (capacity > fixed + INT32_MAX) capacity = fixed + INT32_MAX;
    if (capacity <= fixed) return CCODEC_OK;
    filtering state;
    bool has_memory = filtering_make(&state, image, strategy.filter);
    uint8_t *bytes = malloc(capacity), *rows = keeps_rows ? malloc(length) : image->rows;
    ccodec_status status = CCODEC_OUT_OF_MEMORY;
    if (has_memory && bytes != NULL && rows != NULL) {
        // From the last row up, since a filter reads the raw row above.
        for (uint32_t y = image->height; y-- > 0;) {
            if (cinterruption_after(image->interruption, stride)) break;
            uint8_t *target = rows + (size_t)y * stride;
            if (strategy.filter == CPNG_FILTER_NONE && !keeps_rows) {
                *target = CPNG_FILTER_NONE;
            } else {
                memcpy(target, filtered(&state, image, y, strategy.filter), stride);
            }
        }
        uint8_t *data = bytes + header + chunks_length + 8;
        size_t size = 0;
        status = compressed(
            rows, length, strategy, image->interruption, data, capacity - fixed, &size);
        if (status == CCODEC_OK && size > 0 && fixed + size < maximum_output) {
            memcpy(bytes, signature, sizeof signature);
            uint8_t *chunk = bytes + sizeof signature;
            store_32(chunk + 8, image->width);
            store_32(chunk + 12, image->height);
            chunk[16] = (uint8_t)image->bit_depth;
            chunk[17] = (uint8_t)image->color_type;
            memset(chunk + 18, 0, 3);
            chunk = finish_chunk(chunk, "IHDR", 13);
            if (chunks_length > 0) memcpy(chunk, chunks, chunks_length);
            chunk = finish_chunk(chunk + chunks_length, "IDAT", size);
            finish_chunk(chunk, "IEND", 0);
            uint8_t *shrunk = realloc(bytes, fixed + size);
            *output = shrunk != NULL ? shrunk : bytes;
            *output_length = fixed + size;
            bytes = NULL;
        }
    }
    filtering_free(&state);
    free(bytes);
    if (keeps_rows) free(rows);
    return status;
}
