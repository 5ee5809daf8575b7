#include "cjpeg_preview.h"

#include <stdlib.h>
#include <string.h>

// A block of coefficients says what the picture is at 1/8 of its size by its first one, and at 2/8 and 4/8 by the
// first four and sixteen, of which the inverse transform of as many points makes samples, as in libjpeg's own
// reduced sizes (jidctred.c).

// Where the longer or the shorter side has fewer samples, the picture is noted larger, as far as 4/8.
#define ENOUGH_SAMPLES 16
#define ENOUGH_ACROSS 8
// Of a large picture not every block is looked at: each is in a cache line of its own, and so many a side are twice
// as many as are left in the end.
#define MOST_BLOCKS 64
// Pictures of fewer blocks a side are noted in full: half of them is less than ThumbHash's seven cosines take.
#define FEW_BLOCKS 2

bool cjpeg_wants_preview(const cjpeg_session *s) {
    const cjpeg_preview *preview = s->limits != NULL ? s->limits->preview : NULL;
    if (preview == NULL || preview->pixels != NULL) return false;
    switch (s->decompress.jpeg_color_space) {
    case JCS_GRAYSCALE:
    case JCS_YCbCr:
    case JCS_RGB: return true;
    // Of four inks there is no colour without a guess at the printer's.
    default: return false;
    }
}

unsigned cjpeg_preview_eighths(const cjpeg_session *s) {
    j_decompress_ptr cinfo = (j_decompress_ptr)&s->decompress;
    JDIMENSION columns = (cinfo->image_width + DCTSIZE - 1) / DCTSIZE;
    JDIMENSION rows = (cinfo->image_height + DCTSIZE - 1) / DCTSIZE;
    JDIMENSION longer = columns > rows ? columns : rows, shorter = columns > rows ? rows : columns;
    if (longer <= FEW_BLOCKS) return DCTSIZE;
    unsigned eighths = 1;
    while (eighths < 4 && (longer * eighths < ENOUGH_SAMPLES || shorter * eighths < ENOUGH_ACROSS)) eighths *= 2;
    return eighths;
}

static uint32_t reduced(uint32_t side, unsigned eighths) {
    return (uint32_t)(((uint64_t)side * eighths + DCTSIZE - 1) / DCTSIZE);
}

uint8_t *cjpeg_begin_preview(cjpeg_session *s, uint32_t width, uint32_t height, int channels) {
    cjpeg_preview *preview = s->limits->preview;
    preview->pixels = malloc((size_t)width * height * (size_t)channels);
    if (preview->pixels == NULL) cjpeg_fail(s, CJPEG_OUT_OF_MEMORY, "no memory for a small picture");
    preview->width = width;
    preview->height = height;
    preview->channels = channels;
    double part = cjpeg_preview_eighths(s) / (double)DCTSIZE;
    preview->last_column = s->decompress.image_width * part - (width - 1);
    preview->last_row = s->decompress.image_height * part - (height - 1);
    return preview->pixels;
}

/// cos((2x + 1) u π / 2n) · c(u) / 2, by size: those of ITU-T T.81, A.3.3, for fewer points.
static const float basis_of_2[2][2] = {{0.35355339f, 0.35355339f}, {0.35355339f, -0.35355339f}};
static const float basis_of_4[4][4] = {
    {0.35355339f, 0.46193977f, 0.35355339f, 0.19134172f},
    {0.35355339f, 0.19134172f, -0.35355339f, -0.46193977f},
    {0.35355339f, -0.19134172f, -0.35355339f, 0.46193977f},
    {0.35355339f, -0.46193977f, 0.35355339f, -0.19134172f},
};

static const float basis_of_8[8][8] = {
    {0.35355339f, 0.49039264f, 0.46193977f, 0.41573481f, 0.35355339f, 0.27778512f, 0.19134172f, 0.09754516f},
    {0.35355339f, 0.41573481f, 0.19134172f, -0.09754516f, -0.35355339f, -0.49039264f, -0.46193977f, -0.27778512f},
    {0.35355339f, 0.27778512f, -0.19134172f, -0.49039264f, -0.35355339f, 0.09754516f, 0.46193977f, 0.41573481f},
    {0.35355339f, 0.09754516f, -0.46193977f, -0.27778512f, 0.35355339f, 0.41573481f, -0.19134172f, -0.49039264f},
    {0.35355339f, -0.09754516f, -0.46193977f, 0.27778512f, 0.35355339f, -0.41573481f, -0.19134172f, 0.49039264f},
    {0.35355339f, -0.27778512f, -0.19134172f, 0.49039264f, -0.35355339f, -0.09754516f, 0.46193977f, -0.41573481f},
    {0.35355339f, -0.41573481f, 0.19134172f, 0.09754516f, -0.35355339f, 0.49039264f, -0.46193977f, 0.27778512f},
    {0.35355339f, -0.49039264f, 0.46193977f, -0.41573481f, 0.35355339f, -0.27778512f, 0.19134172f, -0.09754516f},
};

static const float *basis_of(int n) {
    switch (n) {
    case 2: return *basis_of_2;
    case 4: return *basis_of_4;
    default: return *basis_of_8;
    }
}

static uint8_t clamped(float value) {
    return value <= 0 ? 0 : value >= 255 ? 255 : (uint8_t)(value + 0.5f);
}

/// Samples of a block, n by n, into every third, or every, byte of a row.
static void transform(
    const JCOEF *block, const UINT16 *steps, int n, const float *basis, uint8_t *out, size_t stride, size_t distance,
    int columns, int rows) {
    float half[DCTSIZE][DCTSIZE];
    for (int v = 0; v < n; v++) {
        for (int x = 0; x < n; x++) {
            float sum = 0;
            for (int u = 0; u < n; u++) {
                sum += (float)(block[v * DCTSIZE + u] * steps[v * DCTSIZE + u]) * basis[x * n + u];
            }
            half[v][x] = sum;
        }
    }
    for (int y = 0; y < rows; y++) {
        for (int x = 0; x < columns; x++) {
            float sum = 128;
            for (int v = 0; v < n; v++) sum += half[v][x] * basis[y * n + v];
            out[(size_t)y * stride + (size_t)x * distance] = clamped(sum);
        }
    }
}

static int at_most(int limit, size_t value) { return value < (size_t)limit ? (int)value : limit; }

/// A component's samples, `width` by `height` of them, with so many bytes from one to the next.
static void read_component(
    cjpeg_session *s, jvirt_barray_ptr coefficients, const jpeg_component_info *component, int n, uint8_t *out,
    size_t distance, size_t width, size_t height) {
    j_decompress_ptr cinfo = &s->decompress;
    if (component->quant_table == NULL) cjpeg_fail(s, CJPEG_CORRUPT, "no quantisation table");
    const UINT16 *steps = component->quant_table->quantval;
    const float *basis = basis_of(n);
    JDIMENSION step = (JDIMENSION)component->v_samp_factor;
    for (JDIMENSION row = 0; row < component->height_in_blocks; row++) {
        size_t y = (size_t)row * (size_t)n;
        if (y >= height) return;
        JBLOCKARRAY blocks = cinfo->mem->access_virt_barray(
            (j_common_ptr)cinfo, coefficients, row - row % step, step, FALSE);
        JBLOCKROW line = blocks[row % step];
        uint8_t *target = out + y * width * distance;
        for (JDIMENSION column = 0; column < component->width_in_blocks; column++) {
            size_t x = (size_t)column * (size_t)n;
            if (x >= width) break;
            transform(
                line[column], steps, n, basis, target + x * distance, width * distance, distance,
                at_most(n, width - x), at_most(n, height - y));
        }
        cjpeg_check_interruption(s, (uint64_t)component->width_in_blocks * DCTSIZE);
    }
}

/// JFIF's formula (ITU-T T.871), by 65 536ths, in place.
static void convert_to_rgb(uint8_t *pixels, size_t count) {
    for (size_t index = 0; index < count; index++, pixels += 3) {
        int y = pixels[0] * 65536 + 32768, cb = pixels[1] - 128, cr = pixels[2] - 128;
        int values[3] = {y + 91881 * cr, y - 22554 * cb - 46802 * cr, y + 116130 * cb};
        for (int channel = 0; channel < 3; channel++) {
            int value = values[channel] >> 16;
            pixels[channel] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
        }
    }
}

/// Of a component with fewer samples each stands for several, from the last to the first, in place.
static void spread(uint8_t *out, size_t width, size_t height, size_t fewer, unsigned across, unsigned down) {
    for (size_t y = height; y-- > 0;) {
        const uint8_t *from = out + 3 * (y / down) * fewer;
        for (size_t x = width; x-- > 0;) out[3 * (y * width + x)] = from[3 * (x / across)];
    }
}

/// At 1/8: the means of blocks, of every `step`th of the grid of all, where components with fewer have each for several.
static void read_means(
    cjpeg_session *s, jvirt_barray_ptr coefficients, const jpeg_component_info *component, unsigned step, uint8_t *out,
    size_t distance, size_t width, size_t height) {
    j_decompress_ptr cinfo = &s->decompress;
    if (component->quant_table == NULL) cjpeg_fail(s, CJPEG_CORRUPT, "no quantisation table");
    int scale = component->quant_table->quantval[0];
    unsigned across = (unsigned)(cinfo->max_h_samp_factor / component->h_samp_factor);
    unsigned down = (unsigned)(cinfo->max_v_samp_factor / component->v_samp_factor);
    JDIMENSION columns = component->width_in_blocks, rows = component->height_in_blocks;
    JDIMENSION group = (JDIMENSION)component->v_samp_factor;
    for (size_t y = 0; y < height; y++) {
        JDIMENSION row = (JDIMENSION)(y * step + step / 2) / down;
        if (row >= rows) row = rows - 1;
        JBLOCKARRAY blocks = cinfo->mem->access_virt_barray(
            (j_common_ptr)cinfo, coefficients, row - row % group, group, FALSE);
        JBLOCKROW line = blocks[row % group];
        for (size_t x = 0; x < width; x++, out += distance) {
            JDIMENSION column = (JDIMENSION)(x * step + step / 2) / across;
            if (column >= columns) column = columns - 1;
            *out = clamped((float)(line[column][0] * scale) / DCTSIZE + 128);
        }
        cjpeg_check_interruption(s, (uint64_t)width * DCTSIZE);
    }
}

static void note_means(cjpeg_session *s, jvirt_barray_ptr *coefficients, int channels) {
    j_decompress_ptr cinfo = &s->decompress;
    uint32_t columns = reduced(cinfo->image_width, 1), rows = reduced(cinfo->image_height, 1);
    unsigned step = (columns > rows ? columns : rows) / MOST_BLOCKS;
    if (step < 1) step = 1;
    uint32_t width = (columns + step - 1) / step, height = (rows + step - 1) / step;
    uint8_t *pixels = cjpeg_begin_preview(s, width, height, channels);
    cjpeg_preview *preview = s->limits->preview;
    preview->last_column = (double)cinfo->image_width / (DCTSIZE * step) - (width - 1);
    preview->last_row = (double)cinfo->image_height / (DCTSIZE * step) - (height - 1);
    for (int index = 0; index < channels; index++) {
        read_means(
            s, coefficients[index], &cinfo->comp_info[index], step, pixels + index, (size_t)channels, width, height);
    }
}

static void note_samples(cjpeg_session *s, jvirt_barray_ptr *coefficients, unsigned eighths, int channels) {
    j_decompress_ptr cinfo = &s->decompress;
    uint32_t width = reduced(cinfo->image_width, eighths), height = reduced(cinfo->image_height, eighths);
    uint8_t *pixels = cjpeg_begin_preview(s, width, height, channels);
    for (int index = 0; index < channels; index++) {
        const jpeg_component_info *component = &cinfo->comp_info[index];
        unsigned across = (unsigned)(cinfo->max_h_samp_factor / component->h_samp_factor);
        unsigned down = (unsigned)(cinfo->max_v_samp_factor / component->v_samp_factor);
        size_t columns = (width + across - 1) / across, rows = (height + down - 1) / down;
        read_component(
            s, coefficients[index], component, (int)eighths, pixels + index, (size_t)channels, columns, rows);
        if (across > 1 || down > 1) spread(pixels + index, width, height, columns, across, down);
    }
}

void cjpeg_note_coefficients(cjpeg_session *s, jvirt_barray_ptr *coefficients) {
    unsigned eighths = cjpeg_preview_eighths(s);
    int channels = s->decompress.jpeg_color_space == JCS_GRAYSCALE ? 1 : 3;
    if (eighths == 1) {
        note_means(s, coefficients, channels);
    } else {
        note_samples(s, coefficients, eighths, channels);
    }
    cjpeg_preview *preview = s->limits->preview;
    if (s->decompress.jpeg_color_space == JCS_YCbCr) {
        convert_to_rgb(preview->pixels, (size_t)preview->width * preview->height);
    }
    preview->is_complete = true;
}
