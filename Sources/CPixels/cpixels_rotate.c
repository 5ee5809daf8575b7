#include "cpixels.h"

#include <stdbool.h>
#include <string.h>

enum {
    /// The fraction of places, and so the sum of the weights of two neighbours.
    FRACTION_BITS = 16,
    ONE = 1 << FRACTION_BITS,
};

/// The weighted sum of four pixels. Pixels beyond the picture are transparent.
typedef struct {
    /// The sum of weights is 2³².
    uint64_t alpha;
    /// Colours times alpha.
    uint64_t colours[3];
} mixture;

static const uint8_t *pixel_at(const ccodec_picture *picture, int64_t x, int64_t y) {
    return picture->pixels + (size_t)y * picture->stride + (size_t)x * (size_t)picture->channels;
}

static inline __attribute__((always_inline)) void add(
    mixture *sum, const ccodec_picture *source, int64_t x, int64_t y, uint64_t weight,
    int colours) {
    if (x < 0 || y < 0 || x >= source->width || y >= source->height) return;
    const uint8_t *pixel = pixel_at(source, x, y);
    uint64_t alpha = weight * (source->channels > colours ? pixel[colours] : 255u);
    sum->alpha += alpha;
    for (int channel = 0; channel < colours; channel++) {
        sum->colours[channel] += alpha * pixel[channel];
    }
}

/// Puts a mixture over the background.
static inline __attribute__((always_inline)) void store(
    const mixture *sum, const uint8_t background[4], uint8_t *output, int colours,
    bool has_alpha) {
    const uint64_t whole = (uint64_t)255 << 2 * FRACTION_BITS;
    uint64_t behind = (whole - sum->alpha) * background[3];
    uint64_t alpha = sum->alpha * 255 + behind;
    if (alpha == 0) {
        memset(output, 0, (size_t)(colours + has_alpha));
        return;
    }
    for (int channel = 0; channel < colours; channel++) {
        uint64_t color = sum->colours[channel] * 255 + behind * background[channel];
        output[channel] = (uint8_t)((color + alpha / 2) / alpha);
    }
    if (has_alpha) output[colours] = (uint8_t)((alpha + whole / 2) / whole);
}

/// The mean of four opaque pixels: the result of ``add`` and ``store``, without divisions.
static inline __attribute__((always_inline)) void store_opaque(
    const uint8_t *upper, size_t stride, int channels, uint64_t right, uint64_t lower,
    uint8_t *output, int colours, bool has_alpha) {
    for (int channel = 0; channel < colours; channel++) {
        const uint8_t *at = upper + channel, *below = at + stride;
        uint64_t above = at[0] * (ONE - right) + at[channels] * right;
        uint64_t beneath = below[0] * (ONE - right) + below[channels] * right;
        output[channel] = (uint8_t)(
            (above * (ONE - lower) + beneath * lower + ((uint64_t)1 << (2 * FRACTION_BITS - 1)))
            >> 2 * FRACTION_BITS);
    }
    if (has_alpha) output[colours] = 255;
}

static inline __attribute__((always_inline)) void rotate_row(
    const ccodec_picture *source, int64_t cosine, int64_t sine, const uint8_t background[4],
    const ccodec_picture *target, uint32_t y, int colours) {
    bool is_opaque = source->channels == colours, has_alpha = target->channels > colours;
    int64_t width = source->width, height = source->height;
    // Distances from the centre, in halves of a pixel.
    int64_t across = 1 - (int64_t)target->width;
    int64_t down = 2 * (int64_t)y + 1 - (int64_t)target->height;
    uint8_t *output = target->pixels + (size_t)y * target->stride;
    for (uint32_t x = 0; x < target->width; x++, across += 2, output += target->channels) {
        int64_t column =
            ((cosine * across + sine * down) >> (31 - FRACTION_BITS)) + (width - 1) * (ONE / 2);
        int64_t row =
            ((cosine * down - sine * across) >> (31 - FRACTION_BITS)) + (height - 1) * (ONE / 2);
        int64_t left = column >> FRACTION_BITS, top = row >> FRACTION_BITS;
        uint64_t right = column & (ONE - 1), lower = row & (ONE - 1);
        if (is_opaque && left >= 0 && top >= 0 && left < width - 1 && top < height - 1) {
            store_opaque(
                pixel_at(source, left, top), source->stride, source->channels, right, lower,
                output, colours, has_alpha);
            continue;
        }
        mixture sum = {0};
        if (left >= -1 && top >= -1 && left < width && top < height) {
            add(&sum, source, left, top, (ONE - right) * (ONE - lower), colours);
            add(&sum, source, left + 1, top, right * (ONE - lower), colours);
            add(&sum, source, left, top + 1, (ONE - right) * lower, colours);
            add(&sum, source, left + 1, top + 1, right * lower, colours);
        }
        store(&sum, background, output, colours, has_alpha);
    }
}

ccodec_status cpixels_rotate(
    const ccodec_picture *source, int32_t cosine, int32_t sine, const uint8_t background[4],
    const ccodec_picture *target, cinterruption *interruption) {
    for (uint32_t y = 0; y < target->height; y++) {
        size_t bytes = (size_t)target->width * (size_t)target->channels;
        if (cinterruption_after(interruption, bytes)) return CCODEC_INTERRUPTED;
        if (source->channels < 3) {
            rotate_row(source, cosine, sine, background, target, y, 1);
        } else {
            rotate_row(source, cosine, sine, background, target, y, 3);
        }
    }
    return CCODEC_OK;
}
