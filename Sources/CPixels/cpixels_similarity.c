#include "cpixels.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// Products are rounded before they are added, so every processor computes the same.
#pragma STDC FP_CONTRACT OFF

enum { PLANES = 3, CELL = 4 };

/// Sums over a cell of 4 × 4 samples of both pictures.
typedef struct {
    int32_t first;
    int32_t second;
    /// Squares of both pictures.
    int32_t squares;
    int32_t products;
} cell;

/// Computes luma and chroma (ITU-R BT.601, all from 0 to 255) of one row, over black. The last
/// pixel repeats up to `padded` samples a plane.
static void planes_of(
    const uint8_t *row, uint32_t width, size_t padded, int channels, uint8_t *planes) {
    uint8_t *luma = planes, *blue = planes + padded, *red = planes + 2 * padded;
    bool is_grey = channels < 3;
    bool has_alpha = channels == 2 || channels == 4;
    for (uint32_t x = 0; x < width; x++) {
        const uint8_t *pixel = row + (size_t)x * (size_t)channels;
        int r = pixel[0], g = is_grey ? r : pixel[1], b = is_grey ? r : pixel[2];
        if (has_alpha) {
            int alpha = pixel[channels - 1];
            r = (r * alpha + 127) / 255;
            g = (g * alpha + 127) / 255;
            b = (b * alpha + 127) / 255;
        }
        luma[x] = (uint8_t)((77 * r + 150 * g + 29 * b + 128) >> 8);
        blue[x] = (uint8_t)((-43 * r - 85 * g + 128 * b + 128 * 256 + 127) >> 8);
        red[x] = (uint8_t)((128 * r - 107 * g - 21 * b + 128 * 256 + 127) >> 8);
    }
    for (int plane = 0; plane < PLANES; plane++) {
        uint8_t *samples = planes + (size_t)plane * padded;
        memset(samples + width, samples[width - 1], padded - width);
    }
}

/// Adds a row to the cells of its band.
static void add(const uint8_t *first, const uint8_t *second, size_t cells, cell *band) {
    for (size_t index = 0; index < cells; index++) {
        const uint8_t *a = first + CELL * index, *b = second + CELL * index;
        for (int x = 0; x < CELL; x++) {
            band[index].first += a[x];
            band[index].second += b[x];
            band[index].squares += a[x] * a[x] + b[x] * b[x];
            band[index].products += a[x] * b[x];
        }
    }
}

/// SSIM of a window of that many samples (Wang, Bovik, Sheikh, Simoncelli, 2004), with population
/// variances.
static double similarity(cell sum, double count) {
    double first = sum.first, second = sum.second;
    double products = first * second, squares = first * first + second * second;
    double variances = sum.squares * count - squares;
    double covariance = sum.products * count - products;
    double c1 = 0.01 * 0.01 * 255 * 255 * count * count;
    double c2 = 0.03 * 0.03 * 255 * 255 * count * count;
    return ((2 * products + c1) * (2 * covariance + c2))
        / ((squares + c1) * (variances + c2));
}

static cell joined(cell a, cell b) {
    cell sum = {
        a.first + b.first, a.second + b.second, a.squares + b.squares, a.products + b.products};
    return sum;
}

/// Sums the similarity of windows of 2 × 2 cells over two bands.
static double similarity_of_bands(const cell *upper, const cell *lower, size_t cells) {
    double total = 0;
    for (size_t x = 0; x + 1 < cells; x++) {
        total += similarity(
            joined(joined(upper[x], upper[x + 1]), joined(lower[x], lower[x + 1])),
            4 * CELL * CELL);
    }
    return total;
}

static size_t padded(uint32_t side) {
    return side < 2 * CELL ? 2 * CELL : ((size_t)side + CELL - 1) / CELL * CELL;
}

ccodec_status cpixels_similarity(
    const ccodec_picture *first, const ccodec_picture *second, double *similarity,
    cinterruption *interruption) {
    size_t width = padded(first->width), height = padded(first->height);
    size_t cells = width / CELL;
    uint8_t *rows = malloc(2 * PLANES * width);
    // The cells of the upper and the lower band of each plane.
    cell *bands = calloc(2 * PLANES * cells, sizeof *bands);
    double totals[PLANES] = {0};
    ccodec_status status = rows == NULL || bands == NULL ? CCODEC_OUT_OF_MEMORY : CCODEC_OK;
    for (size_t y = 0; status == CCODEC_OK && y < height; y++) {
        size_t row = y < first->height ? y : first->height - 1;
        planes_of(first->pixels + row * first->stride, first->width, width, first->channels, rows);
        planes_of(
            second->pixels + row * second->stride, first->width, width, second->channels,
            rows + PLANES * width);
        size_t band = y / CELL;
        for (size_t plane = 0; plane < PLANES; plane++) {
            cell *both = bands + 2 * plane * cells;
            cell *lower = both + band % 2 * cells, *upper = both + (band + 1) % 2 * cells;
            if (y % CELL == 0) memset(lower, 0, cells * sizeof *lower);
            const uint8_t *samples = rows + plane * width;
            add(samples, samples + PLANES * width, cells, lower);
            if (y % CELL == CELL - 1 && band > 0) {
                totals[plane] += similarity_of_bands(upper, lower, cells);
            }
        }
        if (interruption != NULL && cinterruption_after(interruption, 6 * width)) {
            status = CCODEC_INTERRUPTED;
        }
    }
    free(rows);
    free(bands);
    double windows = (double)(cells - 1) * (double)(height / CELL - 1);
    *similarity = (6 * totals[0] + totals[1] + totals[2]) / (8 * windows);
    return status;
}
