#include "cpixels.h"

#include <stdlib.h>

enum { BLOCK = 16, QUAD = 2, COLOURS = 3 };

/// Red, green and blue of a pixel over black.
static void colour_at(const ccodec_picture *picture, size_t x, size_t y, int colour[COLOURS]) {
    int channels = picture->channels;
    const uint8_t *pixel = picture->pixels + y * picture->stride + x * (size_t)channels;
    int alpha = channels == 2 || channels == 4 ? pixel[channels - 1] : 255;
    for (int index = 0; index < COLOURS; index++) {
        int sample = pixel[channels < COLOURS ? 0 : index];
        colour[index] = alpha == 255 ? sample : (sample * alpha + 127) / 255;
    }
}

/// The mean difference of two pictures in a rectangle.
static double difference(
    const ccodec_picture *first, const ccodec_picture *second, cpixels_rectangle place) {
    uint64_t sum = 0;
    for (size_t y = place.y; y < place.y + place.height; y++) {
        for (size_t x = place.x; x < place.x + place.width; x++) {
            int one[COLOURS], other[COLOURS];
            colour_at(first, x, y, one);
            colour_at(second, x, y, other);
            for (int index = 0; index < COLOURS; index++) {
                sum += (uint64_t)abs(one[index] - other[index]);
            }
        }
    }
    return (double)sum / ((uint64_t)COLOURS * place.width * place.height);
}

/// Adds the differences from the mean chroma of two by two pixels.
///
/// - Returns: the number of pixels inside the picture.
static int add_smear(const ccodec_picture *picture, size_t left, size_t top, uint64_t *sum) {
    int chroma[QUAD * QUAD][COLOURS], mean[COLOURS] = {0}, count = 0;
    for (size_t y = top; y < top + QUAD && y < picture->height; y++) {
        for (size_t x = left; x < left + QUAD && x < picture->width; x++, count++) {
            int *it = chroma[count];
            colour_at(picture, x, y, it);
            int luma = (77 * it[0] + 150 * it[1] + 29 * it[2] + 128) >> 8;
            for (int index = 0; index < COLOURS; index++) {
                it[index] -= luma;
                mean[index] += it[index];
            }
        }
    }
    for (int index = 0; index < COLOURS; index++) mean[index] /= count;
    for (int pixel = 0; pixel < count; pixel++) {
        for (int index = 0; index < COLOURS; index++) {
            *sum += (uint64_t)abs(chroma[pixel][index] - mean[index]);
        }
    }
    return count;
}

/// The mean difference from the picture in 4:2:0, in a rectangle. A quarter of the pixels, two by
/// two, is taken to save time; every other row of them is shifted.
static double smear(const ccodec_picture *picture, cpixels_rectangle place) {
    uint64_t sum = 0;
    int pixels = 0;
    for (size_t y = place.y; y < place.y + place.height; y += 2 * QUAD) {
        size_t x = place.x + y / QUAD % (2 * QUAD);
        for (; x < place.x + place.width; x += 2 * QUAD) {
            pixels += add_smear(picture, x, y, &sum);
        }
    }
    return pixels > 0 ? (double)sum / (COLOURS * pixels) : 0;
}

/// The first sample of a block and the number of its samples; the last block takes what is left.
static uint32_t start(uint32_t index, uint32_t side, uint32_t *length) {
    uint32_t blocks = side < BLOCK ? 1 : side / BLOCK;
    *length = index + 1 < blocks ? BLOCK : side - index * BLOCK;
    return index * BLOCK;
}

ccodec_status cpixels_worst_block(
    const ccodec_picture *picture, const ccodec_picture *other, double *worst,
    cinterruption *interruption) {
    *worst = 0;
    cpixels_rectangle place = {0, 0, 0, 0};
    for (uint32_t row = 0; place.y + place.height < picture->height; row++) {
        place.y = start(row, picture->height, &place.height);
        place.x = place.width = 0;
        for (uint32_t column = 0; place.x + place.width < picture->width; column++) {
            place.x = start(column, picture->width, &place.width);
            double mean =
                other != NULL ? difference(picture, other, place) : smear(picture, place);
            if (mean > *worst) *worst = mean;
        }
        if (interruption != NULL
            && cinterruption_after(interruption, (size_t)picture->width * place.height)) {
            return CCODEC_INTERRUPTED;
        }
    }
    return CCODEC_OK;
}
