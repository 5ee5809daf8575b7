#include "cresample_plan.h"

#include <math.h>

/// Sums of 8-bit samples have 16 bits for a block's column, and 32 for all of it.
static const uint32_t most_averaged = 256;

/// The least factor that averages leave. Photographs of 24 megapixels become 600 × 400 at 57 dB (peak
/// signal to noise) from Lanczos 3 alone; with 2, as libvips has it, at 52 dB in two thirds of the
/// time.
static const double left_to_lanczos = 3;

static double lanczos3(double x) {
    x = fabs(x);
    if (x >= 3) return 0;
    if (x < 1e-9) return 1;
    double angle = M_PI * x;
    return 3 * sin(angle) * sin(angle / 3) / (angle * angle);
}

static double clamped(double value, double most) {
    return value < 0 ? 0 : value > most ? most : value;
}

static uint32_t blocks_of(uint32_t pixels, uint32_t ratio) {
    return pixels / ratio + (pixels % ratio != 0);
}

/// The centre of what the target's pixel covers, in the source.
static double centre_of(const cresample_axis *axis, uint32_t index) {
    return axis->start + (index + 0.5) * axis->scale;
}

/// The first block of those that may have a weight, or the one behind the last.
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
    double sum = 0;
    for (uint32_t block = first; block < end; block++) {
        double size = cresample_block_pixels(axis, block);
        double place = (double)block * axis->ratio + size / 2;
        // A block that the picture's edge cuts short counts for the pixels that it has.
        double weight = lanczos3((place - centre) / filter_scale) * size;
        weights[block - first] = weight;
        sum += weight;
    }
    uint32_t skipped = 0, taps = end - first;
    // Where the filter's zeros meet pixels, they are not quite nothing.
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
