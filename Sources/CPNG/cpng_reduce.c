#include "cpng.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t *row_at(const cpng_image *image, uint32_t y) {
    return image->rows + (size_t)y * (image->row_bytes + 1) + 1;
}

/// Called before each row.
static bool is_interrupted(const cpng_image *image) {
    return cinterruption_after(image->interruption, image->row_bytes);
}

static int channels_of(const cpng_image *image) {
    static const int channels[7] = {1, 1, 3, 1, 2, 1, 4};
    return channels[image->color_type];
}

bool cpng_is_eight_bit(const cpng_image *image) {
    if (image->bit_depth != 16) return false;
    for (uint32_t y = 0; y < image->height; y++) {
        if (is_interrupted(image)) return false;
        const uint8_t *row = row_at(image, y);
        uint8_t difference = 0;
        for (size_t i = 0; i + 1 < image->row_bytes; i += 2) {
            difference |= (uint8_t)(row[i] ^ row[i + 1]);
        }
        if (difference != 0) return false;
    }
    return true;
}

/// Keeps the bytes of each group of `size` that have their bit set in `kept`. The output may be the
/// same memory, since it never gets ahead of the row. Inlined, so the usual cases have constants.
static inline __attribute__((always_inline)) uint8_t *keep_of_row(
    const uint8_t *row, uint8_t *output, size_t groups, size_t size, unsigned kept) {
    for (size_t group = 0; group < groups; group++, row += size) {
        for (size_t byte = 0; byte < size; byte++) {
            if (kept >> byte & 1) *output++ = row[byte];
        }
    }
    return output;
}

static void keep_bytes(cpng_image *image, size_t size, unsigned kept) {
    size_t groups = image->row_bytes / size;
    uint8_t *output = image->rows;
    for (uint32_t y = 0; y < image->height; y++) {
        if (is_interrupted(image)) break;
        const uint8_t *row = row_at(image, y);
        *output++ = 0;
        if (size == 4 && kept == 7) {
            output = keep_of_row(row, output, groups, 4, 7);
        } else if (size == 3 && kept == 1) {
            output = keep_of_row(row, output, groups, 3, 1);
        } else if (size == 2 && kept == 1) {
            output = keep_of_row(row, output, groups, 2, 1);
        } else if (size == 4 && kept == 1) {
            output = keep_of_row(row, output, groups, 4, 1);
        } else {
            output = keep_of_row(row, output, groups, size, kept);
        }
    }
    image->row_bytes = groups * (size_t)__builtin_popcount(kept);
}

void cpng_make_eight_bit(cpng_image *image) {
    keep_bytes(image, 2, 1);
    image->bit_depth = 8;
    image->filter_distance = channels_of(image);
}

bool cpng_is_opaque(const cpng_image *image) {
    if (image->bit_depth < 8 || (image->color_type != 4 && image->color_type != 6)) return false;
    size_t bytes = (size_t)image->bit_depth / 8, distance = (size_t)image->filter_distance;
    for (uint32_t y = 0; y < image->height; y++) {
        if (is_interrupted(image)) return false;
        const uint8_t *row = row_at(image, y);
        uint8_t least = 255;
        if (distance == 4 && bytes == 1) {
            uint32_t all = UINT32_MAX, pixel;
            for (size_t i = 0; i < image->row_bytes; i += 4) {
                memcpy(&pixel, row + i, sizeof pixel);
                all &= pixel;
            }
            uint8_t together[4];
            memcpy(together, &all, sizeof all);
            if (together[3] != 255) return false;
            continue;
        }
        for (size_t end = distance; end <= image->row_bytes; end += distance) {
            least &= row[end - 1];
            least &= row[end - bytes];
        }
        if (least != 255) return false;
    }
    return true;
}

bool cpng_is_grey(const cpng_image *image) {
    if (image->color_type != 2 && image->color_type != 6) return false;
    size_t bytes = (size_t)image->bit_depth / 8, distance = (size_t)image->filter_distance;
    for (uint32_t y = 0; y < image->height; y++) {
        if (is_interrupted(image)) return false;
        const uint8_t *row = row_at(image, y);
        for (size_t i = 0; i + distance <= image->row_bytes; i += distance) {
            for (size_t byte = i; byte < i + bytes; byte++) {
                if (row[byte] != row[byte + bytes] || row[byte] != row[byte + 2 * bytes]) {
                    return false;
                }
            }
        }
    }
    return true;
}

void cpng_drop_channels(cpng_image *image, bool drops_color, bool drops_alpha) {
    unsigned sample = image->bit_depth == 16 ? 3 : 1;
    unsigned bytes = (unsigned)image->bit_depth / 8, kept = 0;
    unsigned channels = (unsigned)channels_of(image);
    bool has_alpha = (image->color_type & 4) != 0;
    for (unsigned channel = 0; channel < channels; channel++) {
        bool is_alpha = has_alpha && channel == channels - 1;
        if (is_alpha ? drops_alpha : drops_color && channel > 0) continue;
        kept |= sample << (channel * bytes);
    }
    keep_bytes(image, channels * bytes, kept);
    if (drops_color) image->color_type &= ~2;
    if (drops_alpha) image->color_type &= ~4;
    image->filter_distance = channels_of(image) * (int)bytes;
}

// MARK: - Colours

/// A hash table of up to 256 colours, with four times as many slots.
typedef struct {
    uint32_t colors[1024];
    int16_t numbers[1024];
} color_table;

/// Returns the slot of the colour, or the free one where it belongs.
static inline unsigned slot_of(const color_table *table, uint32_t color) {
    unsigned slot = color * 0x9E3779B1u >> 22;
    while (table->numbers[slot] >= 0 && table->colors[slot] != color) slot = (slot + 1) % 1024;
    return slot;
}

static void insert(color_table *table, unsigned slot, uint32_t color, int number) {
    table->colors[slot] = color;
    table->numbers[slot] = (int16_t)number;
}

/// Returns the colour of a pixel of several 8-bit channels.
static inline uint32_t color_at(
    const uint8_t *pixel, int channels, const cpng_colours *meaning) {
    switch (channels) {
    case 2: return pixel[0] * 0x01010100u | pixel[1];
    case 4:
        return (uint32_t)pixel[0] << 24 | (uint32_t)pixel[1] << 16 | (uint32_t)pixel[2] << 8
            | pixel[3];
    default: {
        bool is_key = meaning->has_key && pixel[0] == meaning->key[0]
            && pixel[1] == meaning->key[1] && pixel[2] == meaning->key[2];
        return (uint32_t)pixel[0] << 24 | (uint32_t)pixel[1] << 16 | (uint32_t)pixel[2] << 8
            | (is_key ? 0 : 255);
    }
    }
}

/// Lists the colour of each value of a single sample. Returns the number of values with a colour.
static int sample_colors(
    const cpng_image *image, const cpng_colours *meaning, uint32_t *colors) {
    int values = 1 << image->bit_depth;
    if (image->color_type == 3) {
        int count = meaning->entries < values ? meaning->entries : values;
        memcpy(colors, meaning->palette, (size_t)count * sizeof *colors);
        return count;
    }
    for (int value = 0; value < values; value++) {
        uint32_t level = (uint32_t)(value * 255 / (values - 1));
        bool is_key = meaning->has_key && value == meaning->key[0];
        colors[value] = level * 0x01010100u | (is_key ? 0 : 255);
    }
    return values;
}

static inline unsigned sample_at(const uint8_t *row, uint32_t x, int depth) {
    size_t bit = (size_t)x * (unsigned)depth;
    return row[bit / 8] >> (8 - (unsigned)depth - bit % 8) & ((1u << depth) - 1);
}

static int single_colors(
    const cpng_image *image, const cpng_colours *meaning, int most, uint32_t *colors) {
    bool is_used[256] = {false};
    uint32_t all[256];
    int known = sample_colors(image, meaning, all), count = 0;
    for (uint32_t y = 0; y < image->height; y++) {
        if (is_interrupted(image)) return 0;
        // Once every possible value was seen, the other rows add nothing.
        if (y % 16 == 15 && known == 1 << image->bit_depth) {
            int used = 0;
            for (int value = 0; value < known; value++) used += is_used[value];
            if (used == known) break;
        }
        const uint8_t *row = row_at(image, y);
        if (image->bit_depth == 8) {
            for (uint32_t x = 0; x < image->width; x++) is_used[row[x]] = true;
        } else {
            for (uint32_t x = 0; x < image->width; x++) {
                is_used[sample_at(row, x, image->bit_depth)] = true;
            }
        }
    }
    color_table table;
    memset(table.numbers, -1, sizeof table.numbers);
    for (int value = 0; value < 256; value++) {
        if (!is_used[value]) continue;
        if (value >= known) return 0;
        unsigned slot = slot_of(&table, all[value]);
        if (table.numbers[slot] >= 0) continue;
        if (count == most) return 0;
        insert(&table, slot, all[value], count);
        colors[count++] = all[value];
    }
    return count;
}

int cpng_colors(
    const cpng_image *image, const cpng_colours *meaning, int most, uint32_t *colors) {
    int channels = channels_of(image), count = 0;
    if (image->bit_depth > 8) return 0;
    if (channels == 1) return single_colors(image, meaning, most, colors);
    color_table table;
    memset(table.numbers, -1, sizeof table.numbers);
    uint32_t last = 0;
    for (uint32_t y = 0; y < image->height; y++) {
        if (is_interrupted(image)) return 0;
        const uint8_t *pixel = row_at(image, y);
        for (uint32_t x = 0; x < image->width; x++, pixel += channels) {
            uint32_t color = color_at(pixel, channels, meaning);
            if (color == last && count > 0) continue;
            last = color;
            unsigned slot = slot_of(&table, color);
            if (table.numbers[slot] >= 0) continue;
            if (count == most) return 0;
            insert(&table, slot, color, count);
            colors[count++] = color;
        }
    }
    return count;
}

void cpng_make_indices(
    cpng_image *image, const cpng_colours *meaning, const uint32_t *colors, const uint8_t *values,
    int count, int bit_depth, int color_type) {
    color_table table;
    memset(table.numbers, -1, sizeof table.numbers);
    for (int number = 0; number < count; number++) {
        insert(&table, slot_of(&table, colors[number]), colors[number], values[number]);
    }
    int channels = channels_of(image), depth = image->bit_depth;
    uint8_t map[256] = {0};
    if (channels == 1) {
        uint32_t all[256];
        int known = sample_colors(image, meaning, all);
        for (int value = 0; value < known; value++) {
            int16_t mapped = table.numbers[slot_of(&table, all[value])];
            map[value] = mapped >= 0 ? (uint8_t)mapped : 0;
        }
    }
    size_t row_bytes = ((size_t)image->width * (unsigned)bit_depth + 7) / 8;
    uint8_t *output = image->rows;
    uint32_t last = 0;
    unsigned last_value = 0;
    for (uint32_t y = 0; y < image->height; y++) {
        if (is_interrupted(image)) break;
        const uint8_t *pixel = row_at(image, y), *row = pixel;
        *output++ = 0;
        if (channels == 1 && depth == 8 && bit_depth == 8) {
            for (uint32_t x = 0; x < image->width; x++) *output++ = map[row[x]];
            continue;
        }
        unsigned bits = 0, held = 0;
        for (uint32_t x = 0; x < image->width; x++, pixel += channels) {
            unsigned value;
            if (channels == 1) {
                value = map[depth == 8 ? *pixel : sample_at(row, x, depth)];
            } else {
                uint32_t color = color_at(pixel, channels, meaning);
                if (color != last || (x == 0 && y == 0)) {
                    int16_t known = table.numbers[slot_of(&table, color)];
                    last_value = known >= 0 ? (unsigned)known : 0;
                    last = color;
                }
                value = last_value;
            }
            bits = bits << bit_depth | value;
            held += (unsigned)bit_depth;
            if (held == 8) {
                *output++ = (uint8_t)bits;
                bits = held = 0;
            }
        }
        if (held > 0) *output++ = (uint8_t)(bits << (8 - held));
    }
    image->row_bytes = row_bytes;
    image->bit_depth = bit_depth;
    image->color_type = color_type;
    image->filter_distance = 1;
}

ccodec_status cpng_sample(
    const cpng_image *image, uint32_t bands, uint32_t band_rows, cpng_image *sample) {
    size_t stride = image->row_bytes + 1;
    bool is_whole = (uint64_t)bands * band_rows >= image->height;
    uint32_t count = is_whole ? image->height : bands * band_rows;
    *sample = *image;
    sample->height = count;
    sample->rows = malloc(stride * count);
    if (sample->rows == NULL) return CCODEC_OUT_OF_MEMORY;
    if (is_whole) {
        memcpy(sample->rows, image->rows, stride * count);
        return CCODEC_OK;
    }
    for (uint32_t band = 0; band < bands; band++) {
        // The middle of the part of the image that the band stands for.
        uint64_t middle = (uint64_t)image->height * (2 * band + 1) / (2 * bands);
        size_t first = (size_t)middle - band_rows / 2;
        memcpy(
            sample->rows + stride * band * band_rows, image->rows + stride * first,
            stride * band_rows);
    }
    return CCODEC_OK;
}
