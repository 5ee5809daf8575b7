#include "cplaceholder_picture.h"

#include <math.h>
#include <string.h>

// No fused operations, so that every processor gives the same bytes.
#pragma STDC FP_CONTRACT OFF

enum {
    /// Pictures of at most this many pixels a side are taken as they are.
    MOST_SIDE = 48,
    /// The longer side of reduced pictures.
    REDUCED_SIDE = 32,
    /// The shorter side is in proportion to 100 pixels, up to this many: its three cosines need
    /// three.
    SHORT_SIDE = 8,
    /// Columns are summed in blocks, whose sums stay in the L1 cache.
    BLOCK_PIXELS = 512,
    /// About this many rows are read of many. Steps are odd, to meet both halves of alternating
    /// rows.
    ENOUGH_ROWS = 16,
    /// The weight of a whole row. 31 rows of 255 · 255 fit 32 bits.
    WHOLE_ROW = 64,
};

// MARK: - Rows to samples of 8 bits

/// The channels that a picture is reduced in: 1 grey, 3 RGB, 4 RGB and alpha.
static int channels_of(const cplaceholder_rows *rows) {
    bool has_alpha = (rows->color_type & 4) != 0 || rows->key != NULL;
    for (int index = 0; rows->color_type == 3 && index < 256; index++) has_alpha |= (rows->palette[index] & 255) != 255;
    return has_alpha ? 4 : rows->color_type == 0 ? 1 : 3;
}

static unsigned sample(const uint8_t *row, int depth, size_t position) {
    if (depth == 8) return row[position];
    if (depth == 16) return (unsigned)row[2 * position] << 8 | row[2 * position + 1];
    size_t bit = position * (size_t)depth;
    return row[bit / 8] >> (8 - depth - (int)(bit % 8)) & ((1u << depth) - 1);
}

/// Returns part of a row with `channels` bytes a pixel: the row itself if it has that form, else
/// `buffer`.
static const uint8_t *part_of_row(
    const cplaceholder_rows *rows, size_t y, size_t x, size_t count, int channels, uint8_t *buffer) {
    const uint8_t *row = rows->pixels + y * rows->stride;
    int type = rows->color_type, depth = rows->bit_depth, colours = type & 2 ? 3 : 1;
    int samples = type == 3 ? 1 : colours + (type & 4 ? 1 : 0);
    if (depth == 8 && type != 3 && samples == channels) return row + x * (size_t)channels;
    uint8_t *out = buffer;
    for (size_t pixel = x; pixel < x + count; pixel++, out += channels) {
        if (type == 3) {
            uint32_t colour = rows->palette[sample(row, depth, pixel)];
            for (int index = 0; index < channels; index++) out[index] = (uint8_t)(colour >> (24 - 8 * index));
            continue;
        }
        uint8_t values[4] = {0, 0, 0, 255};
        bool is_key = rows->key != NULL && samples == colours;
        for (int index = 0; index < samples; index++) {
            unsigned value = sample(row, depth, pixel * (size_t)samples + (size_t)index);
            is_key = is_key && value == rows->key[index];
            values[index < colours ? index : 3] =
                (uint8_t)(depth == 16 ? value >> 8 : value * 255 / ((1u << depth) - 1));
        }
        if (colours == 1) values[1] = values[2] = values[0];
        if (is_key) values[3] = 0;
        for (int index = 0; index < channels; index++) out[index] = values[index];
    }
    return buffer;
}

// MARK: - Means over areas

FOR_EACH_PROCESSOR static void add_samples(
    uint32_t *restrict sums, const uint8_t *restrict part, size_t count, uint32_t weight) {
    for (size_t index = 0; index < count; index++) sums[index] += part[index] * weight;
}

/// Adds alpha, and colours times alpha.
FOR_EACH_PROCESSOR static void add_products(
    uint32_t *restrict sums, const uint8_t *restrict part, size_t pixels, uint32_t weight) {
    for (size_t x = 0; x < pixels; x++) {
        uint32_t alpha = part[4 * x + 3] * weight;
        for (size_t channel = 0; channel < 3; channel++) sums[4 * x + channel] += part[4 * x + channel] * alpha;
        sums[4 * x + 3] += alpha;
    }
}

/// The first whole pixel that lies behind a position.
static size_t behind_of(double position) {
    size_t whole = (size_t)position;
    return (double)whole < position ? whole + 1 : whole;
}

/// Sums the columns of rows from `begin` to `end`; rows at the ends count in part. Returns the sum
/// of the rows' weights.
static uint32_t sum_rows(
    const cplaceholder_rows *rows, double begin, double end, size_t x, size_t pixels, int channels, uint32_t *sums) {
    uint8_t buffer[BLOCK_PIXELS * 4];
    size_t first = (size_t)begin, behind = behind_of(end), step = 1;
    if (behind - first >= 2 * ENOUGH_ROWS) step = ((behind - first) / ENOUGH_ROWS) | 1;
    uint32_t total = 0;
    memset(sums, 0, pixels * (size_t)channels * sizeof *sums);
    for (size_t y = first + step / 2; y < behind; y += step) {
        double part = fmin(end, (double)(y + 1)) - fmax(begin, (double)y);
        uint32_t weight = step > 1 ? WHOLE_ROW : (uint32_t)(WHOLE_ROW * part + 0.5);
        const uint8_t *samples = part_of_row(rows, y, x, pixels, channels, buffer);
        if (channels == 4) {
            add_products(sums, samples, pixels, weight);
        } else {
            add_samples(sums, samples, pixels * (size_t)channels, weight);
        }
        total += weight;
    }
    return total;
}

static uint8_t rounded(double value) { return value >= 255 ? 255 : (uint8_t)(value + 0.5); }

static inline __attribute__((always_inline)) void add_whole(
    const uint32_t *columns, size_t count, int channels, double *to) {
    uint64_t sums[4] = {0};
    for (size_t column = 0; column < count; column++, columns += channels) {
        for (int channel = 0; channel < channels; channel++) sums[channel] += columns[channel];
    }
    for (int channel = 0; channel < channels; channel++) to[channel] += (double)sums[channel];
}

static void add_part(const uint32_t *column, double part, int channels, double *to) {
    for (int channel = 0; channel < channels; channel++) to[channel] += part * column[channel];
}

/// Adds the columns between `begin` and `end` that are in the block from `x` on.
static void add_columns(
    const uint32_t *block, size_t x, size_t count, double begin, double end, int channels, double *to) {
    size_t first = (size_t)begin, behind = behind_of(end), low = first < x ? x : first;
    size_t high = behind > x + count ? x + count : behind;
    const uint32_t *columns = block + (low - x) * (size_t)channels;
    switch (channels) {
    case 1: add_whole(columns, high - low, 1, to); break;
    case 3: add_whole(columns, high - low, 3, to); break;
    default: add_whole(columns, high - low, 4, to);
    }
    if (low == first) add_part(columns, (double)first - begin, channels, to);
    if (high == behind) add_part(block + (behind - 1 - x) * (size_t)channels, end - (double)behind, channels, to);
}

/// Makes a row of the picture, in `channels` channels, from the rows between `begin` and `end`.
static void reduce_row(
    const cplaceholder_rows *rows, double width, double begin, double end, int channels, uint32_t cells,
    uint8_t (*pixels)[4]) {
    double sums[MOST_SIDE][4] = {{0}}, area = width / cells;
    uint32_t block[BLOCK_PIXELS * 4], cell = 0, weight = 0;
    for (size_t x = 0; x < rows->width; x += BLOCK_PIXELS) {
        size_t count = rows->width - x < BLOCK_PIXELS ? rows->width - x : BLOCK_PIXELS;
        weight = sum_rows(rows, begin, end, x, count, channels, block);
        // A cell that continues in the next block is not finished here.
        for (; cell < cells; cell++) {
            double left = area * cell, right = cell + 1 < cells ? area * (cell + 1) : width;
            if (left >= (double)(x + count)) break;
            add_columns(block, x, count, left, right, channels, sums[cell]);
            if (behind_of(right) > x + count) break;
        }
    }
    area *= weight;
    for (uint32_t x = 0; x < cells; x++) {
        if (channels == 4) pixels[x][3] = rounded(sums[x][3] / area);
        for (int channel = 0; channel < (channels == 4 ? 3 : channels); channel++) {
            double divisor = channels < 4 ? area : sums[x][3];
            pixels[x][channel] = divisor > 0 ? rounded(sums[x][channel] / divisor) : 0;
        }
    }
}

/// Makes `channels` channels of the picture, from `first` on, of a source of the full size.
static void reduce(const cplaceholder_rows *rows, int channels, int first, cplaceholder_picture *picture) {
    bool is_reduced = picture->width < rows->width || picture->height < rows->height;
    double width = is_reduced ? picture->full_width : rows->width;
    double height = is_reduced ? picture->full_height : rows->height;
    for (uint32_t y = 0; y < picture->height; y++) {
        uint8_t pixels[MOST_SIDE][4];
        reduce_row(
            rows, width, height * y / picture->height, height * (y + 1) / picture->height, channels, picture->width,
            pixels);
        for (uint32_t x = 0; x < picture->width; x++) {
            memcpy(picture->pixels[y * picture->width + x] + first, pixels[x], (size_t)channels);
        }
    }
}

/// Fills in channels that the source lacks: grey for all colours, opaque alpha.
static void complete(cplaceholder_picture *picture, int channels) {
    for (uint32_t index = 0; channels < 4 && index < picture->width * picture->height; index++) {
        uint8_t *pixel = picture->pixels[index];
        if (channels == 1) pixel[1] = pixel[2] = pixel[0];
        pixel[3] = 255;
    }
}

// MARK: - Sizes

/// A reduced side, in proportion to the longer one.
static uint32_t side_of(double side, double longest, uint32_t pixels) {
    double reduced = round(REDUCED_SIDE * side / longest);
    if (reduced < SHORT_SIDE) reduced = fmin(round(CPLACEHOLDER_LONGEST_SIDE * side / longest), SHORT_SIDE);
    return reduced < 1 ? 1 : reduced < pixels ? (uint32_t)reduced : pixels;
}

static void begin(cplaceholder_picture *picture, uint32_t columns, uint32_t rows, double last_column, double last_row) {
    double width = columns - 1 + last_column, height = rows - 1 + last_row, longest = fmax(width, height);
    bool is_small = columns <= MOST_SIDE && rows <= MOST_SIDE;
    picture->width = is_small ? columns : side_of(width, longest, columns);
    picture->height = is_small ? rows : side_of(height, longest, rows);
    picture->full_width = width;
    picture->full_height = height;
}

void cplaceholder_reduce(const cplaceholder_rows *rows, cplaceholder_picture *picture) {
    begin(picture, rows->width, rows->height, 1, 1);
    int channels = channels_of(rows);
    reduce(rows, channels, 0, picture);
    complete(picture, channels);
}

void cplaceholder_reduce_planes(const cplaceholder_planes *planes, cplaceholder_picture *picture) {
    begin(picture, planes->width, planes->height, planes->last_column, planes->last_row);
    for (int plane = 0; plane < planes->count; plane++) {
        cplaceholder_rows rows = {
            .pixels = planes->samples + (size_t)plane * planes->width * planes->height, .stride = planes->width,
            .width = planes->width, .height = planes->height, .color_type = 0, .bit_depth = 8};
        reduce(&rows, 1, plane, picture);
    }
    complete(picture, planes->count);
}
