#include "cpixels.h"

#include <string.h>

enum { MOST_ROWS = 64, MOST_CHANNELS = 4 };

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

double cpixels_lossless_bits(const ccodec_picture *picture) {
    uint32_t counts[MOST_CHANNELS][256];
    memset(counts, 0, sizeof counts);
    uint32_t rows = picture->height < MOST_ROWS ? picture->height : MOST_ROWS;
    for (uint32_t index = 0; index < rows; index++) {
        // The last row of each band.
        size_t y = (size_t)(index + 1) * picture->height / rows - 1;
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
    return bits / total;
}
