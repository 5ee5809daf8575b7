#include "ccolour_kernels.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/// The same code, compiled for each kind of pixels.
#define BODY static inline __attribute__((always_inline))

// MARK: grids

/// A kind of grid. Axis 0 is linear, and one node long for RGB.
typedef struct {
    /// Distances between nodes of the four axes.
    int steps[4];
    /// A sample times 257 has its node above this many bits, then 8 bits to the next node.
    int shift;
} ccolour_layout;

static const ccolour_layout inks = {.steps = {17 * 17 * 17, 17 * 17, 17, 1}, .shift = 12};
static const ccolour_layout rgb = {.steps = {0, 33 * 33, 33, 1}, .shift = 11};

enum {
    /// Fractions are below 256, and 255 is the next node. Their weights are 128 times as large.
    WHOLE = 255,
    WEIGHT = 7,
    /// Divides a sum of four weighed values by 255 × 255 / 256: 65536 / 254.004.
    RECIPROCAL = 258,
};

BODY int product(int value, int weight) { return (value * weight + (1 << 14)) >> 15; }

BODY void sort(int *larger, int *smaller) {
    int a = *larger, b = *smaller;
    *larger = a > b ? a : b;
    *smaller = a > b ? b : a;
}

/// Converts one pixel. The samples belong to the four axes.
BODY void convert_pixel(
    const ccolour_node *nodes, ccolour_layout layout, const uint8_t samples[4], uint8_t *to) {
    int place = 0, keys[4];
    for (int axis = 0; axis < 4; axis++) {
        int position = samples[axis] * 257;
        place += (position >> layout.shift) * layout.steps[axis];
        // A fraction, then the axis.
        keys[axis] = (position >> (layout.shift - 8) & 255) << 4 | axis;
    }
    // The tetrahedron's corners differ in one axis each, that of the largest fraction first.
    sort(&keys[1], &keys[2]);
    sort(&keys[1], &keys[3]);
    sort(&keys[2], &keys[3]);
    int sums[3] = {0, 0, 0}, linear = keys[0] >> 4;
    for (int corner = 0; corner < 4; corner++) {
        int fraction = corner > 0 ? keys[corner] >> 4 : WHOLE;
        int next = corner < 3 ? keys[corner + 1] >> 4 : 0;
        if (corner > 0) place += layout.steps[keys[corner] & 3];
        for (int channel = 0; channel < 3; channel++) {
            const int8_t *pair = nodes[place] + 2 * channel;
            int value = pair[0] * (WHOLE - linear) + pair[1] * linear;
            sums[channel] += product(value, (fraction - next) << WEIGHT);
        }
    }
    for (int channel = 0; channel < 3; channel++) {
        to[channel] = (uint8_t)(((sums[channel] + 127) * RECIPROCAL >> 16) + 128);
    }
}

BODY void convert_pixels(
    const ccolour_node *nodes, bool has_inks, int channels, const uint8_t *from, uint8_t *to,
    size_t count) {
    for (size_t i = 0; i < count; i++, from += channels, to += has_inks ? 3 : channels) {
        uint8_t samples[4] = {0};
        memcpy(samples + (has_inks ? 0 : 1), from, has_inks ? 4 : 3);
        uint8_t fourth = channels == 4 ? from[3] : 0;
        convert_pixel(nodes, has_inks ? inks : rgb, samples, to);
        if (!has_inks && channels == 4) to[3] = fourth;
    }
}

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2")))

/// Returns nodes of pixels 0, 1, 4 and 5 from `places`. Single loads are faster than a gather.
AVX2 static inline __attribute__((always_inline)) __m256i four_nodes(
    const ccolour_node *nodes, const uint32_t *places) {
    __m128i a = _mm_loadl_epi64((const __m128i *)nodes[places[0]]);
    __m128i c = _mm_loadl_epi64((const __m128i *)nodes[places[4]]);
    a = _mm_castpd_si128(_mm_loadh_pd(_mm_castsi128_pd(a), (const double *)nodes[places[1]]));
    c = _mm_castpd_si128(_mm_loadh_pd(_mm_castsi128_pd(c), (const double *)nodes[places[5]]));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(a), c, 1);
}

/// The nodes of pixels 0, 1, 4 and 5, or of 2, 3, 6 and 7.
#define NODES(half, nodes, places) four_nodes(nodes, places + half_##half)
enum { half_lo = 0, half_hi = 2 };

/// One corner of four pixels: its values between two neighbours, times its weight.
#define CORNER(half, nodes, places, weights) \
    _mm256_mulhrs_epi16( \
        _mm256_maddubs_epi16(linear_##half, NODES(half, nodes, places)), \
        _mm256_shuffle_epi8(weights, words_##half))

#define FOUR(half) \
    _mm256_add_epi16( \
        _mm256_add_epi16(CORNER(half, nodes, places0, weight0), CORNER(half, nodes, places1, weight1)), \
        _mm256_add_epi16(CORNER(half, nodes, places2, weight2), CORNER(half, last, places0, weight3)))

/// Interpolates eight pixels between the corners of their tetrahedra. Corners are `place0`,
/// `place1`, `place2`, and the first one in `last`.
AVX2 static inline __attribute__((always_inline)) __m256i interpolate(
    const ccolour_node *nodes, const ccolour_node *last, __m256i place0, __m256i place1, __m256i place2,
    __m256i weight0, __m256i weight1, __m256i weight2, __m256i weight3, __m256i linear) {
    // Both weights of the linear axis, as bytes.
    linear = _mm256_or_si256(
        _mm256_slli_epi32(linear, 8), _mm256_sub_epi32(_mm256_set1_epi32(WHOLE), linear));
    const __m256i words_lo = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 0, 1, 0, 1, 0, 1, 4, 5, 4, 5, 4, 5, 4, 5));
    const __m256i words_hi = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(8, 9, 8, 9, 8, 9, 8, 9, 12, 13, 12, 13, 12, 13, 12, 13));
    __m256i linear_lo = _mm256_shuffle_epi8(linear, words_lo);
    __m256i linear_hi = _mm256_shuffle_epi8(linear, words_hi);
    uint32_t places0[8], places1[8], places2[8];
    _mm256_storeu_si256((__m256i *)places0, place0);
    _mm256_storeu_si256((__m256i *)places1, place1);
    _mm256_storeu_si256((__m256i *)places2, place2);
    __m256i sums_lo = FOUR(lo), sums_hi = FOUR(hi);
    const __m256i rounding = _mm256_set1_epi16(127), factor = _mm256_set1_epi16(RECIPROCAL);
    sums_lo = _mm256_mulhi_epi16(_mm256_add_epi16(sums_lo, rounding), factor);
    sums_hi = _mm256_mulhi_epi16(_mm256_add_epi16(sums_hi, rounding), factor);
    // Within each 128 bits the order is that of the pixels again.
    return _mm256_xor_si256(_mm256_packs_epi16(sums_lo, sums_hi), _mm256_set1_epi8((char)0x80));
}

/// Converts eight pixels of four bytes to as many of red, green, blue and 0.
AVX2 static inline __attribute__((always_inline)) __m256i convert_eight(
    const ccolour_node *nodes, __m256i pixels, bool has_inks) {
    const __m256i low = _mm256_set1_epi32(0x00FF00FF), zero = _mm256_setzero_si256();
    // Two axes in each: for inks 0 and 2, then 1 and 3; for RGB 1 and 3, then 2.
    __m256i one = _mm256_and_si256(pixels, low);
    __m256i other = _mm256_and_si256(_mm256_srli_epi16(pixels, 8), low);
    if (!has_inks) other = _mm256_and_si256(other, _mm256_set1_epi32(0xFF));
    // A sample times 257 repeats its byte.
    one = _mm256_or_si256(one, _mm256_slli_epi16(one, 8));
    other = _mm256_or_si256(other, _mm256_slli_epi16(other, 8));
    const int shift = has_inks ? inks.shift : rgb.shift;
    const int *steps = has_inks ? inks.steps : rgb.steps;
    int first = has_inks ? 0 : 1, second = has_inks ? 2 : 3;
    int third = has_inks ? 1 : 2, fourth = has_inks ? 3 : 0;
    __m256i place0 = _mm256_add_epi32(
        _mm256_madd_epi16(
            _mm256_srli_epi16(one, shift), _mm256_set1_epi32(steps[second] << 16 | steps[first])),
        _mm256_madd_epi16(
            _mm256_srli_epi16(other, shift),
            _mm256_set1_epi32(steps[fourth] << 16 | steps[third])));
    // A key is a fraction, then the axis.
    one = _mm256_slli_epi16(_mm256_srli_epi16(_mm256_slli_epi16(one, 16 - shift), 8), 4);
    other = _mm256_slli_epi16(_mm256_srli_epi16(_mm256_slli_epi16(other, 16 - shift), 8), 4);
    const __m256i word = _mm256_set1_epi32(0xFFFF);
    __m256i linear = zero, a, b, c;
    if (has_inks) {
        linear = _mm256_srli_epi32(_mm256_and_si256(one, word), 4);
        a = _mm256_and_si256(other, word);
        c = _mm256_srli_epi32(other, 16);
        b = _mm256_srli_epi32(one, 16);
    } else {
        a = _mm256_and_si256(one, word);
        b = other;
        c = _mm256_srli_epi32(one, 16);
    }
    a = _mm256_or_si256(a, _mm256_set1_epi32(1));
    b = _mm256_or_si256(b, _mm256_set1_epi32(2));
    c = _mm256_or_si256(c, _mm256_set1_epi32(3));
    __m256i larger = _mm256_max_epi32(a, b), smaller = _mm256_min_epi32(a, b);
    a = _mm256_max_epi32(larger, c);
    c = _mm256_min_epi32(larger, c);
    b = _mm256_max_epi32(smaller, c);
    c = _mm256_min_epi32(smaller, c);
    // The lowest bits of a key select its axis' step.
    const __m256i table = _mm256_broadcastsi128_si256(
        _mm_setr_epi32(0, steps[1], steps[2], steps[3]));
#define STEP(key) \
    _mm256_castps_si256( \
        _mm256_permutevar_ps(_mm256_castsi256_ps(table), key))
    __m256i place1 = _mm256_add_epi32(place0, STEP(a));
    __m256i place2 = _mm256_add_epi32(place1, STEP(b));
#undef STEP
#define WEIGHT_OF(key) \
    _mm256_slli_epi32(_mm256_and_si256(key, _mm256_set1_epi32(0xFF0)), WEIGHT - 4)
    a = WEIGHT_OF(a);
    b = WEIGHT_OF(b);
    c = WEIGHT_OF(c);
#undef WEIGHT_OF
    __m256i weight0 = _mm256_sub_epi32(_mm256_set1_epi32(WHOLE << WEIGHT), a);
    __m256i weight1 = _mm256_sub_epi32(a, b), weight2 = _mm256_sub_epi32(b, c), weight3 = c;
    return interpolate(
        nodes, nodes + (steps[1] + steps[2] + steps[3]), place0, place1, place2, weight0, weight1, weight2,
        weight3, linear);
}

/// Removes the fourth byte of eight pixels and writes 24 bytes.
AVX2 static inline __attribute__((always_inline)) void store_rgb(uint8_t *to, __m256i pixels) {
    const __m256i three = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
    const __m256i joined = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
    __m256i packed = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(pixels, three), joined);
    _mm_storeu_si128((__m128i *)to, _mm256_castsi256_si128(packed));
    _mm_storel_epi64((__m128i *)(to + 16), _mm256_extracti128_si256(packed, 1));
}

/// Reads 24 bytes as eight pixels of four, the last of them undefined.
AVX2 static inline __attribute__((always_inline)) __m256i load_rgb(const uint8_t *from) {
    const __m256i four = _mm256_setr_epi8(
        0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1,
        4, 5, 6, -1, 7, 8, 9, -1, 10, 11, 12, -1, 13, 14, 15, -1);
    __m128i start = _mm_loadu_si128((const __m128i *)from);
    __m128i end = _mm_loadu_si128((const __m128i *)(from + 8));
    return _mm256_shuffle_epi8(
        _mm256_inserti128_si256(_mm256_castsi128_si256(start), end, 1), four);
}

/// Converts groups of eight pixels; returns the number of converted pixels.
AVX2 static inline __attribute__((always_inline)) size_t convert_groups(
    const ccolour_node *nodes, bool has_inks, int channels, const uint8_t *from, uint8_t *to,
    size_t count) {
    size_t done = 0;
    __m256i previous = _mm256_setzero_si256(), made = convert_eight(nodes, previous, has_inks);
    for (; done + 8 <= count; done += 8) {
        __m256i pixels = channels == 4 ? _mm256_loadu_si256((const __m256i *)(from + 4 * done))
                                       : load_rgb(from + 3 * done);
        // Flat areas are copied.
        __m256i changes = _mm256_xor_si256(pixels, previous);
        if (!_mm256_testz_si256(changes, changes)) {
            made = convert_eight(nodes, pixels, has_inks);
            previous = pixels;
        }
        if (has_inks || channels == 3) {
            store_rgb(to + 3 * done, made);
        } else {
            const __m256i fourth = _mm256_set1_epi32((int)0xFF000000);
            _mm256_storeu_si256(
                (__m256i *)(to + 4 * done), _mm256_blendv_epi8(made, pixels, fourth));
        }
    }
    return done;
}

AVX2 static size_t avx2_convert_inks(
    const ccolour_node *nodes, const uint8_t *from, uint8_t *to, size_t count) {
    return convert_groups(nodes, true, 4, from, to, count);
}

AVX2 static size_t avx2_convert_rgb(
    const ccolour_node *nodes, int channels, const uint8_t *from, uint8_t *to, size_t count) {
    return channels == 4 ? convert_groups(nodes, false, 4, from, to, count)
                         : convert_groups(nodes, false, 3, from, to, count);
}

static bool has_avx2(ccolour_path path) {
    return path == CCOLOUR_FASTEST && __builtin_cpu_supports("avx2");
}

#else

static bool has_avx2(ccolour_path path) {
    return false;
}

#define avx2_convert_inks(...) 0
#define avx2_convert_rgb(...) 0

#endif

void ccolour_convert_inks(
    const ccolour_node *nodes, ccolour_path path, const uint8_t *from, uint8_t *to, size_t count) {
    size_t done = has_avx2(path) ? avx2_convert_inks(nodes, from, to, count) : 0;
    convert_pixels(nodes, true, 4, from + 4 * done, to + 3 * done, count - done);
}

void ccolour_convert_rgb(
    const ccolour_node *nodes, ccolour_path path, int channels, const uint8_t *from, uint8_t *to,
    size_t count) {
    size_t done = has_avx2(path) ? avx2_convert_rgb(nodes, channels, from, to, count) : 0;
    size_t offset = done * (size_t)channels;
    convert_pixels(nodes, false, channels, from + offset, to + offset, count - done);
}

// MARK: sums of light

/// Four numbers, in a vector of every processor.
typedef int16_t lights __attribute__((vector_size(8)));

BODY lights light_of(const ccolour_sums *sums, int primary, uint8_t sample) {
    lights light;
    memcpy(&light, sums->light[primary][sample], sizeof light);
    return light;
}

BODY void convert_sums(
    const ccolour_sums *sums, int channels, const uint8_t *from, uint8_t *to, size_t count) {
    for (size_t i = 0; i < count; i++, from += channels, to += channels) {
        lights light = __builtin_elementwise_add_sat(
            light_of(sums, 0, from[0]), light_of(sums, 1, from[1]));
        light = __builtin_elementwise_add_sat(light, light_of(sums, 2, from[2]));
        light = __builtin_elementwise_max(light, (lights){0});
        light = __builtin_elementwise_min(light, (lights){0} + CCOLOUR_LIGHT);
        uint8_t fourth = channels == 4 ? from[3] : 0;
        for (int channel = 0; channel < 3; channel++) to[channel] = sums->encoded[light[channel]];
        if (channels == 4) to[3] = fourth;
    }
}

void ccolour_convert_sums(
    const ccolour_sums *sums, int channels, const uint8_t *from, uint8_t *to, size_t count) {
    if (channels == 4) {
        convert_sums(sums, 4, from, to, count);
    } else {
        convert_sums(sums, 3, from, to, count);
    }
}

// MARK: grey

#if defined(__x86_64__)

/// Replaces 32 samples at a time: each of 16 shuffles handles the samples of one high half.
AVX2 static size_t avx2_convert_grey(
    const uint8_t *table, int channels, const uint8_t *from, uint8_t *to, size_t count) {
    const __m256i kept = _mm256_set1_epi32(
        channels == 2 ? (int)0xFF00FF00 : channels == 4 ? (int)0xFF000000 : 0);
    __m256i parts[16];
    for (int part = 0; part < 16; part++) {
        parts[part] = _mm256_broadcastsi128_si256(
            _mm_loadu_si128((const __m128i *)(table + 16 * part)));
    }
    size_t done = 0;
    for (; done + 32 <= count; done += 32) {
        __m256i samples = _mm256_loadu_si256((const __m256i *)(from + done));
        __m256i made = _mm256_setzero_si256();
        for (int part = 0; part < 16; part++) {
            // A shuffle gives 0 for indices from 128: here all above the part. Those below it wrap
            // around, and the saturating addition lifts all others beyond 128.
            __m256i index = _mm256_sub_epi8(samples, _mm256_set1_epi8((char)(16 * part)));
            index = _mm256_adds_epu8(index, _mm256_set1_epi8(0x70));
            made = _mm256_or_si256(made, _mm256_shuffle_epi8(parts[part], index));
        }
        _mm256_storeu_si256((__m256i *)(to + done), _mm256_blendv_epi8(made, samples, kept));
    }
    return done;
}

#else

#define avx2_convert_grey(...) 0

#endif

void ccolour_convert_grey(
    const uint8_t *table, ccolour_path path, int channels, const uint8_t *from, uint8_t *to,
    size_t count) {
    size_t samples = count * (size_t)channels;
    size_t done = has_avx2(path) ? avx2_convert_grey(table, channels, from, to, samples) : 0;
    for (; done < samples; done++) {
        bool is_kept = channels % 2 == 0 && (done + 1) % (size_t)channels == 0;
        to[done] = is_kept ? from[done] : table[from[done]];
    }
}
