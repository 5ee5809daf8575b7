#include "cplaceholder_picture.h"

#include <math.h>
#include <string.h>

#pragma STDC FP_CONTRACT OFF

// The names are those of the format: L is lightness, P yellow against blue, Q red against green, A alpha.
enum { L, P, Q, A, CHANNELS };

// The most cosines a channel has on an axis, filled up to a whole vector.
#define MOST_TERMS 8
#define FULL_TERMS 7

/// cos(π/n · k · (x + ½)) for each x below n and each k; the same for the other half but for signs.
typedef struct {
    float values[CPLACEHOLDER_LONGEST_SIDE][MOST_TERMS];
} cosines;

static void make_cosines(cosines *table, uint32_t n) {
    for (uint32_t x = 0; x < (n + 1) / 2; x++) {
        // By Chebyshev's recurrence, which is good to the last bits of a double for so few steps.
        double first = cos(M_PI / n * (x + 0.5)), before = 1, value = first;
        float *left = table->values[x], *right = table->values[n - 1 - x];
        left[0] = right[0] = 1;
        for (int k = 1; k < MOST_TERMS; k++) {
            right[k] = (float)(k % 2 == 0 ? value : -value);
            left[k] = (float)value;
            double next = 2 * first * value - before;
            before = value;
            value = next;
        }
    }
    // The middle of an odd number is its own mirror: what is odd is 0 there.
    if (n % 2 == 1) for (int k = 1; k < MOST_TERMS; k += 2) table->values[n / 2][k] = 0;
}

/// For each column the sums of a channel's samples times the cosines of y.
typedef float columns[FULL_TERMS][CPLACEHOLDER_MOST_STRIDE];

/// The sums of a channel's samples times cosines: [row][column] of frequencies.
typedef float spectrum[MOST_TERMS][MOST_TERMS];

#define LANES 8

/// Samples side by side; what the compiler makes of it takes as many registers as the processor needs.
typedef float samples __attribute__((vector_size(LANES * sizeof(float))));

// By pointers, since what is passed by value depends on the processor that is compiled for.
static inline __attribute__((always_inline)) void load(const uint8_t *from, samples *to) {
    typedef uint8_t bytes __attribute__((vector_size(LANES)));
    bytes values;
    memcpy(&values, from, sizeof values);
    *to = __builtin_convertvector(values, samples);
}

/// A colour over the mean, 0 to 1; of opaque ones without alpha.
typedef struct {
    samples channels[CHANNELS];
} light;

static inline __attribute__((always_inline)) void load_light(
    const cplaceholder_picture *picture, size_t place, const float mean[3], bool is_opaque, light *to) {
    samples red, green, blue, alpha = {0};
    load(picture->planes[0] + place, &red);
    load(picture->planes[1] + place, &green);
    load(picture->planes[2] + place, &blue);
    if (is_opaque) {
        red *= 1.0f / 255;
        green *= 1.0f / 255;
        blue *= 1.0f / 255;
    } else {
        load(picture->planes[3] + place, &alpha);
        alpha /= 255;
        samples rest = 1 - alpha, part = alpha / 255;
        red = mean[0] * rest + part * red;
        green = mean[1] * rest + part * green;
        blue = mean[2] * rest + part * blue;
    }
    *to = (light){{(red + green + blue) / 3, (red + green) / 2 - blue, red - green, alpha}};
}

/// Of the cosines of y so many are taken.
static const int terms_down[CHANNELS] = {FULL_TERMS, 3, 3, 5};

/// Adds a channel of two rows that mirror each other about the middle: cosines that are even there have the same value
/// in both, odd ones the opposite.
static inline __attribute__((always_inline)) void add_mirrored(
    columns to, uint32_t x, const samples *top, const samples *bottom, const float *down, int terms) {
    samples even = *top + *bottom, odd = *top - *bottom;
    for (int k = 0; k < terms; k++) {
        samples sum;
        memcpy(&sum, &to[k][x], sizeof sum);
        sum += (k % 2 == 0 ? even : odd) * down[k];
        memcpy(&to[k][x], &sum, sizeof sum);
    }
}

static inline __attribute__((always_inline)) void add_pairs(
    const cplaceholder_picture *picture, const float mean[3], const cosines *down, columns sums[CHANNELS],
    bool is_opaque) {
    uint32_t stride = picture->stride, height = picture->height;
    for (int channel = 0; channel < (is_opaque ? A : CHANNELS); channel++) {
        for (int k = 0; k < terms_down[channel]; k++) memset(sums[channel][k], 0, stride * sizeof(float));
    }
    for (uint32_t y = 0; y < (height + 1) / 2; y++) {
        uint32_t mirrored = height - 1 - y;
        for (uint32_t x = 0; x < stride; x += LANES) {
            light top, bottom = {{{0}}};
            load_light(picture, (size_t)y * stride + x, mean, is_opaque, &top);
            if (mirrored != y) load_light(picture, (size_t)mirrored * stride + x, mean, is_opaque, &bottom);
            for (int channel = 0; channel < (is_opaque ? A : CHANNELS); channel++) {
                add_mirrored(
                    sums[channel], x, &top.channels[channel], &bottom.channels[channel], down->values[y],
                    terms_down[channel]);
            }
        }
    }
}

FOR_EACH_PROCESSOR static void add_columns(
    const cplaceholder_picture *picture, const float mean[3], const cosines *down, columns sums[CHANNELS]) {
    if (picture->is_opaque) {
        add_pairs(picture, mean, down, sums, true);
    } else {
        add_pairs(picture, mean, down, sums, false);
    }
}

/// The sums over the columns, times the cosines of x.
FOR_EACH_PROCESSOR static void add_lines(
    columns from, uint32_t width, const cosines *across, int rows, spectrum to) {
    for (int y = 0; y < rows; y++) {
        float line[MOST_TERMS] = {0};
        for (uint32_t x = 0; x < width; x++) {
            for (int k = 0; k < MOST_TERMS; k++) line[k] += from[y][x] * across->values[x][k];
        }
        memcpy(to[y], line, sizeof line);
    }
}

typedef struct {
    float mean;
    float scale;
    int terms;
    /// 0 to 1, ½ for none; 0 where there is nothing but the mean.
    float values[MOST_TERMS * MOST_TERMS];
} channel_terms;

// Below it there is the noise of single precision, and of samples of 8 bits no signal: one level in a pixel of 100 by
// 100 is ten times as much. What it is written with, 1/63 at least, is far above it.
static const float noise = 1.0f / (1 << 22);

static channel_terms terms_of(spectrum sums, int nx, int ny, float pixels) {
    channel_terms result = {.mean = sums[0][0] / pixels, .scale = 0, .terms = 0};
    for (int cy = 0; cy < ny; cy++) {
        // The half with the low frequencies.
        for (int cx = cy > 0 ? 0 : 1; cx * ny < nx * (ny - cy); cx++) {
            float value = sums[cy][cx] / pixels;
            result.values[result.terms++] = value;
            if (fabsf(value) > result.scale) result.scale = fabsf(value);
        }
    }
    if (result.scale < noise) result.scale = 0;
    for (int index = 0; index < result.terms; index++) {
        result.values[index] = result.scale > 0 ? 0.5f + 0.5f / result.scale * result.values[index] : 0;
    }
    return result;
}

/// Rounds half up to a number of so many bits.
static uint32_t bits(float value, int count) {
    float most = (float)((1 << count) - 1);
    return value <= 0 ? 0 : value >= most ? (uint32_t)most : (uint32_t)(value + 0.5f);
}

static int terms_on(double limit, double side, double longest) {
    int terms = (int)round(limit * side / longest);
    return terms < 1 ? 1 : terms;
}

static int larger(int one, int other) { return one > other ? one : other; }

/// Half bytes, the low one first.
typedef struct {
    uint8_t *hash;
    size_t length;
    bool is_odd;
} writer;

static void write_terms(writer *to, const channel_terms *channel) {
    for (int index = 0; index < channel->terms; index++) {
        uint8_t value = (uint8_t)bits(15 * channel->values[index], 4);
        if (to->is_odd) {
            to->hash[to->length - 1] |= (uint8_t)(value << 4);
        } else {
            to->hash[to->length++] = value;
        }
        to->is_odd = !to->is_odd;
    }
}

FOR_EACH_PROCESSOR static void sum_products(
    const uint8_t *restrict samples, const uint8_t *restrict alphas, size_t count, uint32_t *sum) {
    uint32_t result = 0;
    for (size_t index = 0; index < count; index++) result += (uint32_t)samples[index] * alphas[index];
    *sum = result;
}

/// The mean colour, 0 to 1, of what is not transparent.
static void find_mean(const cplaceholder_picture *picture, float mean[3]) {
    size_t count = (size_t)picture->stride * picture->height;
    uint32_t alpha = 0;
    for (size_t index = 0; index < count; index++) alpha += picture->planes[3][index];
    for (int plane = 0; plane < 3; plane++) {
        uint32_t sum;
        sum_products(picture->planes[plane], picture->planes[3], count, &sum);
        mean[plane] = alpha == 0 ? 0 : (float)((double)sum / (255.0 * (double)alpha));
    }
}

static size_t write_hash(
    const channel_terms channels[CHANNELS], bool is_opaque, bool is_landscape, int shorter, uint8_t *hash) {
    uint32_t head = bits(63 * channels[L].mean, 6) | bits(31.5f + 31.5f * channels[P].mean, 6) << 6
        | bits(31.5f + 31.5f * channels[Q].mean, 6) << 12 | bits(31 * channels[L].scale, 5) << 18
        | (is_opaque ? 0u : 1u) << 23;
    uint32_t tail = (uint32_t)shorter | bits(63 * channels[P].scale, 6) << 3
        | bits(63 * channels[Q].scale, 6) << 9 | (is_landscape ? 1u : 0u) << 15;
    hash[0] = (uint8_t)head;
    hash[1] = (uint8_t)(head >> 8);
    hash[2] = (uint8_t)(head >> 16);
    hash[3] = (uint8_t)tail;
    hash[4] = (uint8_t)(tail >> 8);
    writer to = {.hash = hash, .length = CPLACEHOLDER_LEAST_HASH};
    if (!is_opaque) {
        hash[to.length++] = (uint8_t)(bits(15 * channels[A].mean, 4) | bits(15 * channels[A].scale, 4) << 4);
    }
    for (int channel = 0; channel < (is_opaque ? A : CHANNELS); channel++) {
        write_terms(&to, &channels[channel]);
    }
    return to.length;
}

size_t cplaceholder_hash_picture(const cplaceholder_picture *picture, uint8_t hash[CPLACEHOLDER_MOST_HASH]) {
    bool is_opaque = picture->is_opaque;
    uint32_t width = picture->width, height = picture->height;
    double full_width = picture->full_width, full_height = picture->full_height;
    float mean[3] = {0};
    if (!is_opaque) find_mean(picture, mean);
    cosines across, other;
    const cosines *down = width == height ? &across : &other;
    make_cosines(&across, width);
    if (width != height) make_cosines(&other, height);
    columns sums[CHANNELS];
    add_columns(picture, mean, down, sums);
    double limit = is_opaque ? 7 : 5, longest = full_width > full_height ? full_width : full_height;
    int lx = terms_on(limit, full_width, longest), ly = terms_on(limit, full_height, longest);
    const int terms[CHANNELS][2] = {{larger(3, lx), larger(3, ly)}, {3, 3}, {3, 3}, {5, 5}};
    float pixels = (float)(width * height);
    channel_terms channels[CHANNELS];
    for (int channel = 0; channel < (is_opaque ? A : CHANNELS); channel++) {
        spectrum lines;
        add_lines(sums[channel], width, &across, terms[channel][1], lines);
        channels[channel] = terms_of(lines, terms[channel][0], terms[channel][1], pixels);
    }
    bool is_landscape = full_width > full_height;
    return write_hash(channels, is_opaque, is_landscape, is_landscape ? ly : lx, hash);
}
