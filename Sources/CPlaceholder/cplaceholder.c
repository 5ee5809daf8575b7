#include "cplaceholder.h"

#include <math.h>
#include <string.h>

// No fused operations, so every processor gives the same bytes.
#pragma STDC FP_CONTRACT OFF

// Wider registers halve the time of loops over pixels; arm64 has only one kind. The clones are
// chosen before a sanitizer is set up, which the thread sanitizer does not survive.
#if defined(__x86_64__) && !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

enum {
    /// Pictures of at most this many pixels a side are taken as they are.
    MOST_SIDE = 48,
    /// The longer side of reduced pictures.
    REDUCED_SIDE = 32,
    /// A short side is in proportion to a longer one of PROPORTION pixels, up to SHORT_SIDE: its
    /// three cosines need three.
    PROPORTION = 100,
    SHORT_SIDE = 8,
    /// Columns are summed in blocks: their sums stay in the L1 cache.
    BLOCK_PIXELS = 512,
    /// About this many rows are read of many. Steps are odd, to meet both halves of alternating
    /// rows.
    ENOUGH_ROWS = 16,
    /// The weight of a whole row. 31 rows of 255 · 255 fit 32 bits.
    WHOLE_ROW = 64,
};

/// A small picture.
typedef struct {
    uint32_t width, height;
    /// The size of the original, since the small sides have its proportions only approximately.
    double full_width, full_height;
    /// Red, green, blue and straight alpha, row by row without gaps.
    uint8_t pixels[MOST_SIDE * MOST_SIDE][4];
} picture;

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
    if (depth == 8 && type != 3 && samples == channels && rows->plane_bytes == 0) return row + x * (size_t)channels;
    uint8_t *out = buffer;
    if (rows->plane_bytes > 0) {
        for (size_t pixel = x; pixel < x + count; pixel++, out += 3) {
            for (int plane = 0; plane < 3; plane++) out[plane] = row[rows->plane_bytes * (size_t)plane + pixel];
        }
        return buffer;
    }
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

/// Sums the columns of rows from `begin` to `end`; rows at the ends count in part. Returns the
/// total weight of the rows.
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

/// Makes a row of the picture from the rows between `begin` and `end`.
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
        pixels[x][3] = channels == 4 ? rounded(sums[x][3] / area) : 255;
        for (int channel = 0; channel < (channels == 4 ? 3 : channels); channel++) {
            double divisor = channels < 4 ? area : sums[x][3];
            pixels[x][channel] = divisor > 0 ? rounded(sums[x][channel] / divisor) : 0;
        }
        if (channels == 1) pixels[x][1] = pixels[x][2] = pixels[x][0];
    }
}

/// A reduced side, in proportion to the longer one.
static uint32_t side_of(double side, double longest, uint32_t pixels) {
    double reduced = round(REDUCED_SIDE * side / longest);
    if (reduced < SHORT_SIDE) reduced = fmin(round(PROPORTION * side / longest), SHORT_SIDE);
    return reduced < 1 ? 1 : reduced < pixels ? (uint32_t)reduced : pixels;
}

static void reduce(const cplaceholder_rows *rows, picture *result) {
    double width = rows->width - 1 + rows->last_column, height = rows->height - 1 + rows->last_row;
    double longest = fmax(width, height);
    bool is_small = rows->width <= MOST_SIDE && rows->height <= MOST_SIDE;
    result->width = is_small ? rows->width : side_of(width, longest, rows->width);
    result->height = is_small ? rows->height : side_of(height, longest, rows->height);
    result->full_width = width;
    result->full_height = height;
    if (result->width == rows->width && result->height == rows->height) {
        width = rows->width;
        height = rows->height;
    }
    int channels = channels_of(rows);
    for (uint32_t y = 0; y < result->height; y++) {
        reduce_row(
            rows, width, height * y / result->height, height * (y + 1) / result->height, channels, result->width,
            result->pixels + y * result->width);
    }
}

// MARK: - Orientation

/// Applies an EXIF orientation, 1 to 8.
static void turn(picture *turned, int orientation) {
    if (orientation <= 1 || orientation > 8) return;
    picture source = *turned;
    if (orientation > 4) {
        turned->width = source.height;
        turned->height = source.width;
        turned->full_width = source.full_height;
        turned->full_height = source.full_width;
    }
    bool is_from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    bool is_from_bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    for (uint32_t y = 0; y < turned->height; y++) {
        for (uint32_t x = 0; x < turned->width; x++) {
            uint32_t from_x = orientation > 4 ? y : x, from_y = orientation > 4 ? x : y;
            if (is_from_right) from_x = source.width - 1 - from_x;
            if (is_from_bottom) from_y = source.height - 1 - from_y;
            memcpy(turned->pixels[y * turned->width + x], source.pixels[from_y * source.width + from_x], 4);
        }
    }
}

// MARK: - ThumbHash

// The format's names: L is lightness, P yellow against blue, Q red against green, A alpha.
enum { L, P, Q, A, CHANNELS };

/// A channel's values by frequency; 7 are the most used.
enum { TERMS = 8 };
typedef float terms __attribute__((vector_size(TERMS * sizeof(float))));

/// cos(π/n · k · (x + ½)) for each x below n and each k.
static void make_cosines(terms *cosines, uint32_t n) {
    for (uint32_t x = 0; x < n; x++) {
        // Chebyshev's recurrence, exact to the last bits of a double in so few steps.
        double first = cos(M_PI / n * (x + 0.5)), before = 1, value = first;
        cosines[x][0] = 1;
        for (int k = 1; k < TERMS; k++) {
            cosines[x][k] = (float)value;
            double next = 2 * first * value - before;
            before = value;
            value = next;
        }
    }
}

/// Sums the channels of all pixels times cosines into `spectrum`, by channel and vertical
/// frequency. Transparent pixels show the mean colour.
FOR_EACH_PROCESSOR static void sum_products(
    const picture *small, const float mean[3], int channels, const terms *across, const terms *down,
    terms spectrum[CHANNELS][TERMS]) {
    memset(spectrum, 0, sizeof(terms[CHANNELS][TERMS]));
    const uint8_t *pixel = small->pixels[0];
    for (uint32_t y = 0; y < small->height; y++) {
        terms line[CHANNELS] = {{0}};
        for (uint32_t x = 0; x < small->width; x++, pixel += 4) {
            float alpha = (float)pixel[3] / 255, colour[3];
            for (int index = 0; index < 3; index++) {
                colour[index] = mean[index] * (1 - alpha) + alpha / 255 * (float)pixel[index];
            }
            line[L] += (colour[0] + colour[1] + colour[2]) / 3 * across[x];
            line[P] += ((colour[0] + colour[1]) / 2 - colour[2]) * across[x];
            line[Q] += (colour[0] - colour[1]) * across[x];
            line[A] += alpha * across[x];
        }
        for (int channel = 0; channel < channels; channel++) {
            for (int k = 0; k < TERMS; k++) spectrum[channel][k] += line[channel] * down[y][k];
        }
    }
}

typedef struct {
    float mean, scale;
    int count;
    /// 0 to 1, ½ for none; 0 if there is only the mean.
    float values[TERMS * TERMS];
} channel_terms;

// Smaller values are rounding noise of single precision. One 8-bit level in one of 48 by 48
// pixels is seven times as much, and the smallest scale in a hash is 1/63. The reference stretches
// noise to the whole range and writes its scale as 0, so the difference is invisible.
static const float noise = 1.0f / (1 << 22);

static channel_terms terms_of(const terms spectrum[TERMS], int nx, int ny, float pixels) {
    channel_terms result = {.mean = spectrum[0][0] / pixels};
    for (int cy = 0; cy < ny; cy++) {
        // The half with the low frequencies.
        for (int cx = cy > 0 ? 0 : 1; cx * ny < nx * (ny - cy); cx++) {
            float value = spectrum[cy][cx] / pixels;
            result.values[result.count++] = value;
            result.scale = fmaxf(result.scale, fabsf(value));
        }
    }
    if (result.scale < noise) result.scale = 0;
    for (int index = 0; index < result.count; index++) {
        result.values[index] = result.scale > 0 ? 0.5f + 0.5f / result.scale * result.values[index] : 0;
    }
    return result;
}

/// Rounds half up to a number of that many bits.
static uint32_t bits(float value, int count) {
    float most = (float)((1 << count) - 1);
    return value <= 0 ? 0 : value >= most ? (uint32_t)most : (uint32_t)(value + 0.5f);
}

static int terms_on(double limit, double side, double longest) {
    int count = (int)round(limit * side / longest);
    return count < 1 ? 1 : count;
}

/// Sets the mean colour, 0 to 1, weighted by alpha. Returns whether no pixel is transparent.
static bool find_mean(const picture *small, float mean[3]) {
    size_t count = (size_t)small->width * small->height;
    uint32_t alpha = 0, sums[3] = {0};
    for (size_t index = 0; index < count; index++) {
        const uint8_t *pixel = small->pixels[index];
        alpha += pixel[3];
        for (int channel = 0; channel < 3; channel++) sums[channel] += (uint32_t)pixel[channel] * pixel[3];
    }
    for (int channel = 0; channel < 3; channel++) {
        mean[channel] = alpha == 0 ? 0 : (float)((double)sums[channel] / (255.0 * (double)alpha));
    }
    return alpha == 255 * count;
}

/// Writes the ThumbHash, with the number of cosines that the full size's proportions give, and
/// returns its length.
static size_t make_hash(const picture *small, uint8_t hash[CPLACEHOLDER_MOST_HASH]) {
    float mean[3];
    bool is_opaque = find_mean(small, mean);
    int channels = is_opaque ? A : CHANNELS;
    terms across[MOST_SIDE], down[MOST_SIDE], spectrum[CHANNELS][TERMS];
    make_cosines(across, small->width);
    make_cosines(down, small->height);
    sum_products(small, mean, channels, across, down, spectrum);
    double width = small->full_width, height = small->full_height;
    double limit = is_opaque ? 7 : 5, longest = fmax(width, height);
    int lx = terms_on(limit, width, longest), ly = terms_on(limit, height, longest);
    const int counts[CHANNELS][2] = {{lx < 3 ? 3 : lx, ly < 3 ? 3 : ly}, {3, 3}, {3, 3}, {5, 5}};
    channel_terms of[CHANNELS];
    for (int channel = 0; channel < channels; channel++) {
        of[channel] = terms_of(
            spectrum[channel], counts[channel][0], counts[channel][1], (float)(small->width * small->height));
    }
    bool is_landscape = width > height;
    uint64_t head = bits(63 * of[L].mean, 6) | bits(31.5f + 31.5f * of[P].mean, 6) << 6
        | bits(31.5f + 31.5f * of[Q].mean, 6) << 12 | bits(31 * of[L].scale, 5) << 18 | (is_opaque ? 0u : 1u) << 23;
    head |= (uint64_t)((uint32_t)(is_landscape ? ly : lx) | bits(63 * of[P].scale, 6) << 3
        | bits(63 * of[Q].scale, 6) << 9 | (is_landscape ? 1u : 0u) << 15) << 24;
    size_t half_bytes = 0;
    for (; half_bytes < 2 * CPLACEHOLDER_LEAST_HASH; half_bytes += 2) {
        hash[half_bytes / 2] = (uint8_t)(head >> 4 * half_bytes);
    }
    if (!is_opaque) {
        hash[half_bytes / 2] = (uint8_t)(bits(15 * of[A].mean, 4) | bits(15 * of[A].scale, 4) << 4);
        half_bytes += 2;
    }
    // The low half of each byte first.
    for (int channel = 0; channel < channels; channel++) {
        for (int index = 0; index < of[channel].count; index++, half_bytes++) {
            uint8_t value = (uint8_t)bits(15 * of[channel].values[index], 4);
            if (half_bytes % 2 == 0) {
                hash[half_bytes / 2] = value;
            } else {
                hash[half_bytes / 2] |= (uint8_t)(value << 4);
            }
        }
    }
    return (half_bytes + 1) / 2;
}

// MARK: - Dominant colour

// Colours are counted by 16 levels a channel; a cube spans two levels of each. A side with more
// than MANY_PIXELS is read at every second pixel.
enum { LEVELS = 16, COLOURS = LEVELS * LEVELS * LEVELS, MANY_PIXELS = 24 };

/// Sums `weights` over each cube, in place: pairs of blue, then of green, then of red levels.
FOR_EACH_PROCESSOR static void sum_cubes(uint16_t *weights) {
    for (int distance = 1; distance < COLOURS; distance *= LEVELS) {
        for (int index = 0; index + distance < COLOURS; index++) weights[index] += weights[index + distance];
    }
}

/// Finds the mean, by alpha, of the pixels in the heaviest cube of RGB space. Cubes have sides of
/// 32 levels and begin at multiples of 16; pixels weigh the sixteenths of their alpha. On a tie the
/// cube nearest to black wins, by red, green, blue. Returns false if all pixels are transparent.
static bool find_colour(const picture *small, uint8_t colour[3]) {
    // At most 24 pixels a side of weight 16 each, so a sum fits 16 bits.
    uint16_t weights[COLOURS] = {0};
    uint32_t across = small->width > MANY_PIXELS ? 2 : 1, down = small->height > MANY_PIXELS ? 2 : 1;
    for (uint32_t y = 0; y < small->height; y += down) {
        for (uint32_t x = 0; x < small->width; x += across) {
            const uint8_t *pixel = small->pixels[y * small->width + x];
            // Sixteenths, rounded up: every visible pixel counts.
            weights[(pixel[0] >> 4) << 8 | (pixel[1] >> 4) << 4 | pixel[2] >> 4] += (uint16_t)((pixel[3] + 15) / 16);
        }
    }
    sum_cubes(weights);
    int best = 0;
    for (int index = 0; index < COLOURS; index++) {
        bool is_cube = index % LEVELS < LEVELS - 1 && index / LEVELS % LEVELS < LEVELS - 1
            && index / LEVELS / LEVELS < LEVELS - 1;
        if (is_cube && weights[index] > weights[best]) best = index;
    }
    if (weights[best] == 0) return false;
    uint32_t sums[3] = {0}, alpha = 0;
    for (uint32_t y = 0; y < small->height; y += down) {
        for (uint32_t x = 0; x < small->width; x += across) {
            const uint8_t *pixel = small->pixels[y * small->width + x];
            bool is_in = true;
            for (int channel = 0; channel < 3; channel++) {
                is_in &= (unsigned)((pixel[channel] >> 4) - (best >> (8 - 4 * channel) & 15)) < 2;
            }
            if (!is_in) continue;
            for (int channel = 0; channel < 3; channel++) sums[channel] += (uint32_t)pixel[channel] * pixel[3];
            alpha += pixel[3];
        }
    }
    for (int channel = 0; channel < 3; channel++) colour[channel] = (uint8_t)((sums[channel] + alpha / 2) / alpha);
    return true;
}

void cplaceholder_make(const cplaceholder_rows *rows, int orientation, cplaceholder *result) {
    picture small;
    reduce(rows, &small);
    turn(&small, orientation);
    memset(result, 0, sizeof *result);
    result->hash_length = (uint8_t)make_hash(&small, result->hash);
    result->has_colour = find_colour(&small, result->colour);
}
