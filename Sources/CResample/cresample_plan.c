#include "cresample_plan.h"

#include <math.h>

// No fused operations, so every processor gives the same bytes.
#pragma STDC FP_CONTRACT OFF

/// Keeps sums of 8-bit samples within 16 bits for a block's column, and 32 for the block.
static const uint32_t most_averaged = 256;

/// The least factor that averages leave to Lanczos. Photographs of 24 megapixels become 600 × 400
/// at 57 dB (peak signal to noise) from Lanczos 3 alone. With 2, like libvips, it is 52 dB in two
/// thirds of the time.
static const double left_to_lanczos = 3;

static double lanczos3(double x) {
    x = fabs(x);
    if (x >= 3) return 0;
    if (x < 1e-9) return 1;
    double angle = M_PI * x;
    return 3 * sin(angle) * sin(angle / 3) / (angle * angle);
}

/// A third of a tap's angle, advanced by the addition theorems. After 30 taps the error is 10⁻¹⁴ at
/// most. Two library calls a tap were most of the cost of small pictures.
typedef struct {
    double sine, cosine;
} turning;

static turning turned(turning at, turning by) {
    return (turning){at.sine * by.cosine + at.cosine * by.sine, at.cosine * by.cosine - at.sine * by.sine};
}

/// Computes `lanczos3` from the sine of a third of the angle.
static double lanczos3_of(double x, double third_sine) {
    // The quotient of two small numbers would magnify their error.
    if (fabs(x) < 1e-4 || fabs(x) >= 3) return lanczos3(x);
    double angle = M_PI * x;
    return 3 * third_sine * third_sine * (3 - 4 * third_sine * third_sine) / (angle * angle);
}

static double clamped(double value, double most) {
    return value < 0 ? 0 : value > most ? most : value;
}

static uint32_t blocks_of(uint32_t pixels, uint32_t ratio) {
    return pixels / ratio + (pixels % ratio != 0);
}

/// Returns the centre of a target pixel, in the source.
static double centre_of(const cresample_axis *axis, uint32_t index) {
    return axis->start + (index + 0.5) * axis->scale;
}

/// Returns the first block that may have a weight, or the one after the last.
static uint32_t block_at(const cresample_axis *axis, double place, bool is_end) {
    double block = place / axis->ratio;
    return (uint32_t)clamped(
        is_end ? ceil(block) : floor(block), blocks_of(axis->pixels, axis->ratio));
}

cresample_axis cresample_axis_of(
    uint32_t pixels, double start, double length, uint32_t target, cresample_filter filter) {
    cresample_axis axis = {
        .pixels = pixels, .target = target, .start = start, .scale = length / target, .ratio = 1};
    if (filter == CRESAMPLE_AUTOMATIC && axis.scale >= 2 * left_to_lanczos) {
        axis.ratio = (uint32_t)clamped(floor(axis.scale / left_to_lanczos), most_averaged);
    }
    axis.reach = 3 * fmax(axis.scale, 1);
    axis.first_block = block_at(&axis, centre_of(&axis, 0) - axis.reach, false);
    uint32_t end = block_at(&axis, centre_of(&axis, target - 1) + axis.reach, true);
    axis.blocks = end - axis.first_block;
    double taps = ceil(2 * axis.reach / axis.ratio) + 2;
    axis.most_taps = taps < axis.blocks ? (uint32_t)taps : axis.blocks;
    return axis;
}

uint32_t cresample_block_pixels(const cresample_axis *axis, uint32_t block) {
    uint32_t left = axis->pixels - block * axis->ratio;
    return left < axis->ratio ? left : axis->ratio;
}

cresample_window cresample_weigh(const cresample_axis *axis, uint32_t index, double *weights) {
    double centre = centre_of(axis, index), filter_scale = fmax(axis->scale, 1);
    uint32_t first = block_at(axis, centre - axis->reach, false);
    uint32_t end = block_at(axis, centre + axis->reach, true);
    double sum = 0, third = M_PI / 3 / filter_scale;
    double start = third * (((double)first + 0.5) * axis->ratio - centre), step = third * axis->ratio;
    turning at = {sin(start), cos(start)}, by = {sin(step), cos(step)};
    for (uint32_t block = first; block < end; block++, at = turned(at, by)) {
        double size = cresample_block_pixels(axis, block);
        double place = (double)block * axis->ratio + size / 2;
        // A block cut short by the picture's edge counts by its pixels.
        double x = (place - centre) / filter_scale;
        double weight = (size < axis->ratio ? lanczos3(x) : lanczos3_of(x, at.sine)) * size;
        weights[block - first] = weight;
        sum += weight;
    }
    uint32_t skipped = 0, taps = end - first;
    // Zeros of the filter at pixels are not exactly zero.
    while (taps > 1 && fabs(weights[taps - 1]) < 1e-12 * sum) taps--;
    while (skipped + 1 < taps && fabs(weights[skipped]) < 1e-12 * sum) skipped++;
    taps -= skipped;
    for (uint32_t tap = 0; tap < taps; tap++) weights[tap] = weights[tap + skipped] / sum;
    return (cresample_window){.first_block = first + skipped, .taps = taps};
}

void cresample_round(const double *weights, uint32_t taps, int16_t *rounded) {
    double sum = 0;
    int last = 0;
    for (uint32_t tap = 0; tap < taps; tap++) {
        sum += weights[tap];
        int now = tap + 1 == taps ? 1 << 14 : (int)floor(sum * (1 << 14) + 0.5);
        rounded[tap] = (int16_t)(now - last);
        last = now;
    }
}

void *cresample_take(cresample_arena *arena, size_t count, size_t size) {
    size_t bytes, end;
    uint8_t *part = arena->memory == NULL ? NULL : arena->memory + arena->bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || __builtin_add_overflow(bytes, 63, &bytes)
        || __builtin_add_overflow(arena->bytes, bytes & ~(size_t)63, &end)) {
        end = SIZE_MAX;
    }
    arena->bytes = end;
    return part;
}
