#include "cresample_light.h"

#include <math.h>

#pragma STDC FP_CONTRACT OFF

enum { LIGHT_BITS = 24, FIRST_BITS = 12 };

static uint32_t most_of(int bit_depth) { return (1u << bit_depth) - 1; }

cresample_encoding cresample_encoding_of(
    const cresample_source *source, bool is_linear, cresample_arena *arena) {
    cresample_encoding encoding = {.channels = source->channels, .bit_depth = source->bit_depth};
    if (!is_linear) return encoding;
    encoding.light =
        cresample_take(arena, (size_t)most_of(source->bit_depth) + 1, sizeof *encoding.light);
    encoding.first_samples =
        cresample_take(arena, (1 << FIRST_BITS) + 2, sizeof *encoding.first_samples);
    return encoding;
}

/// IEC 61966-2-1, section 5.2.
static double light_of(double sample) {
    return sample <= 0.04045 ? sample / 12.92 : pow((sample + 0.055) / 1.055, 2.4);
}

/// Returns the sample from `least` to `most` with the nearest light; the higher one on a tie.
static uint32_t nearest_sample(
    const uint32_t *light, uint32_t amount, uint32_t least, uint32_t most) {
    while (least < most) {
        uint32_t middle = (least + most + 1) / 2;
        if (light[middle - 1] + light[middle] <= 2 * amount) {
            least = middle;
        } else {
            most = middle - 1;
        }
    }
    return least;
}

void cresample_fill_tables(cresample_encoding *encoding) {
    if (encoding->light == NULL) return;
    uint32_t most = most_of(encoding->bit_depth);
    for (uint32_t sample = 0; sample <= most; sample++) {
        encoding->light[sample] =
            (uint32_t)(light_of((double)sample / most) * (1 << LIGHT_BITS) + 0.5);
    }
    for (uint32_t place = 0; place <= 1 << FIRST_BITS; place++) {
        encoding->first_samples[place] = (uint16_t)nearest_sample(
            encoding->light, place << (LIGHT_BITS - FIRST_BITS), 0, most);
    }
    encoding->first_samples[(1 << FIRST_BITS) + 1] = (uint16_t)most;
}

static inline __attribute__((always_inline)) uint64_t sample_at(
    const uint8_t *row, size_t index, int bit_depth) {
    if (bit_depth == 8) return row[index];
    return (uint64_t)row[2 * index] << 8 | row[2 * index + 1];
}

static inline __attribute__((always_inline)) void add_amounts(
    uint64_t *restrict sums, const uint8_t *restrict row, const uint32_t *restrict light,
    uint32_t blocks, uint32_t ratio, uint32_t last, int channels, int bit_depth) {
    int colours = channels % 2 == 1 ? channels : channels - 1;
    size_t pixel_bytes = (size_t)(channels * bit_depth / 8);
    for (uint32_t block = 0; block < blocks; block++, sums += channels) {
        uint64_t sum[4] = {0};
        uint32_t pixels = block + 1 == blocks ? last : ratio;
        for (uint32_t pixel = 0; pixel < pixels; pixel++, row += pixel_bytes) {
            uint64_t alpha = colours < channels ? sample_at(row, (size_t)colours, bit_depth) : 1;
            for (int colour = 0; colour < colours; colour++) {
                uint64_t value = sample_at(row, (size_t)colour, bit_depth);
                sum[colour] += (light == NULL ? value : light[value]) * alpha;
            }
            if (colours < channels) sum[colours] += alpha;
        }
        for (int channel = 0; channel < channels; channel++) sums[channel] += sum[channel];
    }
}

/// A loop for each number of channels, with and without the table.
static inline __attribute__((always_inline)) void add_amounts_of_depth(
    uint64_t *sums, const uint8_t *row, const uint32_t *light, uint32_t blocks, uint32_t ratio,
    uint32_t last, int channels, int bit_depth) {
    switch (channels) {
    case 1: add_amounts(sums, row, light, blocks, ratio, last, 1, bit_depth); break;
    case 2: add_amounts(sums, row, light, blocks, ratio, last, 2, bit_depth); break;
    case 3: add_amounts(sums, row, light, blocks, ratio, last, 3, bit_depth); break;
    default: add_amounts(sums, row, light, blocks, ratio, last, 4, bit_depth);
    }
}

void cresample_add_amounts(
    const cresample_encoding *encoding, uint64_t *sums, const uint8_t *row, uint32_t blocks,
    uint32_t ratio, uint32_t last) {
    const uint32_t *light = encoding->light;
    int channels = encoding->channels;
    if (encoding->bit_depth == 8) {
        if (light == NULL) {
            add_amounts_of_depth(sums, row, NULL, blocks, ratio, last, channels, 8);
        } else {
            add_amounts_of_depth(sums, row, light, blocks, ratio, last, channels, 8);
        }
    } else {
        add_amounts_of_depth(sums, row, light, blocks, ratio, last, channels, 16);
    }
}

static float clamped(float value, float most) {
    return value < 0 ? 0 : value > most ? most : value;
}

/// Returns the sample that encodes a colour.
static uint32_t encoded(const cresample_encoding *encoding, float colour, float most) {
    if (encoding->light == NULL) return (uint32_t)(clamped(colour, most) + 0.5f);
    uint32_t amount = (uint32_t)(clamped(colour, 1 << LIGHT_BITS) + 0.5f);
    const uint16_t *first = encoding->first_samples + (amount >> (LIGHT_BITS - FIRST_BITS));
    return nearest_sample(encoding->light, amount, first[0], first[1]);
}

static uint8_t *stored(uint8_t *row, uint32_t sample, int bit_depth) {
    if (bit_depth == 16) *row++ = (uint8_t)(sample >> 8);
    *row++ = (uint8_t)sample;
    return row;
}

void cresample_encode(
    const cresample_encoding *encoding, uint8_t *row, const float *amounts, uint32_t pixels) {
    int channels = encoding->channels, depth = encoding->bit_depth;
    int colours = channels % 2 == 1 ? channels : channels - 1;
    float most = (float)most_of(depth);
    for (uint32_t x = 0; x < pixels; x++, amounts += channels) {
        uint32_t alpha = 1;
        float divisor = 1;
        if (colours < channels) {
            divisor = amounts[colours];
            alpha = (uint32_t)(clamped(divisor, most) + 0.5f);
        }
        for (int colour = 0; colour < colours; colour++) {
            uint32_t sample = alpha == 0 ? 0 : encoded(encoding, amounts[colour] / divisor, most);
            row = stored(row, sample, depth);
        }
        if (colours < channels) row = stored(row, alpha, depth);
    }
}
