#include "cpng.h"

#include <png.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

// A filtered byte is the difference from a prediction. That uses the bytes to its left (a), above
// (b) and above to the left (c), one pixel away; they are zero beyond the picture.

static uint8_t paeth(int a, int b, int c) {
    int pa = b - c, pb = a - c, pc = pa + pb;
    if (pa < 0) pa = -pa;
    if (pb < 0) pb = -pb;
    if (pc < 0) pc = -pc;
    return (uint8_t)(pa <= pb && pa <= pc ? a : pb <= pc ? b : c);
}

static void add_left(uint8_t *row, size_t row_bytes, size_t distance) {
    for (size_t i = distance; i < row_bytes; i++) row[i] = (uint8_t)(row[i] + row[i - distance]);
}

static void add_above(uint8_t *restrict row, const uint8_t *restrict above, size_t row_bytes) {
    for (size_t i = 0; i < row_bytes; i++) row[i] = (uint8_t)(row[i] + above[i]);
}

static void add_half_left(uint8_t *row, size_t row_bytes, size_t distance) {
    for (size_t i = distance; i < row_bytes; i++) {
        row[i] = (uint8_t)(row[i] + row[i - distance] / 2);
    }
}

static void add_average(
    uint8_t *row, const uint8_t *above, size_t row_bytes, size_t distance) {
    size_t i = 0;
    for (; i < distance && i < row_bytes; i++) row[i] = (uint8_t)(row[i] + above[i] / 2);
    for (; i < row_bytes; i++) {
        row[i] = (uint8_t)(row[i] + (row[i - distance] + above[i]) / 2);
    }
}

static void add_paeth(
    uint8_t *row, const uint8_t *above, size_t row_bytes, size_t distance) {
    size_t i = 0;
    for (; i < distance && i < row_bytes; i++) row[i] = (uint8_t)(row[i] + above[i]);
    for (; i < row_bytes; i++) {
        uint8_t nearest = paeth(row[i - distance], above[i], above[i - distance]);
        row[i] = (uint8_t)(row[i] + nearest);
    }
}

/// Undoes the filter of one row; `above` is the unfiltered row above, NULL for the first.
static void unfilter_portably(
    uint8_t filter, uint8_t *row, const uint8_t *above, size_t row_bytes, size_t distance) {
    switch (filter) {
    case PNG_FILTER_VALUE_SUB: add_left(row, row_bytes, distance); break;
    case PNG_FILTER_VALUE_UP:
        if (above != NULL) add_above(row, above, row_bytes);
        break;
    case PNG_FILTER_VALUE_AVG:
        if (above != NULL) {
            add_average(row, above, row_bytes, distance);
        } else {
            add_half_left(row, row_bytes, distance);
        }
        break;
    case PNG_FILTER_VALUE_PAETH:
        if (above != NULL) {
            add_paeth(row, above, row_bytes, distance);
        } else {
            // Among a, 0 and 0 the nearest to a is a.
            add_left(row, row_bytes, distance);
        }
        break;
    default: break;
    }
}

#ifdef __SSE2__

// Pixels one by one, each in one vector. Every pixel waits for the one before, so the length of
// that chain decides the speed. Pixels have 3, 4, 6 or 8 bytes; filter and size are compile-time
// constants. Smaller pixels gain nothing.

#define INLINE static inline __attribute__((always_inline))

/// The pixels to the left and above to the left; for Paeth's filter in lanes of 16 bits.
typedef struct {
    __m128i a, c;
} neighbours;

INLINE __m128i load(const uint8_t *bytes, size_t size) {
    uint64_t value = 0;
    memcpy(&value, bytes, size);
    return _mm_cvtsi64_si128((long long)value);
}

INLINE void store(uint8_t *bytes, __m128i pixel, size_t size) {
    uint64_t value = (uint64_t)_mm_cvtsi128_si64(pixel);
    memcpy(bytes, &value, size);
}

INLINE __m128i chosen(__m128i mask, __m128i yes, __m128i no) {
    return _mm_or_si128(_mm_and_si128(mask, yes), _mm_andnot_si128(mask, no));
}

INLINE __m128i add_average_pixel(neighbours *at, __m128i raw, __m128i b) {
    // The instruction rounds up, the filter down.
    __m128i odd = _mm_and_si128(_mm_xor_si128(at->a, b), _mm_set1_epi8(1));
    at->a = _mm_add_epi8(raw, _mm_sub_epi8(_mm_avg_epu8(at->a, b), odd));
    return at->a;
}

/// Adds the raw byte to all three neighbours before it chooses one, so only the choice waits for
/// `a`. That is 1.4 times as fast as adding after the choice.
INLINE __m128i add_paeth_pixel(neighbours *at, __m128i raw, __m128i b) {
    const __m128i zero = _mm_setzero_si128();
    __m128i a = at->a, c = at->c;
    b = _mm_unpacklo_epi8(b, zero);
    raw = _mm_unpacklo_epi8(raw, zero);
    // Bytewise, so the upper halves stay zero.
    __m128i sum_a = _mm_add_epi8(raw, a), sum_b = _mm_add_epi8(raw, b), sum_c = _mm_add_epi8(raw, c);
    __m128i b_less_c = _mm_sub_epi16(b, c);
    __m128i to_a = _mm_max_epi16(b_less_c, _mm_sub_epi16(c, b));
    __m128i to_b = _mm_max_epi16(_mm_sub_epi16(a, c), _mm_sub_epi16(c, a));
    // a + b − 2c, and its negative.
    __m128i rest = _mm_sub_epi16(b_less_c, c);
    __m128i to_c = _mm_max_epi16(
        _mm_add_epi16(a, rest), _mm_sub_epi16(_mm_sub_epi16(zero, rest), a));
    __m128i is_not_b = _mm_cmpgt_epi16(to_b, to_c);
    __m128i is_not_a = _mm_cmpgt_epi16(to_a, _mm_min_epi16(to_b, to_c));
    at->a = chosen(is_not_a, chosen(is_not_b, sum_c, sum_b), sum_a);
    at->c = b;
    return _mm_packus_epi16(at->a, at->a);
}

INLINE __m128i add_pixel(uint8_t filter, neighbours *at, __m128i raw, __m128i b) {
    switch (filter) {
    case PNG_FILTER_VALUE_SUB: return at->a = _mm_add_epi8(raw, at->a);
    case PNG_FILTER_VALUE_AVG: return add_average_pixel(at, raw, b);
    default: return add_paeth_pixel(at, raw, b);
    }
}

/// Reads and writes `wide` bytes at a time, since three or six take several instructions. The
/// excess lies where the next pixel is, which has been read before.
INLINE void add_pixels(
    uint8_t filter, uint8_t *row, const uint8_t *above, size_t row_bytes, size_t size,
    size_t wide) {
    neighbours at = {_mm_setzero_si128(), _mm_setzero_si128()};
    size_t i = 0;
    if (row_bytes > 2 * size) {
        __m128i next = load(row, wide);
        for (; i + 2 * size < row_bytes; i += size) {
            __m128i raw = next;
            next = load(row + i + size, wide);
            store(row + i, add_pixel(filter, &at, raw, load(above + i, wide)), wide);
        }
        store(row + i, next, size);
    }
    for (; i < row_bytes; i += size) {
        __m128i pixel = add_pixel(filter, &at, load(row + i, size), load(above + i, size));
        store(row + i, pixel, size);
    }
}

INLINE void unfilter_pixels(
    uint8_t filter, uint8_t *row, const uint8_t *above, size_t row_bytes, size_t size,
    size_t wide) {
    enum { SUB = PNG_FILTER_VALUE_SUB, AVERAGE = PNG_FILTER_VALUE_AVG };
    switch (filter) {
    case SUB: add_pixels(SUB, row, row, row_bytes, size, wide); break;
    case AVERAGE: add_pixels(AVERAGE, row, above, row_bytes, size, wide); break;
    default: add_pixels(PNG_FILTER_VALUE_PAETH, row, above, row_bytes, size, wide); break;
    }
}

#endif

/// Undoes the filter of one row by the vector instructions that every such machine has.
static void unfilter_quickly(
    uint8_t filter, uint8_t *row, const uint8_t *above, size_t row_bytes, size_t distance) {
#ifdef __SSE2__
    // Rows hold whole pixels if these have three bytes or more. The compiler vectorises filters
    // that only add the row above.
    bool is_chain = filter == PNG_FILTER_VALUE_SUB
        || (above != NULL && (filter == PNG_FILTER_VALUE_AVG || filter == PNG_FILTER_VALUE_PAETH));
    if (is_chain) {
        switch (distance) {
        case 3: unfilter_pixels(filter, row, above, row_bytes, 3, 4); return;
        case 4: unfilter_pixels(filter, row, above, row_bytes, 4, 4); return;
        case 6: unfilter_pixels(filter, row, above, row_bytes, 6, 8); return;
        case 8: unfilter_pixels(filter, row, above, row_bytes, 8, 8); return;
        default: break;
        }
    }
#endif
    unfilter_portably(filter, row, above, row_bytes, distance);
}

/// Zeroes the bits behind a row's last pixel, which filters include and pixels do not.
static void clear_rest(cpng_image *image) {
    size_t used = (size_t)image->width * (size_t)image->bit_depth % 8;
    if (image->bit_depth >= 8 || used == 0) return;
    uint8_t mask = (uint8_t)(0xFF << (8 - used));
    for (uint32_t y = 0; y < image->height; y++) {
        image->rows[y * (image->row_bytes + 1) + image->row_bytes] &= mask;
    }
}

ccodec_status cpng_unfilter(cpng_image *image, bool is_portable) {
    const uint8_t *above = NULL;
    for (uint32_t y = 0; y < image->height; y++) {
        uint8_t *row = image->rows + y * (image->row_bytes + 1);
        if (cinterruption_after(image->interruption, image->row_bytes)) return CCODEC_INTERRUPTED;
        size_t distance = (size_t)image->filter_distance;
        if (is_portable) {
            unfilter_portably(*row, row + 1, above, image->row_bytes, distance);
        } else {
            unfilter_quickly(*row, row + 1, above, image->row_bytes, distance);
        }
        above = row + 1;
    }
    clear_rest(image);
    return CCODEC_OK;
}
