#include "cpng.h"

#include <stdlib.h>
#include <string.h>

/// Converts a row to 16-bit samples if the source has those, else to 8 bits scaled up, with the
/// key's alpha. The result equals libpng's `png_set_expand` and `png_set_scale_16` byte by byte.
typedef struct {
    const cpng_image *image;
    const cpng_colours *colours;
    /// Transparency is blended over it; NULL for plain pixels.
    const uint8_t *background;
    /// Samples a pixel in the result: grey or RGB, then alpha if wanted.
    int channels;
} conversion;

static const int channels_of[7] = {1, 0, 3, 1, 2, 0, 4};

/// Rounds like `png_set_scale_16`.
static unsigned scaled(unsigned value) { return (value * 255 + 32895) >> 16; }

static uint8_t blended(unsigned value, unsigned alpha, unsigned background) {
    return (uint8_t)((value * alpha + background * (255 - alpha) + 127) / 255);
}

/// A sample as stored.
static unsigned sample_at(const uint8_t *row, int depth, size_t index) {
    switch (depth) {
    case 16: return (unsigned)row[2 * index] << 8 | row[2 * index + 1];
    case 8: return row[index];
    default: {
        size_t bit = index * (size_t)depth;
        return row[bit / 8] >> (8 - depth - (int)(bit % 8)) & ((1u << depth) - 1);
    }
    }
}

static unsigned eight_bits(unsigned value, int depth) {
    switch (depth) {
    case 16: return scaled(value);
    case 8: return value;
    default: return value * (255 / ((1u << depth) - 1));
    }
}

/// Returns a pixel's red, green, blue and alpha, 8 bits each.
static void pixel_at(const conversion *how, const uint8_t *row, size_t x, unsigned pixel[4]) {
    int depth = how->image->bit_depth, type = how->image->color_type;
    if (type == 3) {
        uint32_t colour = how->colours->palette[sample_at(row, depth, x)];
        for (int channel = 0; channel < 4; channel++) {
            pixel[channel] = colour >> (24 - 8 * channel) & 255;
        }
        return;
    }
    int count = channels_of[type], colours = type & 2 ? 3 : 1;
    unsigned mask = (1u << depth) - 1;
    bool is_key = how->colours->has_key;
    for (int channel = 0; channel < count; channel++) {
        unsigned value = sample_at(row, depth, x * (size_t)count + (size_t)channel);
        if (channel < colours && value != (how->colours->key[channel] & mask)) is_key = false;
        pixel[channel < colours ? channel : 3] = eight_bits(value, depth);
    }
    if (colours == 1) pixel[1] = pixel[2] = pixel[0];
    if (count == colours) pixel[3] = is_key ? 0 : 255;
}

static void convert_row(const conversion *how, const uint8_t *row, uint8_t *output) {
    const uint8_t *background = how->background;
    int colours = how->channels < 3 ? 1 : 3;
    bool has_alpha = how->channels > colours;
    unsigned pixel[4];
    for (size_t x = 0; x < how->image->width; x++) {
        pixel_at(how, row, x, pixel);
        for (int channel = 0; channel < colours; channel++) {
            *output++ = background == NULL ? (uint8_t)pixel[channel]
                : blended(pixel[channel], pixel[3], background[channel]);
        }
        if (has_alpha) *output++ = (uint8_t)pixel[3];
    }
}

/// Blends and packs 8-bit pixels of 2 or 4 channels, the last being alpha.
static void blend_row(
    const uint8_t *row, size_t width, int channels, const uint8_t *background, uint8_t *output) {
    for (size_t x = 0; x < width; x++, row += channels) {
        unsigned alpha = row[channels - 1];
        for (int channel = 0; channel < channels - 1; channel++) {
            *output++ = blended(row[channel], alpha, background[channel]);
        }
    }
}

/// Converts all values of one sample of at most 8 bits: no more than the pixels of a row or two.
static void fill_table(const conversion *how, uint8_t table[256][4]) {
    cpng_image one = *how->image;
    conversion single = *how;
    single.image = &one;
    one.width = 1;
    for (unsigned value = 0; value < 1u << one.bit_depth; value++) {
        uint8_t row = (uint8_t)(value << (8 - one.bit_depth));
        convert_row(&single, &row, table[value]);
    }
}

static void convert_by_table(
    const conversion *how, uint8_t table[256][4], const uint8_t *row, uint8_t *output) {
    int depth = how->image->bit_depth;
    for (size_t x = 0; x < how->image->width; x++) {
        const uint8_t *entry = table[sample_at(row, depth, x)];
        for (int channel = 0; channel < how->channels; channel++) *output++ = entry[channel];
    }
}

/// Converts all rows to `rows`, with a spare byte each.
static ccodec_status convert(const conversion *how, uint8_t *rows) {
    const cpng_image *image = how->image;
    size_t row_bytes = (size_t)image->width * (size_t)how->channels;
    int channels = channels_of[image->color_type];
    bool is_by_table = channels == 1 && image->bit_depth <= 8;
    bool has_meaning = image->bit_depth == 8 && !how->colours->has_key && image->color_type != 3;
    bool is_blended = has_meaning && how->background != NULL && channels == how->channels + 1;
    bool is_same = has_meaning && channels == how->channels;
    uint8_t table[256][4];
    if (is_by_table) fill_table(how, table);
    for (uint32_t y = 0; y < image->height; y++) {
        if (cinterruption_after(image->interruption, row_bytes)) return CCODEC_INTERRUPTED;
        const uint8_t *row = image->rows + y * (image->row_bytes + 1) + 1;
        uint8_t *output = rows + y * (row_bytes + 1) + 1;
        if (is_same) {
            memcpy(output, row, row_bytes);
        } else if (is_blended) {
            blend_row(row, image->width, channels, how->background, output);
        } else if (is_by_table) {
            convert_by_table(how, table, row, output);
        } else {
            convert_row(how, row, output);
        }
    }
    return CCODEC_OK;
}

/// Converts to an image of its own.
static ccodec_status make(const conversion *how, cpng_image *made) {
    const cpng_image *image = how->image;
    size_t row_bytes = (size_t)image->width * (size_t)how->channels, total;
    if (__builtin_mul_overflow(row_bytes + 1, (size_t)image->height, &total)) return CCODEC_LIMIT;
    uint8_t *rows = malloc(total);
    if (rows == NULL) return CCODEC_OUT_OF_MEMORY;
    ccodec_status status = convert(how, rows);
    if (status != CCODEC_OK) {
        free(rows);
        return status;
    }
    *made = cpng_image_of(rows, image->width, image->height, how->channels, image->interruption);
    return CCODEC_OK;
}

ccodec_status cpng_make_opaque(
    const cpng_image *image, const cpng_colours *colours, const uint8_t background[3],
    cpng_image *opaque) {
    int type = image->color_type;
    bool has_alpha = (type & 4) != 0 || colours->has_key;
    bool is_grey_background = background[0] == background[1] && background[1] == background[2];
    bool is_grey = (type == 0 || type == 4) && (!has_alpha || is_grey_background);
    conversion how = {
        .image = image, .colours = colours, .background = background, .channels = is_grey ? 1 : 3};
    return make(&how, opaque);
}

ccodec_status cpng_make_plain(
    const cpng_image *image, const cpng_colours *colours, bool has_colour, bool has_alpha,
    cpng_image *plain) {
    bool is_grey = !has_colour && (image->color_type == 0 || image->color_type == 4);
    conversion how = {
        .image = image, .colours = colours, .channels = (is_grey ? 1 : 3) + (has_alpha ? 1 : 0)};
    return make(&how, plain);
}
