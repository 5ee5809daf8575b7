#include "cpixels.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_ROWS = 64,
    MOST_CHANNELS = 4,
    /// Up to this size, repetitions are counted in all rows.
    MOST_PIXELS = 100000,
    /// The pixels of a sequence that may repeat.
    SEQUENCE = 4,
    TABLE_BITS = 15,
};

/// Log2, linear between powers of two, which every processor computes alike.
static double logarithm(uint32_t count) {
    int exponent = 31 - __builtin_clz(count);
    return exponent + ((double)count / (double)(1u << exponent) - 1);
}

/// The sample less the green one: channels of colour have common edges.
static int sample(const uint8_t *pixel, int channel, int channels) {
    bool is_difference = channels >= 3 && (channel == 0 || channel == 2);
    return is_difference ? (pixel[channel] - pixel[1]) & 255 : pixel[channel];
}

/// Counts the errors of predictions from the neighbours left, above and above left.
///
/// - `above`: the row above; NULL for the first row.
static void count_errors(
    const uint8_t *row, const uint8_t *above, uint32_t width, int channels,
    uint32_t counts[MOST_CHANNELS][256]) {
    for (uint32_t x = 0; x < width; x++, row += channels) {
        size_t back = x > 0 ? (size_t)channels : 0;
        for (int channel = 0; channel < channels; channel++) {
            int predicted = back > 0 ? sample(row - back, channel, channels) : 0;
            if (above != NULL) {
                const uint8_t *upper = above + x * (size_t)channels;
                int corner = back > 0 ? sample(upper - back, channel, channels) : 0;
                predicted += sample(upper, channel, channels) - corner;
            }
            if (predicted < 0) predicted = 0;
            if (predicted > 255) predicted = 255;
            counts[channel][(sample(row, channel, channels) - predicted) & 255]++;
        }
    }
}

/// The last row of a band; with as many bands as rows, that row.
static size_t sampled_row(const ccodec_picture *picture, uint32_t band, uint32_t bands) {
    return (size_t)(band + 1) * picture->height / bands - 1;
}

/// Counts the sequences of pixels in a row that are in the table of the ones before.
static uint32_t repetitions(const uint8_t *row, uint32_t width, int channels, uint32_t *table) {
    uint32_t count = 0;
    uint64_t pixels[SEQUENCE] = {0};
    for (uint32_t x = 0; x < width; x++, row += channels) {
        uint64_t pixel = 0, hash = 0;
        for (int channel = 0; channel < channels; channel++) pixel = pixel << 8 | row[channel];
        pixels[x % SEQUENCE] = pixel;
        if (x + 1 < SEQUENCE) continue;
        for (uint32_t back = SEQUENCE; back > 0; back--) {
            hash = (hash ^ pixels[(x + 1 - back) % SEQUENCE]) * 0x9E3779B97F4A7C15;
            hash ^= hash >> 29;
        }
        uint32_t *known = &table[hash >> (64 - TABLE_BITS)];
        count += *known == (uint32_t)hash;
        *known = (uint32_t)hash;
    }
    return count;
}

/// The share of sequences that occurred before; 0 without memory.
static double repetition(const ccodec_picture *picture) {
    uint32_t *table = calloc((size_t)1 << TABLE_BITS, sizeof *table);
    if (table == NULL) return 0;
    bool is_small = (uint64_t)picture->width * picture->height <= MOST_PIXELS;
    uint32_t rows = is_small || picture->height < MOST_ROWS ? picture->height : MOST_ROWS;
    uint64_t count = 0;
    for (uint32_t index = 0; index < rows; index++) {
        const uint8_t *row = picture->pixels + sampled_row(picture, index, rows) * picture->stride;
        count += repetitions(row, picture->width, picture->channels, table);
    }
    free(table);
    return (double)count / ((double)rows * picture->width);
}

double cpixels_lossless_bits(const ccodec_picture *picture) {
    uint32_t counts[MOST_CHANNELS][256];
    memset(counts, 0, sizeof counts);
    uint32_t rows = picture->height < MOST_ROWS ? picture->height : MOST_ROWS;
    for (uint32_t index = 0; index < rows; index++) {
        size_t y = sampled_row(picture, index, rows);
        const uint8_t *row = picture->pixels + y * picture->stride;
        const uint8_t *above = y > 0 ? row - picture->stride : NULL;
        count_errors(row, above, picture->width, picture->channels, counts);
    }
    uint32_t total = rows * picture->width;
    double bits = 0;
    for (int channel = 0; channel < picture->channels; channel++) {
        for (int error = 0; error < 256; error++) {
            uint32_t count = counts[channel][error];
            if (count > 0) bits += count * (logarithm(total) - logarithm(count));
        }
    }
    return bits / total * (1 - repetition(picture));
}
