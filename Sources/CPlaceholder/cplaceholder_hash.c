#include "cplaceholder_picture.h"

#include <math.h>
#include <string.h>

// No fused operations, so that every processor gives the same bytes.
#pragma STDC FP_CONTRACT OFF

// The format's names: L is lightness, P yellow against blue, Q red against green, A alpha.
enum { L, P, Q, A, CHANNELS };

/// A channel's values by frequency; 7 are the most used.
enum { TERMS = 8 };
typedef float terms __attribute__((vector_size(TERMS * sizeof(float))));

/// cos(π/n · k · (x + ½)) for each x below n and each k.
static void make_cosines(terms *cosines, uint32_t n) {
    for (uint32_t x = 0; x < n; x++) {
        // Chebyshev's recurrence, exact to the last bits of a double in so few steps.
        double first = cos(M_PI / n * (x + 0.5)), before = 1, value = first;
        cosines[x][0] = 1;
        for (int k = 1; k < TERMS; k++) {
            cosines[x][k] = (float)value;
            double next = 2 * first * value - before;
            before = value;
            value = next;
        }
    }
}

/// Sums the channels of all pixels times cosines into `spectrum`, by channel and vertical
/// frequency. Transparent pixels show the mean colour.
FOR_EACH_PROCESSOR static void sum_products(
    const cplaceholder_picture *picture, const float mean[3], int channels, const terms *across, const terms *down,
    terms spectrum[CHANNELS][TERMS]) {
    memset(spectrum, 0, sizeof(terms[CHANNELS][TERMS]));
    const uint8_t *pixel = picture->pixels[0];
    for (uint32_t y = 0; y < picture->height; y++) {
        terms line[CHANNELS] = {{0}};
        for (uint32_t x = 0; x < picture->width; x++, pixel += 4) {
            float alpha = (float)pixel[3] / 255, colour[3];
            for (int index = 0; index < 3; index++) {
                colour[index] = mean[index] * (1 - alpha) + alpha / 255 * (float)pixel[index];
            }
            line[L] += (colour[0] + colour[1] + colour[2]) / 3 * across[x];
            line[P] += ((colour[0] + colour[1]) / 2 - colour[2]) * across[x];
            line[Q] += (colour[0] - colour[1]) * across[x];
            line[A] += alpha * across[x];
        }
        for (int channel = 0; channel < channels; channel++) {
            for (int k = 0; k < TERMS; k++) spectrum[channel][k] += line[channel] * down[y][k];
        }
    }
}

typedef struct {
    float mean, scale;
    int count;
    /// 0 to 1, ½ for none; 0 if there is only the mean.
    float values[TERMS * TERMS];
} channel_terms;

// Smaller values are rounding noise of single precision. One 8-bit level in a pixel of 100 by 100
// is ten times as much, and the smallest scale in a hash is 1/63.
static const float noise = 1.0f / (1 << 22);

static channel_terms terms_of(const terms spectrum[TERMS], int nx, int ny, float pixels) {
    channel_terms result = {.mean = spectrum[0][0] / pixels};
    for (int cy = 0; cy < ny; cy++) {
        // The half with the low frequencies.
        for (int cx = cy > 0 ? 0 : 1; cx * ny < nx * (ny - cy); cx++) {
            float value = spectrum[cy][cx] / pixels;
            result.values[result.count++] = value;
            result.scale = fmaxf(result.scale, fabsf(value));
        }
    }
    if (result.scale < noise) result.scale = 0;
    for (int index = 0; index < result.count; index++) {
        result.values[index] = result.scale > 0 ? 0.5f + 0.5f / result.scale * result.values[index] : 0;
    }
    return result;
}

/// Rounds half up to a number of that many bits.
static uint32_t bits(float value, int count) {
    float most = (float)((1 << count) - 1);
    return value <= 0 ? 0 : value >= most ? (uint32_t)most : (uint32_t)(value + 0.5f);
}

static int terms_on(double limit, double side, double longest) {
    int count = (int)round(limit * side / longest);
    return count < 1 ? 1 : count;
}

/// Sets the mean colour, 0 to 1, weighted by alpha. Returns whether no pixel is transparent.
static bool find_mean(const cplaceholder_picture *picture, float mean[3]) {
    size_t count = (size_t)picture->width * picture->height;
    uint32_t alpha = 0, sums[3] = {0};
    for (size_t index = 0; index < count; index++) {
        const uint8_t *pixel = picture->pixels[index];
        alpha += pixel[3];
        for (int channel = 0; channel < 3; channel++) sums[channel] += (uint32_t)pixel[channel] * pixel[3];
    }
    for (int channel = 0; channel < 3; channel++) {
        mean[channel] = alpha == 0 ? 0 : (float)((double)sums[channel] / (255.0 * (double)alpha));
    }
    return alpha == 255 * count;
}

size_t cplaceholder_hash_picture(
    const cplaceholder_picture *picture, uint8_t hash[CPLACEHOLDER_MOST_HASH]) {
    float mean[3];
    bool is_opaque = find_mean(picture, mean);
    int channels = is_opaque ? A : CHANNELS;
    terms across[CPLACEHOLDER_LONGEST_SIDE], down[CPLACEHOLDER_LONGEST_SIDE], spectrum[CHANNELS][TERMS];
    make_cosines(across, picture->width);
    make_cosines(down, picture->height);
    sum_products(picture, mean, channels, across, down, spectrum);
    double width = picture->full_width, height = picture->full_height;
    double limit = is_opaque ? 7 : 5, longest = fmax(width, height);
    int lx = terms_on(limit, width, longest), ly = terms_on(limit, height, longest);
    const int counts[CHANNELS][2] = {{lx < 3 ? 3 : lx, ly < 3 ? 3 : ly}, {3, 3}, {3, 3}, {5, 5}};
    channel_terms of[CHANNELS];
    for (int channel = 0; channel < channels; channel++) {
        of[channel] = terms_of(
            spectrum[channel], counts[channel][0], counts[channel][1], (float)(picture->width * picture->height));
    }
    bool is_landscape = width > height;
    uint64_t head = bits(63 * of[L].mean, 6) | bits(31.5f + 31.5f * of[P].mean, 6) << 6
        | bits(31.5f + 31.5f * of[Q].mean, 6) << 12 | bits(31 * of[L].scale, 5) << 18 | (is_opaque ? 0u : 1u) << 23;
    head |= (uint64_t)((uint32_t)(is_landscape ? ly : lx) | bits(63 * of[P].scale, 6) << 3
        | bits(63 * of[Q].scale, 6) << 9 | (is_landscape ? 1u : 0u) << 15) << 24;
    size_t half_bytes = 0;
    for (; half_bytes < 2 * CPLACEHOLDER_LEAST_HASH; half_bytes += 2) {
        hash[half_bytes / 2] = (uint8_t)(head >> 4 * half_bytes);
    }
    if (!is_opaque) {
        hash[half_bytes / 2] = (uint8_t)(bits(15 * of[A].mean, 4) | bits(15 * of[A].scale, 4) << 4);
        half_bytes += 2;
    }
    // The low half of each byte first.
    for (int channel = 0; channel < channels; channel++) {
        for (int index = 0; index < of[channel].count; index++, half_bytes++) {
            uint8_t value = (uint8_t)bits(15 * of[channel].values[index], 4);
            if (half_bytes % 2 == 0) {
                hash[half_bytes / 2] = value;
            } else {
                hash[half_bytes / 2] |= (uint8_t)(value << 4);
            }
        }
    }
    return (half_bytes + 1) / 2;
}
