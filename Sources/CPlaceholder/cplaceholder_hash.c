#include "cplaceholder_picture.h"

#include <math.h>
#include <string.h>

#pragma STDC FP_CONTRACT OFF

// The names are those of the format: L is lightness, P yellow against blue, Q red against green, A alpha.
enum { L, P, Q, A, CHANNELS };

// The most cosines a channel has on an axis, filled up to a whole vector.
#define MOST_TERMS 8
#define MOST_SIDE 100

/// cos(π/n · k · (x + ½)) for each x below n and each k; the same for the other half but for signs.
typedef struct {
    float values[MOST_SIDE][MOST_TERMS];
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

// Wider registers take all cosines at once; the order of additions is the same. The clones are chosen before a
// sanitizer is set up, which the thread sanitizer does not survive.
#if defined(__x86_64__) && !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

/// The sums of a channel's samples times cosines: [row][column] of frequencies.
typedef float spectrum[MOST_TERMS][MOST_TERMS];

/// Adds one row of a channel: its sums over x, times the cosines of y.
FOR_EACH_PROCESSOR static void add_row(
    spectrum sums, const float *samples, uint32_t width, const cosines *across, const float *down, int rows) {
    float line[MOST_TERMS] = {0};
    for (uint32_t x = 0; x < width; x++) {
        for (int k = 0; k < MOST_TERMS; k++) line[k] += samples[x] * across->values[x][k];
    }
    for (int y = 0; y < rows; y++) {
        for (int k = 0; k < MOST_TERMS; k++) sums[y][k] += line[k] * down[y];
    }
}

/// The same for two channels of which the first three or four cosines are wanted.
FOR_EACH_PROCESSOR static void add_rows_of_two(
    spectrum first, spectrum second, const float *one, const float *other, uint32_t width, const cosines *across,
    const float *down) {
    float line[8] = {0};
    for (uint32_t x = 0; x < width; x++) {
        for (int k = 0; k < 4; k++) line[k] += one[x] * across->values[x][k];
        for (int k = 0; k < 4; k++) line[4 + k] += other[x] * across->values[x][k];
    }
    for (int y = 0; y < 3; y++) {
        for (int k = 0; k < 4; k++) first[y][k] += line[k] * down[y];
        for (int k = 0; k < 4; k++) second[y][k] += line[4 + k] * down[y];
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

/// The mean colour, 0 to 1, of what is not transparent; returns whether all is opaque.
static bool mean_colour(const uint8_t *rgba, size_t pixels, float mean[3]) {
    uint64_t sums[4] = {0};
    for (size_t index = 0; index < pixels; index++) {
        const uint8_t *pixel = rgba + 4 * index;
        for (int channel = 0; channel < 3; channel++) sums[channel] += (uint32_t)pixel[channel] * pixel[3];
        sums[3] += pixel[3];
    }
    for (int channel = 0; channel < 3; channel++) {
        mean[channel] = sums[3] == 0 ? 0 : (float)((double)sums[channel] / (255.0 * (double)sums[3]));
    }
    return sums[3] == 255 * (uint64_t)pixels;
}

/// A row over the mean colour, in L, P, Q and A.
static void convert_row(
    const uint8_t *rgba, uint32_t width, const float mean[3], float row[CHANNELS][MOST_SIDE]) {
    for (uint32_t x = 0; x < width; x++) {
        const uint8_t *pixel = rgba + 4 * x;
        float alpha = (float)pixel[3] / 255, rest = 1 - alpha, part = alpha / 255;
        float r = mean[0] * rest + part * (float)pixel[0];
        float g = mean[1] * rest + part * (float)pixel[1];
        float b = mean[2] * rest + part * (float)pixel[2];
        row[L][x] = (r + g + b) / 3;
        row[P][x] = (r + g) / 2 - b;
        row[Q][x] = r - g;
        row[A][x] = alpha;
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

size_t cplaceholder_hash_picture(
    const uint8_t *rgba, uint32_t width, uint32_t height, double full_width, double full_height,
    uint8_t hash[CPLACEHOLDER_MOST_HASH]) {
    float mean[3];
    bool is_opaque = mean_colour(rgba, (size_t)width * height, mean);
    cosines across, down;
    make_cosines(&across, width);
    make_cosines(&down, height);
    double limit = is_opaque ? 7 : 5, longest = full_width > full_height ? full_width : full_height;
    int lx = terms_on(limit, full_width, longest), ly = terms_on(limit, full_height, longest);
    spectrum sums[CHANNELS];
    memset(sums, 0, sizeof sums);
    float row[CHANNELS][MOST_SIDE];
    for (uint32_t y = 0; y < height; y++) {
        const float *cosines_of_y = down.values[y];
        convert_row(rgba + 4 * (size_t)y * width, width, mean, row);
        add_row(sums[L], row[L], width, &across, cosines_of_y, larger(3, ly));
        add_rows_of_two(sums[P], sums[Q], row[P], row[Q], width, &across, cosines_of_y);
        if (!is_opaque) add_row(sums[A], row[A], width, &across, cosines_of_y, 5);
    }
    float pixels = (float)(width * height);
    channel_terms channels[CHANNELS] = {
        terms_of(sums[L], larger(3, lx), larger(3, ly), pixels), terms_of(sums[P], 3, 3, pixels),
        terms_of(sums[Q], 3, 3, pixels), terms_of(sums[A], 5, 5, pixels)};
    bool is_landscape = full_width > full_height;
    return write_hash(channels, is_opaque, is_landscape, is_landscape ? ly : lx, hash);
}

size_t cplaceholder_thumbhash(
    const uint8_t *rgba, uint32_t width, uint32_t height, uint8_t hash[CPLACEHOLDER_MOST_HASH]) {
    return cplaceholder_hash_picture(rgba, width, height, width, height, hash);
}
