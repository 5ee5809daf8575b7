#include "cplaceholder_picture.h"

#include <math.h>
#include <string.h>

#pragma STDC FP_CONTRACT OFF

// Columns are worked on in blocks whose sums stay in the first cache, and which need no memory of their own however
// wide a picture is.
#define BLOCK_PIXELS 512
// After so many rows of products of two bytes a sum of 32 bits might be full.
#define MOST_SUMMED_ROWS 65536
#define ENOUGH_ROWS 16

// MARK: - Rows to samples of 8 bits

static bool has_alpha(const cplaceholder_rows *rows) {
    if (rows->color_type & 4) return true;
    if (rows->color_type != 3) return rows->key != NULL;
    for (int index = 0; index < 256; index++) {
        if ((rows->palette[index] & 255) != 255) return true;
    }
    return false;
}

/// 1 grey, 3 RGB, 4 RGB and alpha.
static int channels_of(const cplaceholder_rows *rows) {
    if (has_alpha(rows)) return 4;
    return rows->color_type == 0 ? 1 : 3;
}

/// The sample at a position of a row, of whatever depth.
static unsigned sample(const uint8_t *row, int depth, size_t position) {
    switch (depth) {
    case 16: return (unsigned)row[2 * position] << 8 | row[2 * position + 1];
    case 8: return row[position];
    default: {
        size_t bit = position * (size_t)depth;
        return row[bit / 8] >> (8 - depth - (int)(bit % 8)) & ((1u << depth) - 1);
    }
    }
}

/// Samples as they are up to 8 bits; of 16 the upper byte.
static void unpack(const uint8_t *row, int depth, size_t position, size_t count, uint8_t *restrict out) {
    switch (depth) {
    case 16:
        for (size_t index = 0; index < count; index++) out[index] = row[2 * (position + index)];
        return;
    case 8: memcpy(out, row + position, count); return;
    default:
        for (size_t index = 0; index < count; index++) out[index] = (uint8_t)sample(row, depth, position + index);
    }
}

static void expand_indices(
    const uint32_t *palette, const uint8_t *indices, size_t count, int channels, uint8_t *out) {
    for (size_t index = 0; index < count; index++, out += channels) {
        uint32_t colour = palette[indices[index]];
        out[0] = (uint8_t)(colour >> 24);
        out[1] = (uint8_t)(colour >> 16);
        out[2] = (uint8_t)(colour >> 8);
        if (channels == 4) out[3] = (uint8_t)colour;
    }
}

static void expand_grey(const uint8_t *samples, size_t count, bool has_alpha, uint8_t *out) {
    for (size_t index = 0; index < count; index++, out += 4) {
        out[0] = out[1] = out[2] = samples[has_alpha ? 2 * index : index];
        out[3] = has_alpha ? samples[2 * index + 1] : 255;
    }
}

static void add_alpha(const uint8_t *samples, size_t count, uint8_t *out) {
    for (size_t index = 0; index < count; index++, out += 4, samples += 3) {
        out[0] = samples[0];
        out[1] = samples[1];
        out[2] = samples[2];
        out[3] = 255;
    }
}

/// Makes those pixels transparent that have the colour of the key, whose bits of the depth count.
static void apply_key(const cplaceholder_rows *rows, const uint8_t *row, size_t x, size_t count, uint8_t *out) {
    size_t colours = rows->color_type == 0 ? 1 : 3;
    for (size_t pixel = x; pixel < x + count; pixel++, out += 4) {
        bool is_key = true;
        for (size_t index = 0; index < colours; index++) {
            is_key &= sample(row, rows->bit_depth, pixel * colours + index) == rows->key[index];
        }
        if (is_key) out[3] = 0;
    }
}

/// A part of a row: `channels` bytes a pixel, in the row itself where they are there, else in `buffer`, which has
/// room for twice as much.
static const uint8_t *part_of_row(
    const cplaceholder_rows *rows, size_t y, size_t x, size_t count, int channels, uint8_t *buffer) {
    const uint8_t *row = rows->pixels + y * rows->stride;
    size_t samples = rows->color_type == 2 ? 3 : rows->color_type == 4 ? 2 : rows->color_type == 6 ? 4 : 1;
    bool is_final = samples == (size_t)channels && rows->color_type != 3;
    if (is_final && rows->bit_depth == 8) return row + x * samples;
    uint8_t *unpacked = is_final ? buffer : buffer + 4 * count;
    unpack(row, rows->bit_depth, x * samples, count * samples, unpacked);
    if (rows->color_type == 3) {
        expand_indices(rows->palette, unpacked, count, channels, buffer);
        return buffer;
    }
    for (size_t index = 0; rows->bit_depth < 8 && index < count; index++) {
        unpacked[index] = (uint8_t)(unpacked[index] * 255 / ((1 << rows->bit_depth) - 1));
    }
    if (is_final) return buffer;
    if (samples == 3) {
        add_alpha(unpacked, count, buffer);
    } else {
        expand_grey(unpacked, count, samples == 2, buffer);
    }
    if (rows->key != NULL) apply_key(rows, row, x, count, buffer);
    return buffer;
}

// MARK: - Sums

FOR_EACH_PROCESSOR static void add_samples(uint32_t *restrict sums, const uint8_t *restrict part, size_t count) {
    for (size_t index = 0; index < count; index++) sums[index] += part[index];
}

/// Colours times alpha, and alpha.
FOR_EACH_PROCESSOR static void add_products(uint32_t *restrict sums, const uint8_t *restrict part, size_t pixels) {
    for (size_t x = 0; x < pixels; x++) {
        uint32_t alpha = part[4 * x + 3];
        sums[4 * x] += part[4 * x] * alpha;
        sums[4 * x + 1] += part[4 * x + 1] * alpha;
        sums[4 * x + 2] += part[4 * x + 2] * alpha;
        sums[4 * x + 3] += alpha;
    }
}

/// A block of columns, over the rows of one row of the result.
typedef struct {
    uint32_t sums[BLOCK_PIXELS * 4];
    float totals[BLOCK_PIXELS * 4];
    uint8_t expanded[BLOCK_PIXELS * 8];
} block_sums;

static void add_part(block_sums *block, const uint8_t *part, size_t pixels, int channels) {
    if (channels == 4) {
        add_products(block->sums, part, pixels);
    } else {
        add_samples(block->sums, part, pixels * (size_t)channels);
    }
}

/// Moves sums into totals, by a weight.
static void total_up(block_sums *block, size_t samples, float weight) {
    for (size_t index = 0; index < samples; index++) {
        block->totals[index] += weight * (float)block->sums[index];
    }
    memset(block->sums, 0, samples * sizeof *block->sums);
}

/// An interval of an axis: the pixels that it begins and ends in, and the weights of those two.
typedef struct {
    size_t first, last;
    float first_weight, last_weight;
} interval;

static interval interval_of(uint32_t index, uint32_t parts, double length, uint32_t pixels) {
    double begin = length * index / parts, end = length * (index + 1) / parts;
    interval result;
    result.first = (size_t)begin;
    result.last = (size_t)ceil(end) - 1;
    if (result.last >= pixels) result.last = pixels - 1;
    if (result.first > result.last) result.first = result.last;
    result.first_weight = (float)((double)(result.first + 1) - begin);
    result.last_weight = (float)(end - (double)result.last);
    if (result.first == result.last) result.first_weight = result.last_weight = (float)(end - begin);
    return result;
}

static float weight_in(const interval *in, size_t position) {
    if (position == in->first) return in->first_weight;
    return position == in->last ? in->last_weight : 1;
}

/// Every so many rows of a band are summed: of many rows some 16 say as much, and an odd step meets both halves of
/// what alternates.
static size_t step_in(const interval *band) {
    size_t rows = band->last - band->first + 1;
    return rows < 2 * ENOUGH_ROWS ? 1 : (rows / ENOUGH_ROWS) | 1;
}

/// Returns the rows that were summed, by their weights.
static double sum_columns(
    const cplaceholder_rows *rows, const interval *band, size_t x, size_t pixels, int channels, block_sums *block) {
    size_t samples = pixels * (size_t)channels, summed = 0, step = step_in(band);
    double height = 0;
    memset(block->sums, 0, samples * sizeof *block->sums);
    memset(block->totals, 0, samples * sizeof *block->totals);
    for (size_t y = band->first + step / 2; y <= band->last; y += step) {
        float weight = step > 1 ? 1 : weight_in(band, y);
        height += (double)weight;
        if (weight < 1 && summed > 0) {
            total_up(block, samples, 1);
            summed = 0;
        }
        add_part(block, part_of_row(rows, y, x, pixels, channels, block->expanded), pixels, channels);
        summed++;
        if (weight < 1 || summed == MOST_SUMMED_ROWS) {
            total_up(block, samples, weight);
            summed = 0;
        }
    }
    if (summed > 0) total_up(block, samples, 1);
    return height;
}

// MARK: - The picture in small

static uint8_t rounded(double value) {
    return value >= 255 ? 255 : value <= 0 ? 0 : (uint8_t)(value + 0.5);
}

/// Where the samples of a row in small go: a plane for each channel.
typedef struct {
    uint8_t *planes[4];
} small_row;

static small_row row_of(cplaceholder_picture *picture, uint32_t y) {
    small_row row;
    for (int plane = 0; plane < 4; plane++) row.planes[plane] = picture->planes[plane] + (size_t)y * picture->stride;
    return row;
}

static void put_pixel(const double sums[4], double area, int channels, const small_row *row, uint32_t x) {
    if (channels < 4) {
        for (int index = 0; index < channels; index++) row->planes[index][x] = rounded(sums[index] / area);
        return;
    }
    uint8_t alpha = rounded(sums[3] / area);
    row->planes[3][x] = alpha;
    for (int index = 0; index < 3; index++) {
        row->planes[index][x] = alpha == 0 ? 0 : rounded(sums[index] / sums[3]);
    }
}

static inline void add_column(float sums[4], const float *totals, int channels, float weight) {
    for (int channel = 0; channel < channels; channel++) sums[channel] += weight * totals[channel];
}

static inline __attribute__((always_inline)) void add_columns_of(
    const float *totals, const interval *columns, size_t x, size_t begin, size_t end, int channels, double cell[4]) {
    float sums[4] = {0};
    size_t column = begin, whole = end > columns->last ? columns->last : end;
    totals += (begin - x) * (size_t)channels;
    if (column == columns->first) {
        add_column(sums, totals, channels, columns->first_weight);
        column++;
        totals += channels;
    }
    // The sums of the channels side by side: each waits for the one before.
    for (; column < whole; column++, totals += channels) add_column(sums, totals, channels, 1);
    if (column < end) add_column(sums, totals, channels, columns->last_weight);
    for (int channel = 0; channel < channels; channel++) cell[channel] += (double)sums[channel];
}

/// Adds a block's columns, those of `begin` to `end` of the picture, to a cell; those at its ends by their weights.
static void add_columns(
    const block_sums *block, const interval *columns, size_t x, size_t begin, size_t end, int channels,
    double cell[4]) {
    switch (channels) {
    case 1: add_columns_of(block->totals, columns, x, begin, end, 1, cell); break;
    case 3: add_columns_of(block->totals, columns, x, begin, end, 3, cell); break;
    default: add_columns_of(block->totals, columns, x, begin, end, 4, cell);
    }
}

static void reduce_band(
    const cplaceholder_rows *rows, const interval *band, double width, int channels, uint32_t small_width,
    const small_row *row) {
    double cells[CPLACEHOLDER_REDUCED_SIDE][4] = {{0}};
    block_sums block;
    uint32_t cell = 0;
    double height = 0;
    interval columns = interval_of(0, small_width, width, rows->width);
    for (size_t x = 0; x < rows->width; x += BLOCK_PIXELS) {
        size_t end = rows->width - x < BLOCK_PIXELS ? rows->width : x + BLOCK_PIXELS;
        height = sum_columns(rows, band, x, end - x, channels, &block);
        while (true) {
            size_t first = columns.first > x ? columns.first : x;
            size_t last = columns.last + 1 < end ? columns.last + 1 : end;
            add_columns(&block, &columns, x, first, last, channels, cells[cell]);
            // One that goes on in the next block, or the last.
            if (columns.last >= end || cell + 1 == small_width) break;
            interval next = interval_of(cell + 1, small_width, width, rows->width);
            if (next.first >= end) {
                columns = next;
                cell++;
                break;
            }
            columns = next;
            cell++;
        }
    }
    double area = width / small_width * height;
    for (uint32_t x = 0; x < small_width; x++) put_pixel(cells[x], area, channels, row, x);
}

static void copy(const cplaceholder_rows *rows, int channels, cplaceholder_picture *picture) {
    uint8_t buffer[CPLACEHOLDER_MOST_SIDE * 8];
    for (uint32_t y = 0; y < rows->height; y++) {
        const uint8_t *part = part_of_row(rows, y, 0, rows->width, channels, buffer);
        small_row row = row_of(picture, y);
        for (uint32_t x = 0; x < rows->width; x++, part += channels) {
            for (int index = 0; index < channels; index++) row.planes[index][x] = part[index];
        }
    }
}

/// Grey has the same in all planes, and what has no alpha is opaque.
static void complete(cplaceholder_picture *picture, int channels) {
    for (uint32_t y = 0; y < picture->height; y++) {
        small_row row = row_of(picture, y);
        for (int plane = channels; plane < 3; plane++) memcpy(row.planes[plane], row.planes[0], picture->width);
        if (channels < 4) memset(row.planes[3], 255, picture->width);
        for (uint32_t x = 0; channels == 4 && x < picture->width; x++) {
            if (row.planes[3][x] != 255) picture->is_opaque = false;
        }
    }
}

/// A side in small, in proportion to the longer one, of so many pixels.
static uint32_t side_of(double side, double longest, uint32_t pixels) {
    double reduced = round(CPLACEHOLDER_REDUCED_SIDE * side / longest);
    if (reduced < CPLACEHOLDER_SHORT_SIDE) {
        reduced = fmin(round(CPLACEHOLDER_LONGEST_SIDE * side / longest), CPLACEHOLDER_SHORT_SIDE);
    }
    return reduced < 1 ? 1 : reduced < pixels ? (uint32_t)reduced : pixels;
}

/// Sets the sizes of a picture by that of its source.
///
/// - Returns: whether it is taken as it is.
static bool begin(
    cplaceholder_picture *picture, uint32_t columns, uint32_t rows, double last_column, double last_row) {
    double width = columns - 1 + last_column, height = rows - 1 + last_row;
    bool is_small = columns <= CPLACEHOLDER_MOST_SIDE && rows <= CPLACEHOLDER_MOST_SIDE;
    if (is_small) {
        cplaceholder_begin(picture, columns, rows);
    } else {
        cplaceholder_begin(
            picture, side_of(width, fmax(width, height), columns), side_of(height, fmax(width, height), rows));
    }
    picture->full_width = width;
    picture->full_height = height;
    return is_small;
}

void cplaceholder_reduce(const cplaceholder_rows *rows, cplaceholder_picture *picture) {
    int channels = channels_of(rows);
    if (begin(picture, rows->width, rows->height, 1, 1)) {
        copy(rows, channels, picture);
    } else {
        for (uint32_t y = 0; y < picture->height; y++) {
            interval band = interval_of(y, picture->height, picture->full_height, rows->height);
            small_row row = row_of(picture, y);
            reduce_band(rows, &band, picture->full_width, channels, picture->width, &row);
        }
    }
    complete(picture, channels);
}

void cplaceholder_reduce_planes(const cplaceholder_planes *planes, cplaceholder_picture *picture) {
    bool is_small = begin(picture, planes->width, planes->height, planes->last_column, planes->last_row);
    for (int plane = 0; plane < planes->count; plane++) {
        cplaceholder_rows rows = {
            .pixels = planes->samples + (size_t)plane * planes->width * planes->height, .stride = planes->width,
            .width = planes->width, .height = planes->height, .color_type = 0, .bit_depth = 8};
        for (uint32_t y = 0; y < picture->height; y++) {
            small_row row = {{picture->planes[plane] + (size_t)y * picture->stride}};
            if (is_small) {
                memcpy(row.planes[0], rows.pixels + y * rows.stride, rows.width);
                continue;
            }
            interval band = interval_of(y, picture->height, picture->full_height, rows.height);
            reduce_band(&rows, &band, picture->full_width, 1, picture->width, &row);
        }
    }
    complete(picture, planes->count);
}
