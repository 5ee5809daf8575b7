#include "cjpeg_preview.h"

#include <stdlib.h>
#include <string.h>

#include "cjpeg_processors.h"

// A block's DC coefficient is the picture at 1/8 of its size; its first four and sixteen
// coefficients are the picture at 2/8 and 4/8. The samples are inverse transforms of as many
// points, as in libjpeg's reduced sizes (jidctred.c).

// If the longer or the shorter side has fewer samples, the scale doubles, up to 4/8.
#define ENOUGH_SAMPLES 16
#define ENOUGH_ACROSS 8
// Only about this many blocks a side of a large picture are read, since each is in another cache
// line. The preview keeps half of the blocks that are read.
#define MOST_BLOCKS 64
// Pictures with fewer blocks a side get a preview at full size: half of it has fewer samples than
// ThumbHash's seven cosines need.
#define FEW_BLOCKS 2

// No fused operations, so every processor gives the same bytes.
#pragma STDC FP_CONTRACT OFF

bool cjpeg_wants_preview(const cjpeg_session *s) {
    const cjpeg_preview *preview = s->limits != NULL ? s->limits->preview : NULL;
    if (preview == NULL || preview->pixels != NULL) return false;
    switch (s->decompress.jpeg_color_space) {
    case JCS_GRAYSCALE:
    case JCS_YCbCr:
    case JCS_RGB: return true;
    // CMYK has no colour without a guess at the printer's inks.
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
    // One plane more, as scratch space.
    preview->pixels = malloc((size_t)width * height * ((size_t)channels + 1));
    if (preview->pixels == NULL) {
        cjpeg_fail(s, CCODEC_OUT_OF_MEMORY, "no memory for a small picture");
    }
    preview->width = width;
    preview->height = height;
    preview->channels = channels;
    double part = cjpeg_preview_eighths(s) / (double)DCTSIZE;
    preview->last_column = s->decompress.image_width * part - (width - 1);
    preview->last_row = s->decompress.image_height * part - (height - 1);
    return preview->pixels;
}

void cjpeg_put_preview_row(cjpeg_session *s, uint32_t y, const uint8_t *row) {
    const cjpeg_preview *preview = s->limits->preview;
    size_t plane = (size_t)preview->width * preview->height;
    uint8_t *restrict first = preview->pixels + (size_t)y * preview->width;
    if (preview->channels == 1) {
        memcpy(first, row, preview->width);
        return;
    }
    uint8_t *restrict second = first + plane, *restrict third = second + plane;
    for (uint32_t x = 0; x < preview->width; x++, row += 3) {
        first[x] = row[0];
        second[x] = row[1];
        third[x] = row[2];
    }
}

// MARK: - Samples of blocks

/// cos((2x + 1) u π / 16) · c(u) / 2 of ITU-T T.81, A.3.3; smaller transforms have fewer angles.
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

static uint8_t clamped(float value) {
    return value <= 0 ? 0 : value >= 255 ? 255 : (uint8_t)(value + 0.5f);
}

static void transform_to_8(const JCOEF *block, const float *steps, uint8_t *out) {
    float half[DCTSIZE][DCTSIZE];
    for (int v = 0; v < DCTSIZE; v++) {
        for (int x = 0; x < DCTSIZE; x++) {
            float sum = 0;
            for (int u = 0; u < DCTSIZE; u++) {
                sum += (float)block[v * DCTSIZE + u] * steps[v * DCTSIZE + u] * basis_of_8[x][u];
            }
            half[v][x] = sum;
        }
    }
    for (int y = 0; y < DCTSIZE; y++) {
        for (int x = 0; x < DCTSIZE; x++) {
            float sum = 128;
            for (int v = 0; v < DCTSIZE; v++) sum += half[v][x] * basis_of_8[y][v];
            out[y * DCTSIZE + x] = clamped(sum);
        }
    }
}

/// Four samples fit one register on every processor.
typedef float four __attribute__((vector_size(16)));

/// The inverse transform of four points, in each lane.
static inline void invert(four values[4]) {
    const four mean = {0.35355339f, 0.35355339f, 0.35355339f, 0.35355339f};
    four even = (values[0] + values[2]) * mean, other = (values[0] - values[2]) * mean;
    four odd = values[1] * 0.46193977f + values[3] * 0.19134172f;
    four other_odd = values[1] * 0.19134172f - values[3] * 0.46193977f;
    values[0] = even + odd;
    values[1] = other + other_odd;
    values[2] = other - other_odd;
    values[3] = even - odd;
}

static inline void transpose(four rows[4]) {
    four low = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
    four high = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
    four other_low = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
    four other_high = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
    rows[0] = __builtin_shufflevector(low, other_low, 0, 1, 4, 5);
    rows[1] = __builtin_shufflevector(low, other_low, 2, 3, 6, 7);
    rows[2] = __builtin_shufflevector(high, other_high, 0, 1, 4, 5);
    rows[3] = __builtin_shufflevector(high, other_high, 2, 3, 6, 7);
}

static void transform_to_4(const JCOEF *block, const float *steps, uint8_t *out) {
    typedef JCOEF coefficients __attribute__((vector_size(4 * sizeof(JCOEF))));
    typedef uint8_t bytes __attribute__((vector_size(4)));
    const four least = {0}, most = {255, 255, 255, 255};
    four rows[4];
    for (int v = 0; v < 4; v++) {
        coefficients row;
        four step;
        memcpy(&row, block + v * DCTSIZE, sizeof row);
        memcpy(&step, steps + v * DCTSIZE, sizeof step);
        rows[v] = __builtin_convertvector(row, four) * step;
    }
    invert(rows);
    transpose(rows);
    invert(rows);
    transpose(rows);
    for (int y = 0; y < 4; y++) {
        bytes row = __builtin_convertvector(
            __builtin_elementwise_min(__builtin_elementwise_max(rows[y] + 128.5f, least), most), bytes);
        memcpy(out + 4 * y, &row, sizeof row);
    }
}

static void transform_to_2(const JCOEF *block, const float *steps, uint8_t *out) {
    float mean = (float)block[0] * steps[0], across = (float)block[1] * steps[1];
    float down = (float)block[DCTSIZE] * steps[DCTSIZE], both = (float)block[DCTSIZE + 1] * steps[DCTSIZE + 1];
    float left = mean + across, right = mean - across, odd_left = down + both, odd_right = down - both;
    // With two points each cosine is the root of 1/8, or its negative.
    out[0] = clamped((left + odd_left) / DCTSIZE + 128);
    out[1] = clamped((right + odd_right) / DCTSIZE + 128);
    out[2] = clamped((left - odd_left) / DCTSIZE + 128);
    out[3] = clamped((right - odd_right) / DCTSIZE + 128);
}

static size_t at_most(size_t limit, size_t value) { return value < limit ? value : limit; }

/// A component's blocks: an array of libjpeg, or consecutive blocks with a fixed number of
/// coefficients each.
typedef struct {
    jvirt_barray_ptr array;
    const JCOEF *kept;
    size_t blocks_in_row, coefficients_a_block;
    const JQUANT_TBL *steps;
} block_source;

/// The first block of a row; the following ones are `*distance` apart. Rows of an array are
/// accessed in groups.
static const JCOEF *row_of_blocks(
    cjpeg_session *s, const block_source *from, const jpeg_component_info *component, JDIMENSION row,
    size_t *distance
) {
    if (from->array == NULL) {
        *distance = from->coefficients_a_block;
        return from->kept + row * from->blocks_in_row * from->coefficients_a_block;
    }
    *distance = DCTSIZE2;
    JDIMENSION group = (JDIMENSION)component->v_samp_factor;
    return s->decompress.mem->access_virt_barray(
        (j_common_ptr)&s->decompress, from->array, row - row % group, group, FALSE)[row % group][0];
}

/// Reads a component's samples into a plane of `width` by `height`, `n` by `n` from each block.
static void read_component(
    cjpeg_session *s, const block_source *from, const jpeg_component_info *component, unsigned n, uint8_t *out,
    size_t width, size_t height) {
    if (from->steps == NULL) cjpeg_fail(s, CCODEC_CORRUPT, "no quantisation table");
    float steps[DCTSIZE2];
    for (int index = 0; index < DCTSIZE2; index++) steps[index] = from->steps->quantval[index];
    uint8_t samples[DCTSIZE2];
    for (JDIMENSION row = 0; row < component->height_in_blocks; row++) {
        size_t y = (size_t)row * n;
        if (y >= height) return;
        size_t distance;
        const JCOEF *line = row_of_blocks(s, from, component, row, &distance);
        for (JDIMENSION column = 0; column < component->width_in_blocks; column++) {
            size_t x = (size_t)column * n;
            if (x >= width) break;
            switch (n) {
            case 2: transform_to_2(line + column * distance, steps, samples); break;
            case 4: transform_to_4(line + column * distance, steps, samples); break;
            default: transform_to_8(line + column * distance, steps, samples);
            }
            size_t rows = at_most(n, height - y), columns = at_most(n, width - x);
            for (size_t each = 0; each < rows; each++) {
                uint8_t *to = out + (y + each) * width + x;
                if (columns == 4) {
                    memcpy(to, samples + each * n, 4);
                } else {
                    for (size_t index = 0; index < columns; index++) to[index] = samples[each * n + index];
                }
            }
        }
        cjpeg_check_interruption(s, (uint64_t)component->width_in_blocks * DCTSIZE);
    }
}

/// Reads the means of every `step`th block into a plane, counted on the grid of the component with
/// most blocks. The block is from the middle of its `step` by `step`; beyond the edge, the last
/// one.
static void read_means(
    cjpeg_session *s, const block_source *from, const jpeg_component_info *component, unsigned step, uint8_t *out,
    size_t width, size_t height) {
    j_decompress_ptr cinfo = &s->decompress;
    if (from->steps == NULL) cjpeg_fail(s, CCODEC_CORRUPT, "no quantisation table");
    int scale = from->steps->quantval[0];
    unsigned across = (unsigned)(cinfo->max_h_samp_factor / component->h_samp_factor);
    unsigned down = (unsigned)(cinfo->max_v_samp_factor / component->v_samp_factor);
    JDIMENSION columns = component->width_in_blocks, rows = component->height_in_blocks;
    for (size_t y = 0; y < height; y++) {
        JDIMENSION row = (JDIMENSION)(y * step + step / 2) / down;
        if (row >= rows) row = rows - 1;
        size_t distance;
        const JCOEF *line = row_of_blocks(s, from, component, row, &distance);
        size_t place = step / 2;
        for (size_t x = 0; x < width; x++, place += step) {
            size_t column = across == 1 ? place : across == 2 ? place / 2 : place / across;
            if (column >= columns) column = columns - 1;
            // An arithmetic shift: halves round up below zero, too.
            int mean = ((line[column * distance] * scale + DCTSIZE / 2) >> 3) + 128;
            *out++ = (uint8_t)(mean < 0 ? 0 : mean > 255 ? 255 : mean);
        }
        cjpeg_check_interruption(s, (uint64_t)width * DCTSIZE);
    }
}

// MARK: - Planes

static inline uint8_t from_65536ths(int value) {
    value >>= 16;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/// Converts Y, Cb and Cr to red, green and blue in place: JFIF's formula (ITU-T T.871) in
/// 65,536ths.
FOR_EACH_WIDTH static void convert_to_rgb(
    uint8_t *restrict first, uint8_t *restrict second, uint8_t *restrict third, size_t count) {
    for (size_t index = 0; index < count; index++) {
        int y = first[index] * 65536 + 32768, cb = second[index] - 128, cr = third[index] - 128;
        first[index] = from_65536ths(y + 91881 * cr);
        second[index] = from_65536ths(y - 22554 * cb - 46802 * cr);
        third[index] = from_65536ths(y + 116130 * cb);
    }
}

/// Repeats the samples of a subsampled component.
static void spread(
    const uint8_t *restrict from, size_t fewer, unsigned across, unsigned down, uint8_t *restrict out, size_t width,
    size_t height) {
    for (size_t y = 0; y < height; y++) {
        uint8_t *row = out + y * width;
        if (y % down != 0) {
            memcpy(row, row - width, width);
            continue;
        }
        const uint8_t *samples = from + y / down * fewer;
        size_t x = 0;
        if (across == 2) {
            for (; x + 1 < width; x += 2) row[x] = row[x + 1] = samples[x / 2];
        }
        for (; x < width; x++) row[x] = samples[x / across];
    }
}

// MARK: - The picture

static void note_means(cjpeg_session *s, const block_source *from, int channels) {
    j_decompress_ptr cinfo = &s->decompress;
    uint32_t columns = reduced(cinfo->image_width, 1), rows = reduced(cinfo->image_height, 1);
    unsigned step = (columns > rows ? columns : rows) / MOST_BLOCKS;
    if (step < 1) step = 1;
    uint32_t width = (columns + step - 1) / step, height = (rows + step - 1) / step;
    size_t plane = (size_t)width * height;
    uint8_t *pixels = cjpeg_begin_preview(s, width, height, channels), *work = pixels + (size_t)channels * plane;
    cjpeg_preview *preview = s->limits->preview;
    preview->last_column = (double)cinfo->image_width / (DCTSIZE * step) - (width - 1);
    preview->last_row = (double)cinfo->image_height / (DCTSIZE * step) - (height - 1);
    // Chroma at half the size, as most pictures store it.
    bool is_halved = cinfo->jpeg_color_space == JCS_YCbCr;
    uint32_t fewer = (width + 1) / 2;
    for (int index = 0; index < channels; index++) {
        const jpeg_component_info *component = &cinfo->comp_info[index];
        uint8_t *out = pixels + (size_t)index * plane;
        if (index == 0 || !is_halved) {
            read_means(s, &from[index], component, step, out, width, height);
        } else {
            read_means(s, &from[index], component, 2 * step, work, fewer, (height + 1) / 2);
            spread(work, fewer, 2, 2, out, width, height);
        }
    }
}

static void note_samples(cjpeg_session *s, const block_source *from, unsigned eighths, int channels) {
    j_decompress_ptr cinfo = &s->decompress;
    uint32_t width = reduced(cinfo->image_width, eighths), height = reduced(cinfo->image_height, eighths);
    size_t plane = (size_t)width * height;
    uint8_t *pixels = cjpeg_begin_preview(s, width, height, channels), *work = pixels + (size_t)channels * plane;
    for (int index = 0; index < channels; index++) {
        const jpeg_component_info *component = &cinfo->comp_info[index];
        unsigned across = (unsigned)(cinfo->max_h_samp_factor / component->h_samp_factor);
        unsigned down = (unsigned)(cinfo->max_v_samp_factor / component->v_samp_factor);
        size_t columns = (width + across - 1) / across, rows = (height + down - 1) / down;
        bool is_full = across == 1 && down == 1;
        uint8_t *out = pixels + (size_t)index * plane;
        read_component(s, &from[index], component, eighths, is_full ? out : work, columns, rows);
        if (!is_full) spread(work, columns, across, down, out, width, height);
    }
}

static void note(cjpeg_session *s, const block_source from[MAX_COMPONENTS]) {
    unsigned eighths = cjpeg_preview_eighths(s);
    int channels = s->decompress.jpeg_color_space == JCS_GRAYSCALE ? 1 : 3;
    if (eighths == 1) {
        note_means(s, from, channels);
    } else {
        note_samples(s, from, eighths, channels);
    }
    cjpeg_preview *preview = s->limits->preview;
    if (s->decompress.jpeg_color_space == JCS_YCbCr) {
        size_t plane = (size_t)preview->width * preview->height;
        convert_to_rgb(preview->pixels, preview->pixels + plane, preview->pixels + 2 * plane, plane);
    }
    preview->is_complete = true;
}

void cjpeg_note_coefficients(cjpeg_session *s, jvirt_barray_ptr *coefficients) {
    j_decompress_ptr cinfo = &s->decompress;
    block_source from[MAX_COMPONENTS] = {0};
    for (int index = 0; index < cinfo->num_components; index++) {
        from[index].array = coefficients[index];
        from[index].steps = cinfo->comp_info[index].quant_table;
    }
    note(s, from);
}

void cjpeg_note_blocks(cjpeg_session *s, const cjpeg_preview_blocks *blocks) {
    j_decompress_ptr cinfo = &s->decompress;
    block_source from[MAX_COMPONENTS] = {0};
    for (int index = 0; index < cinfo->num_components; index++) {
        from[index] = (block_source){
            .kept = blocks->coefficients[index], .blocks_in_row = blocks->blocks_in_row[index],
            .coefficients_a_block = blocks->coefficients_a_block,
            // The library has not started reading, so the component's table is not set yet.
            .steps = cinfo->quant_tbl_ptrs[cinfo->comp_info[index].quant_tbl_no]};
    }
    note(s, from);
}
