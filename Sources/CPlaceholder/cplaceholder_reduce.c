#include "cplaceholder_picture.h"

#include <math.h>
#include <string.h>

#pragma STDC FP_CONTRACT OFF

// Of what the reference makes a hash of.
#define MOST_SIDE 100
// Columns are worked on in blocks whose sums stay in the first cache, and which need no memory of their own however
// wide a picture is.
#define BLOCK_PIXELS 512
// After so many rows of products of two bytes a sum of 32 bits might be full.
#define MOST_SUMMED_ROWS 65536
#define ENOUGH_ROWS 16

// Wider registers halve the time of these loops; arm64 has but one kind. The clones are chosen
// before a sanitizer is set up, which the thread sanitizer does not survive.
#if defined(__x86_64__) && !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

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

static void put_pixel(const double sums[4], double area, int channels, uint8_t *pixel) {
    if (channels == 4) {
        pixel[3] = rounded(sums[3] / area);
        for (int index = 0; index < 3; index++) {
            pixel[index] = pixel[3] == 0 ? 0 : rounded(sums[index] / sums[3]);
        }
        return;
    }
    for (int index = 0; index < 3; index++) {
        pixel[index] = rounded(sums[channels == 1 ? 0 : index] / area);
    }
    pixel[3] = 255;
}

/// Adds a block's columns, those of `begin` to `end` of the picture, to a cell; those at its ends by their weights.
static void add_columns(
    const block_sums *block, const interval *columns, size_t x, size_t begin, size_t end, int channels,
    double cell[4]) {
    for (int channel = 0; channel < channels; channel++) {
        const float *totals = block->totals + channel;
        float sum = 0;
        size_t column = begin;
        if (column == columns->first) sum += columns->first_weight * totals[(column++ - x) * (size_t)channels];
        size_t whole = end > columns->last ? columns->last : end;
        for (; column < whole; column++) sum += totals[(column - x) * (size_t)channels];
        if (column < end) sum += columns->last_weight * totals[(column - x) * (size_t)channels];
        cell[channel] += (double)sum;
    }
}

static void reduce_band(
    const cplaceholder_rows *rows, const interval *band, double width, int channels, cplaceholder_picture *picture,
    uint32_t y) {
    double cells[CPLACEHOLDER_REDUCED_SIDE][4] = {{0}};
    block_sums block;
    uint32_t cell = 0;
    double height = 0;
    interval columns = interval_of(0, picture->width, width, rows->width);
    for (size_t x = 0; x < rows->width; x += BLOCK_PIXELS) {
        size_t end = rows->width - x < BLOCK_PIXELS ? rows->width : x + BLOCK_PIXELS;
        height = sum_columns(rows, band, x, end - x, channels, &block);
        while (true) {
            size_t first = columns.first > x ? columns.first : x;
            size_t last = columns.last + 1 < end ? columns.last + 1 : end;
            add_columns(&block, &columns, x, first, last, channels, cells[cell]);
            // One that goes on in the next block, or the last.
            if (columns.last >= end || cell + 1 == picture->width) break;
            interval next = interval_of(cell + 1, picture->width, width, rows->width);
            if (next.first >= end) {
                columns = next;
                cell++;
                break;
            }
            columns = next;
            cell++;
        }
    }
    double area = width / picture->width * height;
    for (uint32_t x = 0; x < picture->width; x++) {
        put_pixel(cells[x], area, channels, picture->pixels + 4 * ((size_t)y * picture->width + x));
    }
}

static void copy(const cplaceholder_rows *rows, int channels, cplaceholder_picture *picture) {
    uint8_t *out = picture->pixels;
    uint8_t buffer[CPLACEHOLDER_MOST_SIDE * 8];
    for (uint32_t y = 0; y < rows->height; y++) {
        const uint8_t *part = part_of_row(rows, y, 0, rows->width, channels, buffer);
        for (uint32_t x = 0; x < rows->width; x++, part += channels, out += 4) {
            out[0] = part[0];
            out[1] = part[channels == 1 ? 0 : 1];
            out[2] = part[channels == 1 ? 0 : 2];
            out[3] = channels == 4 ? part[3] : 255;
        }
    }
}

/// A side in small, in proportion to the longer one, of so many pixels.
static uint32_t side_of(double side, double longest, uint32_t pixels) {
    double reduced = round(CPLACEHOLDER_REDUCED_SIDE * side / longest);
    if (reduced < CPLACEHOLDER_SHORT_SIDE) {
        reduced = fmin(round(MOST_SIDE * side / longest), CPLACEHOLDER_SHORT_SIDE);
    }
    return reduced < 1 ? 1 : reduced < pixels ? (uint32_t)reduced : pixels;
}

void cplaceholder_reduce(const cplaceholder_rows *rows, cplaceholder_picture *picture) {
    int channels = channels_of(rows);
    picture->full_width = rows->width - 1 + rows->last_column;
    picture->full_height = rows->height - 1 + rows->last_row;
    if (rows->width <= CPLACEHOLDER_MOST_SIDE && rows->height <= CPLACEHOLDER_MOST_SIDE) {
        picture->width = rows->width;
        picture->height = rows->height;
        copy(rows, channels, picture);
        return;
    }
    double width = picture->full_width, height = picture->full_height;
    picture->width = side_of(width, fmax(width, height), rows->width);
    picture->height = side_of(height, fmax(width, height), rows->height);
    for (uint32_t y = 0; y < picture->height; y++) {
        interval band = interval_of(y, picture->height, height, rows->height);
        reduce_band(rows, &band, width, channels, picture, y);
    }
}

void cplaceholder_turn(cplaceholder_picture *picture, int orientation) {
    if (orientation <= 1 || orientation > 8) return;
    cplaceholder_picture source = *picture;
    uint32_t width = source.width, height = source.height;
    if (orientation > 4) {
        picture->width = height;
        picture->height = width;
        picture->full_width = source.full_height;
        picture->full_height = source.full_width;
    }
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++) {
            uint32_t right = width - 1 - x, bottom = height - 1 - y, to_x = x, to_y = y;
            switch (orientation) {
            case 2: to_x = right; break;
            case 3: to_x = right; to_y = bottom; break;
            case 4: to_y = bottom; break;
            case 5: to_x = y; to_y = x; break;
            case 6: to_x = bottom; to_y = x; break;
            case 7: to_x = bottom; to_y = right; break;
            case 8: to_x = y; to_y = right; break;
            }
            memcpy(
                picture->pixels + 4 * ((size_t)to_y * picture->width + to_x),
                source.pixels + 4 * ((size_t)y * width + x), 4);
        }
    }
}

void cplaceholder_make(const cplaceholder_rows *rows, int orientation, cplaceholder *result) {
    cplaceholder_picture picture;
    memset(result, 0, sizeof *result);
    cplaceholder_reduce(rows, &picture);
    cplaceholder_turn(&picture, orientation);
    result->hash_length = (uint8_t)cplaceholder_hash_picture(
        picture.pixels, picture.width, picture.height, picture.full_width, picture.full_height,
        result->hash);
    result->has_colour = cplaceholder_colour(
        picture.pixels, picture.width, picture.height, result->colour);
}
