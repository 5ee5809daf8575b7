#include "cpng.h"

#include <stdlib.h>

cpng_image cpng_image_of(
    uint8_t *rows, uint32_t width, uint32_t height, int channels, cinterruption *interruption) {
    return (cpng_image){
        .rows = rows,
        .width = width,
        .height = height,
        .bit_depth = 8,
        .color_type = channels == 1 ? 0 : channels == 2 ? 4 : channels == 3 ? 2 : 6,
        .row_bytes = (size_t)width * (size_t)channels,
        .filter_distance = channels,
        .interruption = interruption,
    };
}

void cpng_image_free(cpng_image *image) {
    free(image->rows);
    image->rows = NULL;
}

// MARK: - Orientation

/// Maps a turned picture's pixels to the source: rows from columns, columns from the right, rows
/// from the bottom.
typedef struct {
    bool is_transposed, flips_x, flips_y;
} turn;

static turn turn_of(int orientation) {
    return (turn){
        .is_transposed = orientation >= 5,
        .flips_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8,
        .flips_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7,
    };
}

/// Pixels of whole bytes.
static ccodec_status turn_bytes(
    const cpng_image *image, turn how, size_t size, uint8_t *output, size_t output_stride,
    size_t output_width, size_t output_height) {
    size_t stride = image->row_bytes + 1;
    ptrdiff_t column = how.flips_x ? -(ptrdiff_t)size : (ptrdiff_t)size;
    ptrdiff_t row = how.flips_y ? -(ptrdiff_t)stride : (ptrdiff_t)stride;
    const uint8_t *origin = image->rows + 1 + (how.flips_x ? (image->width - 1) * size : 0)
        + (how.flips_y ? (size_t)(image->height - 1) * stride : 0);
    ptrdiff_t step_x = how.is_transposed ? row : column;
    ptrdiff_t step_y = how.is_transposed ? column : row;
    for (size_t y = 0; y < output_height; y++) {
        if (cinterruption_after(image->interruption, output_stride)) return CCODEC_INTERRUPTED;
        const uint8_t *from = origin + (ptrdiff_t)y * step_y;
        uint8_t *to = output + y * output_stride + 1;
        for (size_t x = 0; x < output_width; x++, from += step_x) {
            for (size_t byte = 0; byte < size; byte++) *to++ = from[byte];
        }
    }
    return CCODEC_OK;
}

/// Pixels of 1, 2 or 4 bits, the leftmost in a byte's highest bits (PNG section 7.2). The output is
/// zeroed.
static ccodec_status turn_bits(
    const cpng_image *image, turn how, size_t bits, uint8_t *output, size_t output_stride,
    size_t output_width, size_t output_height) {
    size_t stride = image->row_bytes + 1;
    unsigned mask = (1u << bits) - 1;
    for (size_t y = 0; y < output_height; y++) {
        if (cinterruption_after(image->interruption, output_width)) return CCODEC_INTERRUPTED;
        uint8_t *to = output + y * output_stride + 1;
        for (size_t x = 0; x < output_width; x++) {
            size_t from_x = how.is_transposed ? y : x, from_y = how.is_transposed ? x : y;
            if (how.flips_x) from_x = image->width - 1 - from_x;
            if (how.flips_y) from_y = image->height - 1 - from_y;
            size_t from = from_x * bits, place = x * bits;
            unsigned value = image->rows[from_y * stride + 1 + from / 8] >> (8 - bits - from % 8);
            to[place / 8] |= (uint8_t)((value & mask) << (8 - bits - place % 8));
        }
    }
    return CCODEC_OK;
}

ccodec_status cpng_turn(cpng_image *image, int orientation) {
    static const int channels_by_type[] = {1, 1, 3, 1, 2, 2, 4};
    turn how = turn_of(orientation);
    size_t bits = (size_t)(channels_by_type[image->color_type] * image->bit_depth);
    uint32_t width = how.is_transposed ? image->height : image->width;
    uint32_t height = how.is_transposed ? image->width : image->height;
    size_t row_bits, total, row_bytes;
    if (__builtin_mul_overflow((size_t)width, bits, &row_bits)) return CCODEC_LIMIT;
    row_bytes = row_bits / 8 + (row_bits % 8 != 0);
    if (__builtin_mul_overflow(row_bytes + 1, (size_t)height, &total)) return CCODEC_LIMIT;
    uint8_t *rows = bits < 8 ? calloc(total, 1) : malloc(total);
    if (rows == NULL) return CCODEC_OUT_OF_MEMORY;
    ccodec_status status = bits < 8
        ? turn_bits(image, how, bits, rows, row_bytes + 1, width, height)
        : turn_bytes(image, how, bits / 8, rows, row_bytes + 1, width, height);
    if (status != CCODEC_OK) {
        free(rows);
        return status;
    }
    free(image->rows);
    image->rows = rows;
    image->width = width;
    image->height = height;
    image->row_bytes = row_bytes;
    return CCODEC_OK;
}
