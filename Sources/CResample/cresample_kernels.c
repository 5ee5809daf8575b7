#include "cresample_kernels.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Products and sums are rounded separately on every processor.
#pragma STDC FP_CONTRACT OFF

/// The same C, compiled once for each instruction set.
#define BODY static inline __attribute__((always_inline))

// MARK: plain C

BODY void add_body(
    uint16_t *restrict sums, const uint8_t *restrict row, size_t samples, bool begins) {
    if (begins) {
        for (size_t i = 0; i < samples; i++) sums[i] = row[i];
    } else {
        for (size_t i = 0; i < samples; i++) sums[i] = (uint16_t)(sums[i] + row[i]);
    }
}

/// Divides sums of that many pixels into fixed samples, rounded. A 32-bit reciprocal is exact
/// enough: pixels of one colour give that colour times 64.
BODY void divide_body(
    int16_t *restrict fixed, const uint32_t *restrict sums, size_t samples, uint32_t pixels) {
    int bits = 31 - __builtin_clz(pixels), shift = 25 + bits;
    uint64_t one = UINT64_C(1) << (shift + CRESAMPLE_FRACTION);
    uint32_t factor = (uint32_t)((one + pixels / 2) / pixels);
    uint64_t half = UINT64_C(1) << (shift - 1);
    for (size_t i = 0; i < samples; i++) {
        fixed[i] = (int16_t)(((uint64_t)sums[i] * factor + half) >> shift);
    }
}

BODY void sum_blocks_body(
    uint32_t *restrict sums, const uint16_t *restrict columns, uint32_t blocks, int channels,
    uint32_t ratio, uint32_t last) {
    for (uint32_t block = 0; block < blocks; block++) {
        uint32_t sum[3] = {0, 0, 0}, pixels = block + 1 == blocks ? last : ratio;
        for (uint32_t pixel = 0; pixel < pixels; pixel++) {
            for (int channel = 0; channel < channels; channel++) sum[channel] += *columns++;
        }
        for (int channel = 0; channel < channels; channel++) *sums++ = sum[channel];
    }
}

BODY void fold_body(
    int16_t *fixed, uint32_t *scratch, const uint16_t *sums, uint32_t blocks, int channels,
    uint32_t ratio, uint32_t last, uint32_t rows) {
    sum_blocks_body(scratch, sums, blocks, channels, ratio, last);
    size_t samples = (size_t)blocks * (size_t)channels, tail = samples - (size_t)channels;
    divide_body(fixed, scratch, tail, ratio * rows);
    divide_body(fixed + tail, scratch + tail, (size_t)channels, last * rows);
}

BODY void pair_body(
    int16_t *restrict pairs, const int16_t *upper, const int16_t *lower, size_t samples) {
    for (size_t i = 0; i < samples; i++) {
        pairs[2 * i] = upper[i];
        pairs[2 * i + 1] = lower[i];
    }
}

BODY void pair_bytes_body(
    int16_t *restrict pairs, const uint8_t *upper, const uint8_t *lower, size_t samples) {
    for (size_t i = 0; i < samples; i++) {
        pairs[2 * i] = (int16_t)(upper[i] << CRESAMPLE_FRACTION);
        pairs[2 * i + 1] = (int16_t)(lower[i] << CRESAMPLE_FRACTION);
    }
}

BODY void add_pairs_body(
    int16_t *restrict fixed, const int16_t *const *pairs, const int16_t *weights, size_t count,
    size_t samples) {
    for (size_t x = 0; x < samples; x += CRESAMPLE_STEP) {
        int32_t sums[CRESAMPLE_STEP] = {0};
        for (size_t pair = 0; pair < count; pair++) {
            const int16_t *row = pairs[pair] + 2 * x;
            int32_t upper = weights[2 * pair], lower = weights[2 * pair + 1];
            for (size_t i = 0; i < CRESAMPLE_STEP; i++) {
                sums[i] += row[2 * i] * upper + row[2 * i + 1] * lower;
            }
        }
        for (size_t i = 0; i < CRESAMPLE_STEP; i++) {
            int32_t value = (sums[i] + (1 << (CRESAMPLE_WEIGHT - 1))) >> CRESAMPLE_WEIGHT;
            value = value < INT16_MIN ? INT16_MIN : value;
            fixed[x + i] = (int16_t)(value > INT16_MAX ? INT16_MAX : value);
        }
    }
}

BODY void weigh_columns_body(
    uint8_t *row, const int16_t *fixed, const cresample_columns *columns, int channels) {
    const int shift = CRESAMPLE_WEIGHT + CRESAMPLE_FRACTION;
    for (uint32_t x = 0; x < columns->count; x++) {
        const int16_t *weights = columns->integers + (size_t)x * columns->stride;
        const int16_t *from = fixed + (size_t)columns->windows[x].first_block * (size_t)channels;
        for (int channel = 0; channel < channels; channel++) {
            int32_t sum = 1 << (shift - 1);
            for (size_t tap = 0; tap < columns->windows[x].taps; tap++) {
                sum += weights[tap] * from[tap * (size_t)channels + (size_t)channel];
            }
            sum >>= shift;
            *row++ = (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
        }
    }
}

BODY void add_rows_body(
    float *restrict sums, const float *const *rows, const float *weights, size_t count,
    size_t samples) {
    for (size_t x = 0; x < samples; x += CRESAMPLE_STEP) {
        float sum[CRESAMPLE_STEP] = {0};
        for (size_t row = 0; row < count; row++) {
            const float *from = rows[row] + x;
            float weight = weights[row];
            for (size_t i = 0; i < CRESAMPLE_STEP; i++) sum[i] += weight * from[i];
        }
        memcpy(sums + x, sum, sizeof sum);
    }
}

/// The lanes of a pixel; lanes beyond its channels are ignored.
BODY void weigh_float_columns_of(
    float *row, const float *samples, const cresample_columns *columns, size_t channels) {
    const size_t lanes = channels == 3 ? 4 : channels;
    for (uint32_t x = 0; x < columns->count; x++, row += channels) {
        const float *weights = columns->floats + (size_t)x * columns->stride;
        const float *from = samples + columns->windows[x].first_block * channels;
        float sum[4] = {0};
        for (size_t tap = 0; tap < columns->windows[x].taps; tap++, from += channels) {
            for (size_t lane = 0; lane < lanes; lane++) sum[lane] += weights[tap] * from[lane];
        }
        memcpy(row, sum, lanes * sizeof *sum);
    }
}

BODY void weigh_float_columns_body(
    float *row, const float *samples, const cresample_columns *columns, int channels) {
    switch (channels) {
    case 1: weigh_float_columns_of(row, samples, columns, 1); break;
    case 2: weigh_float_columns_of(row, samples, columns, 2); break;
    case 3: weigh_float_columns_of(row, samples, columns, 3); break;
    default: weigh_float_columns_of(row, samples, columns, 4);
    }
}

/// Makes functions that the compiler vectorises.
#define PLAIN(name, attributes) \
    attributes static void name##_add( \
        uint16_t *sums, const uint8_t *row, size_t samples, bool begins) { \
        add_body(sums, row, samples, begins); \
    } \
    attributes static void name##_pair( \
        int16_t *pairs, const int16_t *upper, const int16_t *lower, size_t samples) { \
        pair_body(pairs, upper, lower, samples); \
    } \
    attributes static void name##_pair_bytes( \
        int16_t *pairs, const uint8_t *upper, const uint8_t *lower, size_t samples) { \
        pair_bytes_body(pairs, upper, lower, samples); \
    } \
    attributes static void name##_add_rows( \
        float *sums, const float *const *rows, const float *weights, size_t count, \
        size_t samples) { \
        add_rows_body(sums, rows, weights, count, samples); \
    } \
    attributes static void name##_weigh_float_columns( \
        float *row, const float *samples, const cresample_columns *columns, int channels) { \
        weigh_float_columns_body(row, samples, columns, channels); \
    }

PLAIN(portable, )

static void portable_fold(
    int16_t *fixed, uint32_t *scratch, const uint16_t *sums, uint32_t blocks, int channels,
    uint32_t ratio, uint32_t last, uint32_t rows) {
    fold_body(fixed, scratch, sums, blocks, channels, ratio, last, rows);
}

static void portable_add_pairs(
    int16_t *fixed, const int16_t *const *pairs, const int16_t *weights, size_t count,
    size_t samples) {
    add_pairs_body(fixed, pairs, weights, count, samples);
}

static void portable_weigh_columns(
    uint8_t *row, const int16_t *fixed, const cresample_columns *columns, int channels) {
    if (channels == 3) {
        weigh_columns_body(row, fixed, columns, 3);
    } else {
        weigh_columns_body(row, fixed, columns, 1);
    }
}

/// The variant of one name.
#define KERNELS(name, fold, add_pairs, weigh_columns) \
    static const cresample_kernels name##_kernels = { \
        name##_add, fold, name##_pair, name##_pair_bytes, add_pairs, weigh_columns, \
        name##_add_rows, name##_weigh_float_columns, \
    };

KERNELS(portable, portable_fold, portable_add_pairs, portable_weigh_columns)

#if defined(__x86_64__)

// MARK: SSE2

#define AVX2 __attribute__((target("avx2")))

/// Two weights, repeated.
BODY __m128i two_weights(const int16_t *weights) {
    int both;
    memcpy(&both, weights, sizeof both);
    return _mm_set1_epi32(both);
}

static void sse2_add_pairs(
    int16_t *fixed, const int16_t *const *pairs, const int16_t *weights, size_t count,
    size_t samples) {
    const __m128i half = _mm_set1_epi32(1 << (CRESAMPLE_WEIGHT - 1));
    for (size_t x = 0; x < samples; x += 16) {
        __m128i sum0 = half, sum1 = half, sum2 = half, sum3 = half;
        for (size_t pair = 0; pair < count; pair++) {
            const __m128i *row = (const __m128i *)(pairs[pair] + 2 * x);
            __m128i weight = two_weights(weights + 2 * pair);
            sum0 = _mm_add_epi32(sum0, _mm_madd_epi16(_mm_load_si128(row), weight));
            sum1 = _mm_add_epi32(sum1, _mm_madd_epi16(_mm_load_si128(row + 1), weight));
            sum2 = _mm_add_epi32(sum2, _mm_madd_epi16(_mm_load_si128(row + 2), weight));
            sum3 = _mm_add_epi32(sum3, _mm_madd_epi16(_mm_load_si128(row + 3), weight));
        }
        __m128i *to = (__m128i *)(fixed + x);
        _mm_store_si128(
            to, _mm_packs_epi32(
                _mm_srai_epi32(sum0, CRESAMPLE_WEIGHT), _mm_srai_epi32(sum1, CRESAMPLE_WEIGHT)));
        _mm_store_si128(
            to + 1, _mm_packs_epi32(
                _mm_srai_epi32(sum2, CRESAMPLE_WEIGHT), _mm_srai_epi32(sum3, CRESAMPLE_WEIGHT)));
    }
}

/// Packs a lane for each channel into 8 bits each, the first channel lowest.
BODY uint32_t packed_pixel(__m128i sums) {
    const int shift = CRESAMPLE_WEIGHT + CRESAMPLE_FRACTION;
    sums = _mm_srai_epi32(_mm_add_epi32(sums, _mm_set1_epi32(1 << (shift - 1))), shift);
    sums = _mm_packs_epi32(sums, sums);
    return (uint32_t)_mm_cvtsi128_si32(_mm_packus_epi16(sums, sums));
}

BODY void store_rgb(uint8_t *row, uint32_t pixel) {
    row[0] = (uint8_t)pixel;
    row[1] = (uint8_t)(pixel >> 8);
    row[2] = (uint8_t)(pixel >> 16);
}

static void sse2_weigh_rgb(
    uint8_t *row, const int16_t *fixed, const cresample_columns *columns) {
    for (uint32_t x = 0; x < columns->count; x++, row += 3) {
        const int16_t *weights = columns->integers + (size_t)x * columns->stride;
        const int16_t *from = fixed + (size_t)columns->windows[x].first_block * 3;
        __m128i sums = _mm_setzero_si128();
        for (size_t tap = 0; tap < columns->windows[x].taps; tap += 2, from += 6) {
            __m128i pixels = _mm_unpacklo_epi16(
                _mm_loadl_epi64((const __m128i *)from),
                _mm_loadl_epi64((const __m128i *)(from + 3)));
            sums = _mm_add_epi32(sums, _mm_madd_epi16(pixels, two_weights(weights + tap)));
        }
        store_rgb(row, packed_pixel(sums));
    }
}

static void sse2_weigh_grey(
    uint8_t *row, const int16_t *fixed, const cresample_columns *columns) {
    for (uint32_t x = 0; x < columns->count; x++) {
        const int16_t *weights = columns->integers + (size_t)x * columns->stride;
        const int16_t *from = fixed + columns->windows[x].first_block;
        __m128i sums = _mm_setzero_si128();
        for (size_t tap = 0; tap < columns->windows[x].taps; tap += 8) {
            sums = _mm_add_epi32(
                sums, _mm_madd_epi16(
                    _mm_loadu_si128((const __m128i *)(from + tap)),
                    _mm_load_si128((const __m128i *)(weights + tap))));
        }
        sums = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, 0x4e));
        sums = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, 0xb1));
        row[x] = (uint8_t)packed_pixel(sums);
    }
}

static void sse2_weigh_columns(
    uint8_t *row, const int16_t *fixed, const cresample_columns *columns, int channels) {
    if (channels == 3) {
        sse2_weigh_rgb(row, fixed, columns);
    } else {
        sse2_weigh_grey(row, fixed, columns);
    }
}

/// A vector for each pixel; the fourth lane is its neighbour's.
BODY void sum_rgb_blocks(
    uint32_t *sums, const uint16_t *columns, uint32_t blocks, uint32_t ratio, uint32_t last) {
    const __m128i zero = _mm_setzero_si128();
    for (uint32_t block = 0; block < blocks; block++, sums += 3) {
        uint32_t pixels = block + 1 == blocks ? last : ratio;
        __m128i sum = zero;
        for (uint32_t pixel = 0; pixel < pixels; pixel++, columns += 3) {
            __m128i samples = _mm_loadl_epi64((const __m128i *)columns);
            sum = _mm_add_epi32(sum, _mm_unpacklo_epi16(samples, zero));
        }
        _mm_storeu_si128((__m128i *)sums, sum);
    }
}

BODY void vector_fold_body(
    int16_t *fixed, uint32_t *scratch, const uint16_t *sums, uint32_t blocks, int channels,
    uint32_t ratio, uint32_t last, uint32_t rows) {
    if (channels == 3) {
        sum_rgb_blocks(scratch, sums, blocks, ratio, last);
    } else {
        sum_blocks_body(scratch, sums, blocks, 1, ratio, last);
    }
    size_t samples = (size_t)blocks * (size_t)channels, tail = samples - (size_t)channels;
    divide_body(fixed, scratch, tail, ratio * rows);
    divide_body(fixed + tail, scratch + tail, (size_t)channels, last * rows);
}

static void sse2_fold(
    int16_t *fixed, uint32_t *scratch, const uint16_t *sums, uint32_t blocks, int channels,
    uint32_t ratio, uint32_t last, uint32_t rows) {
    vector_fold_body(fixed, scratch, sums, blocks, channels, ratio, last, rows);
}

static const cresample_kernels sse2_kernels = {
    portable_add, sse2_fold, portable_pair, portable_pair_bytes, sse2_add_pairs,
    sse2_weigh_columns, portable_add_rows, portable_weigh_float_columns,
};

// MARK: AVX2

PLAIN(avx2, AVX2)

AVX2 static void avx2_fold(
    int16_t *fixed, uint32_t *scratch, const uint16_t *sums, uint32_t blocks, int channels,
    uint32_t ratio, uint32_t last, uint32_t rows) {
    vector_fold_body(fixed, scratch, sums, blocks, channels, ratio, last, rows);
}

AVX2 static void avx2_add_pairs(
    int16_t *fixed, const int16_t *const *pairs, const int16_t *weights, size_t count,
    size_t samples) {
    const __m256i half = _mm256_set1_epi32(1 << (CRESAMPLE_WEIGHT - 1));
    for (size_t x = 0; x < samples; x += 32) {
        __m256i sum0 = half, sum1 = half, sum2 = half, sum3 = half;
        for (size_t pair = 0; pair < count; pair++) {
            const __m256i *row = (const __m256i *)(pairs[pair] + 2 * x);
            __m256i weight = _mm256_broadcastsi128_si256(two_weights(weights + 2 * pair));
            sum0 = _mm256_add_epi32(sum0, _mm256_madd_epi16(_mm256_load_si256(row), weight));
            sum1 = _mm256_add_epi32(sum1, _mm256_madd_epi16(_mm256_load_si256(row + 1), weight));
            sum2 = _mm256_add_epi32(sum2, _mm256_madd_epi16(_mm256_load_si256(row + 2), weight));
            sum3 = _mm256_add_epi32(sum3, _mm256_madd_epi16(_mm256_load_si256(row + 3), weight));
        }
        // Packs within each half of a vector.
        __m256i low = _mm256_packs_epi32(
            _mm256_srai_epi32(sum0, CRESAMPLE_WEIGHT), _mm256_srai_epi32(sum1, CRESAMPLE_WEIGHT));
        __m256i high = _mm256_packs_epi32(
            _mm256_srai_epi32(sum2, CRESAMPLE_WEIGHT), _mm256_srai_epi32(sum3, CRESAMPLE_WEIGHT));
        __m256i *to = (__m256i *)(fixed + x);
        _mm256_store_si256(to, _mm256_permute4x64_epi64(low, 0xd8));
        _mm256_store_si256(to + 1, _mm256_permute4x64_epi64(high, 0xd8));
    }
}

AVX2 static void avx2_weigh_rgb(
    uint8_t *row, const int16_t *fixed, const cresample_columns *columns) {
    // Orders two pixels of a half into reds, greens and blues.
    const __m256i order = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, -1, -1, -1, -1));
    const __m256i spread = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    for (uint32_t x = 0; x < columns->count; x++, row += 3) {
        const int16_t *weights = columns->integers + (size_t)x * columns->stride;
        const int16_t *from = fixed + (size_t)columns->windows[x].first_block * 3;
        __m256i sums = _mm256_setzero_si256();
        for (size_t tap = 0; tap < columns->windows[x].taps; tap += 4, from += 12) {
            __m256i pixels = _mm256_inserti128_si256(
                _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)from)),
                _mm_loadu_si128((const __m128i *)(from + 6)), 1);
            __m256i weight = _mm256_permutevar8x32_epi32(
                _mm256_castsi128_si256(_mm_loadl_epi64((const __m128i *)(weights + tap))), spread);
            sums = _mm256_add_epi32(
                sums, _mm256_madd_epi16(_mm256_shuffle_epi8(pixels, order), weight));
        }
        store_rgb(
            row, packed_pixel(_mm_add_epi32(
                _mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1))));
    }
}

AVX2 static void avx2_weigh_columns(
    uint8_t *row, const int16_t *fixed, const cresample_columns *columns, int channels) {
    if (channels == 3) {
        avx2_weigh_rgb(row, fixed, columns);
    } else {
        // A pixel has too few weights to gain from wider vectors.
        sse2_weigh_grey(row, fixed, columns);
    }
}

KERNELS(avx2, avx2_fold, avx2_add_pairs, avx2_weigh_columns)

const cresample_kernels *cresample_kernels_of(cresample_path path) {
    if (path == CRESAMPLE_PORTABLE) return &portable_kernels;
    bool has_avx2 = path == CRESAMPLE_FASTEST && __builtin_cpu_supports("avx2");
    return has_avx2 ? &avx2_kernels : &sse2_kernels;
}

#else

const cresample_kernels *cresample_kernels_of(cresample_path path) {
    // Written for vectorisation by the compiler.
    return &portable_kernels;
}

#endif
