#include "cpixels.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    /// Columns blurred side by side, so each cache line is read once.
    COLUMNS = 16,
    PASSES = 3,
};

/// A mean of `2 · whole + 1` samples and of a fraction of the next sample on each side.
typedef struct {
    size_t whole;
    float share;
    float scale;
} box;

/// Returns the box that blurs by this standard deviation when it is applied three times.
static box box_of(double deviation) {
    double variance = deviation * deviation / PASSES;
    double whole = floor((sqrt(12 * variance + 1) - 1) / 2);
    double width = 2 * whole + 1;
    double share = width * (whole * (whole + 1) - 3 * variance)
        / (6 * (variance - (whole + 1) * (whole + 1)));
    return (box){
        .whole = (size_t)whole, .share = (float)share, .scale = (float)(1 / (width + 2 * share))};
}

static size_t clamped(ptrdiff_t place, size_t count) {
    if (place < 0) return 0;
    return (size_t)place < count ? (size_t)place : count - 1;
}

/// One pass over `count` groups of `lanes` samples each.
static void mean(const float *from, float *to, size_t count, size_t lanes, box by) {
    ptrdiff_t reach = (ptrdiff_t)by.whole;
    for (size_t lane = 0; lane < lanes; lane++) {
        // A double keeps long runs exact.
        double sum = 0;
        for (ptrdiff_t place = -reach; place <= reach; place++) {
            sum += from[clamped(place, count) * lanes + lane];
        }
        for (size_t n = 0; n < count; n++) {
            ptrdiff_t place = (ptrdiff_t)n;
            float before = from[clamped(place - reach - 1, count) * lanes + lane];
            float behind = from[clamped(place + reach + 1, count) * lanes + lane];
            to[n * lanes + lane] = ((float)sum + by.share * (before + behind)) * by.scale;
            sum += behind - from[clamped(place - reach, count) * lanes + lane];
        }
    }
}

/// All passes; the result is in `line`.
static void blur_line(float *line, float *other, size_t count, size_t lanes, box by) {
    for (int pass = 0; pass < PASSES; pass++) {
        mean(line, other, count, lanes, by);
        float *swapped = line;
        line = other;
        other = swapped;
    }
    memcpy(other, line, count * lanes * sizeof *line);
}

/// Loads 8-bit samples as floats from 0 to 65,535, colours multiplied by alpha.
static void load(const uint8_t *row, float *line, size_t width, int channels) {
    bool has_alpha = channels % 2 == 0;
    for (size_t x = 0; x < width; x++, row += channels, line += channels) {
        unsigned alpha = has_alpha ? row[channels - 1] : 255;
        for (int channel = 0; channel < channels; channel++) {
            bool is_alpha = has_alpha && channel == channels - 1;
            line[channel] = (float)(row[channel] * (is_alpha ? 257 : alpha * 257 / 255.0));
        }
    }
}

static uint16_t sixteen_bits(float value) { return (uint16_t)lrintf(fminf(fmaxf(value, 0), 65535)); }

/// Stores a pixel of 16 bits a sample, its colours multiplied by alpha.
static void store(const float *pixel, uint8_t *output, int channels) {
    bool has_alpha = channels % 2 == 0;
    float alpha = has_alpha ? pixel[channels - 1] : 65535;
    for (int channel = 0; channel < channels; channel++) {
        bool is_alpha = has_alpha && channel == channels - 1;
        float value = is_alpha ? pixel[channel] / 257
            : alpha <= 0       ? 0
                               : pixel[channel] / alpha * 255;
        output[channel] = (uint8_t)lrintf(fminf(fmaxf(value, 0), 255));
    }
}

ccodec_status cpixels_blur(
    const ccodec_picture *picture, double deviation, cinterruption *interruption) {
    size_t width = picture->width, height = picture->height, channels = (size_t)picture->channels;
    size_t longest = width > COLUMNS * height ? width : COLUMNS * height, samples, bytes;
    if (__builtin_mul_overflow(width * channels, height, &samples)) return CCODEC_OUT_OF_MEMORY;
    if (__builtin_mul_overflow(samples, sizeof(uint16_t), &bytes)) return CCODEC_OUT_OF_MEMORY;
    uint16_t *between = malloc(bytes);
    float *lines = malloc(2 * longest * channels * sizeof *lines);
    ccodec_status status = CCODEC_OK;
    if (between == NULL || lines == NULL) {
        status = CCODEC_OUT_OF_MEMORY;
        goto end;
    }
    box by = box_of(deviation);
    float *other = lines + longest * channels;
    for (size_t y = 0; y < height; y++) {
        if (cinterruption_after(interruption, width * channels)) {
            status = CCODEC_INTERRUPTED;
            goto end;
        }
        load(picture->pixels + y * picture->stride, lines, width, (int)channels);
        blur_line(lines, other, width, channels, by);
        for (size_t n = 0; n < width * channels; n++) {
            between[y * width * channels + n] = sixteen_bits(lines[n]);
        }
    }
    for (size_t x = 0; x < width; x += COLUMNS) {
        size_t lanes = (width - x < COLUMNS ? width - x : COLUMNS) * channels;
        if (cinterruption_after(interruption, lanes * height)) {
            status = CCODEC_INTERRUPTED;
            goto end;
        }
        for (size_t y = 0; y < height; y++) {
            const uint16_t *from = between + (y * width + x) * channels;
            for (size_t lane = 0; lane < lanes; lane++) lines[y * lanes + lane] = from[lane];
        }
        blur_line(lines, other, height, lanes, by);
        for (size_t y = 0; y < height; y++) {
            uint8_t *output = picture->pixels + y * picture->stride + x * channels;
            for (size_t lane = 0; lane < lanes; lane += channels) {
                store(lines + y * lanes + lane, output + lane, (int)channels);
            }
        }
    }
end:
    free(lines);
    free(between);
    return status;
}
