#include "cresample_kernels.h"
#include "cresample_light.h"

#include <stdlib.h>
#include <string.h>

/// The working state of one resizing. Rows of blocks in use stay in a ring.
typedef struct {
    const cresample_source *source;
    const cresample_target *target;
    const cresample_kernels *kernels;
    cinterruption *interruption;
    cresample_axis across, down;
    cresample_columns columns;
    /// Samples of the blocks in a row, and the same with room for vectors.
    size_t samples, room;
    /// The weights of one target pixel.
    double *weights;
    /// The ring's rows, or pairs of rows.
    uint32_t ring_rows;
} resizing;

/// For 8-bit grey and RGB.
typedef struct {
    /// Sums of columns of source pixels, and of blocks.
    uint16_t *sums;
    uint32_t *scratch;
    /// An upper and a lower row of blocks.
    int16_t *lines[2];
    int16_t *ring;
    const int16_t **rows;
    int16_t *weights;
    int16_t *filtered;
} fixed_buffers;

/// For all other pictures.
typedef struct {
    cresample_encoding encoding;
    uint64_t *sums;
    float *ring;
    const float **rows;
    float *weights;
    float *filtered;
    float *amounts;
} float_buffers;

static size_t rounded_up(size_t count, size_t step) { return (count + step - 1) / step * step; }

static bool is_fixed(const cresample_source *source, const cresample_options *options) {
    return source->bit_depth == 8 && source->channels % 2 == 1 && !options->is_linear;
}

// MARK: memory

static resizing resizing_of(
    const cresample_source *source, const cresample_rectangle *rectangle,
    const cresample_options *options, const cresample_target *target, cresample_arena *arena) {
    resizing work = {
        .source = source, .target = target, .interruption = options->interruption,
        .across = cresample_axis_of(
            source->width, rectangle->x, rectangle->width, target->width, options->filter),
        .down = cresample_axis_of(
            source->height, rectangle->y, rectangle->height, target->height, options->filter),
    };
    uint32_t most_taps = work.across.most_taps;
    if (most_taps < work.down.most_taps) most_taps = work.down.most_taps;
    cresample_columns *columns = &work.columns;
    columns->count = target->width;
    columns->stride = (uint32_t)rounded_up(work.across.most_taps, CRESAMPLE_TAPS);
    columns->windows = cresample_take(arena, columns->count, sizeof *columns->windows);
    size_t weights = (size_t)columns->count * columns->stride;
    if (is_fixed(source, options)) {
        columns->integers = cresample_take(arena, weights, sizeof *columns->integers);
    } else {
        columns->floats = cresample_take(arena, weights, sizeof *columns->floats);
    }
    work.weights = cresample_take(arena, most_taps, sizeof *work.weights);
    work.samples = (size_t)work.across.blocks * (size_t)source->channels;
    work.room = rounded_up(work.samples, CRESAMPLE_STEP);
    return work;
}

static fixed_buffers fixed_buffers_of(resizing *work, cresample_arena *arena) {
    fixed_buffers buffers = {0};
    size_t channels = (size_t)work->source->channels;
    size_t pixels = (size_t)work->across.blocks * work->across.ratio;
    // A vector may reach beyond the last pixel, and weights of zero beyond the last block.
    buffers.sums = cresample_take(arena, pixels * channels + 8, sizeof *buffers.sums);
    buffers.scratch = cresample_take(arena, work->samples + 8, sizeof *buffers.scratch);
    buffers.lines[0] = cresample_take(arena, work->room, sizeof *buffers.lines[0]);
    buffers.lines[1] = cresample_take(arena, work->room, sizeof *buffers.lines[1]);
    // A window may begin with a lower row, or end with an upper one.
    work->ring_rows = work->down.most_taps / 2 + 1;
    buffers.ring = cresample_take(arena, work->ring_rows, 2 * work->room * sizeof *buffers.ring);
    buffers.rows = cresample_take(arena, work->ring_rows, sizeof *buffers.rows);
    buffers.weights = cresample_take(arena, 2 * (size_t)work->ring_rows, sizeof *buffers.weights);
    buffers.filtered = cresample_take(
        arena, work->room + CRESAMPLE_TAPS * channels + 8, sizeof *buffers.filtered);
    return buffers;
}

static float_buffers float_buffers_of(
    resizing *work, const cresample_options *options, cresample_arena *arena) {
    float_buffers buffers = {0};
    size_t pixels = (size_t)work->target->width * (size_t)work->source->channels;
    buffers.encoding = cresample_encoding_of(work->source, options->is_linear, arena);
    buffers.sums = cresample_take(arena, work->samples, sizeof *buffers.sums);
    work->ring_rows = work->down.most_taps;
    buffers.ring = cresample_take(arena, work->ring_rows, work->room * sizeof *buffers.ring);
    buffers.rows = cresample_take(arena, work->ring_rows, sizeof *buffers.rows);
    buffers.weights = cresample_take(arena, work->ring_rows, sizeof *buffers.weights);
    // With room for the fourth lane of three channels.
    buffers.filtered = cresample_take(arena, work->room + 1, sizeof *buffers.filtered);
    buffers.amounts = cresample_take(arena, pixels + 3, sizeof *buffers.amounts);
    return buffers;
}

size_t cresample_memory(
    const cresample_source *source, const cresample_rectangle *rectangle,
    const cresample_options *options, const cresample_target *target) {
    cresample_arena arena = {0};
    resizing work = resizing_of(source, rectangle, options, target, &arena);
    if (is_fixed(source, options)) {
        fixed_buffers_of(&work, &arena);
    } else {
        float_buffers_of(&work, options, &arena);
    }
    // The allocation's start, aligned for the first part.
    return arena.bytes > SIZE_MAX - 64 ? SIZE_MAX : arena.bytes + 64;
}

// MARK: steps

static void fill_columns(resizing *work) {
    cresample_columns *columns = &work->columns;
    for (uint32_t x = 0; x < columns->count; x++) {
        cresample_window window = cresample_weigh(&work->across, x, work->weights);
        size_t place = (size_t)x * columns->stride;
        if (columns->integers != NULL) {
            cresample_round(work->weights, window.taps, columns->integers + place);
        } else {
            for (uint32_t tap = 0; tap < window.taps; tap++) {
                columns->floats[place + tap] = (float)work->weights[tap];
            }
        }
        window.first_block -= work->across.first_block;
        columns->windows[x] = window;
    }
}

static const uint8_t *row_at(const resizing *work, uint32_t y) {
    const cresample_source *source = work->source;
    size_t pixel_bytes = (size_t)(source->channels * source->bit_depth / 8);
    size_t first_pixel = (size_t)work->across.first_block * work->across.ratio;
    return source->pixels + (size_t)y * source->stride + first_pixel * pixel_bytes;
}

/// Returns the pixels of the last block in a row.
static uint32_t last_pixels(const resizing *work) {
    return cresample_block_pixels(
        &work->across, work->across.first_block + work->across.blocks - 1);
}

/// Returns the bytes read for a row of blocks.
static uint64_t row_bytes(const resizing *work) {
    return (uint64_t)work->samples * work->across.ratio * (uint64_t)work->source->bit_depth / 8;
}

/// Makes one row of fixed blocks; false if interrupted.
static bool average_fixed(
    const resizing *work, const fixed_buffers *buffers, uint32_t block, int16_t *line) {
    int channels = work->source->channels;
    uint32_t rows = cresample_block_pixels(&work->down, block), last = last_pixels(work);
    size_t pixels = (size_t)(work->across.blocks - 1) * work->across.ratio + last;
    for (uint32_t row = 0; row < rows; row++) {
        if (cinterruption_after(work->interruption, row_bytes(work))) return false;
        work->kernels->add(
            buffers->sums, row_at(work, block * work->down.ratio + row),
            pixels * (size_t)channels, row == 0);
    }
    work->kernels->fold(
        line, buffers->scratch, buffers->sums, work->across.blocks, channels, work->across.ratio,
        last, rows);
    return true;
}

/// Makes one pair of rows of fixed blocks. A last row that is an upper one pairs with itself, at no
/// weight.
static bool make_pair(const resizing *work, const fixed_buffers *buffers, uint32_t pair) {
    int16_t *made = buffers->ring + 2 * work->room * (pair % work->ring_rows);
    uint32_t upper = 2 * pair, end = work->down.first_block + work->down.blocks;
    uint32_t lower = upper + 1 < end ? upper + 1 : upper;
    if (work->across.ratio == 1 && work->down.ratio == 1) {
        if (cinterruption_after(work->interruption, 2 * row_bytes(work))) return false;
        work->kernels->pair_bytes(made, row_at(work, upper), row_at(work, lower), work->samples);
        return true;
    }
    int16_t *const *lines = buffers->lines;
    if (!average_fixed(work, buffers, upper, lines[0])) return false;
    if (lower != upper && !average_fixed(work, buffers, lower, lines[1])) return false;
    work->kernels->pair(made, lines[0], lines[lower - upper], work->samples);
    return true;
}

static ccodec_status resize_fixed(resizing *work, fixed_buffers *buffers) {
    const cresample_target *target = work->target;
    uint32_t next_pair = work->down.first_block / 2;
    for (uint32_t y = 0; y < target->height; y++) {
        cresample_window window = cresample_weigh(&work->down, y, work->weights);
        uint32_t first = window.first_block / 2;
        uint32_t end = (window.first_block + window.taps + 1) / 2;
        for (; next_pair < end; next_pair++) {
            if (!make_pair(work, buffers, next_pair)) return CCODEC_INTERRUPTED;
        }
        for (uint32_t pair = first; pair < end; pair++) {
            buffers->rows[pair - first] =
                buffers->ring + 2 * work->room * (pair % work->ring_rows);
        }
        memset(buffers->weights, 0, 2 * (size_t)(end - first) * sizeof *buffers->weights);
        cresample_round(work->weights, window.taps, buffers->weights + window.first_block % 2);
        uint64_t columns = (uint64_t)work->columns.count * work->columns.stride;
        if (cinterruption_after(work->interruption, work->samples * window.taps + columns)) {
            return CCODEC_INTERRUPTED;
        }
        work->kernels->add_pairs(
            buffers->filtered, buffers->rows, buffers->weights, end - first, work->room);
        work->kernels->weigh_columns(
            target->pixels + (size_t)y * target->stride, buffers->filtered, &work->columns,
            work->source->channels);
    }
    return CCODEC_OK;
}

/// Makes one row of blocks; false if interrupted.
static bool average(
    const resizing *work, const float_buffers *buffers, uint32_t block, float *line) {
    size_t channels = (size_t)work->source->channels, tail = work->samples - channels;
    uint32_t rows = cresample_block_pixels(&work->down, block), last = last_pixels(work);
    memset(buffers->sums, 0, work->samples * sizeof *buffers->sums);
    for (uint32_t row = 0; row < rows; row++) {
        if (cinterruption_after(work->interruption, row_bytes(work))) return false;
        cresample_add_amounts(
            &buffers->encoding, buffers->sums, row_at(work, block * work->down.ratio + row),
            work->across.blocks, work->across.ratio, last);
    }
    // The double is so exact that the float is the rounded quotient if that is one.
    double share = 1 / ((double)work->across.ratio * rows), last_share = 1 / ((double)last * rows);
    for (size_t i = 0; i < tail; i++) line[i] = (float)((double)buffers->sums[i] * share);
    for (size_t i = tail; i < work->samples; i++) {
        line[i] = (float)((double)buffers->sums[i] * last_share);
    }
    return true;
}

static ccodec_status resize_floats(resizing *work, float_buffers *buffers) {
    const cresample_target *target = work->target;
    uint32_t next_block = work->down.first_block;
    cresample_fill_tables(&buffers->encoding);
    for (uint32_t y = 0; y < target->height; y++) {
        cresample_window window = cresample_weigh(&work->down, y, work->weights);
        uint32_t end = window.first_block + window.taps;
        for (; next_block < end; next_block++) {
            float *line = buffers->ring + work->room * (next_block % work->ring_rows);
            if (!average(work, buffers, next_block, line)) return CCODEC_INTERRUPTED;
        }
        for (uint32_t tap = 0; tap < window.taps; tap++) {
            uint32_t block = window.first_block + tap;
            buffers->rows[tap] = buffers->ring + work->room * (block % work->ring_rows);
            buffers->weights[tap] = (float)work->weights[tap];
        }
        uint64_t columns = (uint64_t)work->columns.count * work->columns.stride;
        if (cinterruption_after(work->interruption, 4 * (work->samples * window.taps + columns))) {
            return CCODEC_INTERRUPTED;
        }
        work->kernels->add_rows(
            buffers->filtered, buffers->rows, buffers->weights, window.taps, work->room);
        work->kernels->weigh_float_columns(
            buffers->amounts, buffers->filtered, &work->columns, work->source->channels);
        cresample_encode(
            &buffers->encoding, target->pixels + (size_t)y * target->stride, buffers->amounts,
            target->width);
    }
    return CCODEC_OK;
}

/// Whether each target pixel is a source pixel.
static bool is_cut(const cresample_rectangle *rectangle, const cresample_target *target) {
    return rectangle->width == target->width && rectangle->height == target->height
        && rectangle->x == (uint32_t)rectangle->x && rectangle->y == (uint32_t)rectangle->y;
}

static ccodec_status cut(
    const cresample_source *source, const cresample_rectangle *rectangle,
    const cresample_options *options, const cresample_target *target) {
    size_t pixel_bytes = (size_t)(source->channels * source->bit_depth / 8);
    size_t bytes = target->width * pixel_bytes;
    const uint8_t *row = source->pixels + (size_t)rectangle->y * source->stride
        + (size_t)rectangle->x * pixel_bytes;
    for (uint32_t y = 0; y < target->height; y++, row += source->stride) {
        if (cinterruption_after(options->interruption, bytes)) return CCODEC_INTERRUPTED;
        memcpy(target->pixels + (size_t)y * target->stride, row, bytes);
    }
    return CCODEC_OK;
}

ccodec_status cresample_resize(
    const cresample_source *source, const cresample_rectangle *rectangle,
    const cresample_options *options, const cresample_target *target) {
    if (is_cut(rectangle, target)) return cut(source, rectangle, options, target);
    size_t bytes = cresample_memory(source, rectangle, options, target);
    if (bytes == SIZE_MAX) return CCODEC_OUT_OF_MEMORY;
    // Zeroed, since vectors read beyond the last sample.
    uint8_t *memory = calloc(bytes, 1);
    if (memory == NULL) return CCODEC_OUT_OF_MEMORY;
    cresample_arena arena = {.memory = memory + (64 - (uintptr_t)memory % 64) % 64};
    resizing work = resizing_of(source, rectangle, options, target, &arena);
    work.kernels = cresample_kernels_of(options->path);
    ccodec_status status;
    if (is_fixed(source, options)) {
        fixed_buffers buffers = fixed_buffers_of(&work, &arena);
        fill_columns(&work);
        status = resize_fixed(&work, &buffers);
    } else {
        float_buffers buffers = float_buffers_of(&work, options, &arena);
        fill_columns(&work);
        status = resize_floats(&work, &buffers);
    }
    free(memory);
    return status;
}
