#include "cpng.h"

#include <stdlib.h>

cpng_image cpng_image_of(
    uint8_t *rows, uint32_t width, uint32_t height, int channels, cinterruption *interruption) {
    return (cpng_image){
        .rows = rows,
        .width = width,
        .height = height,
        .bit_depth = 8,
        .color_type = channels == 1 ? 0 : channels == 3 ? 2 : 6,
        .row_bytes = (size_t)width * (size_t)channels,
        .filter_distance = channels,
        .interruption = interruption,
    };
}

void cpng_image_free(cpng_image *image) {
    free(image->rows);
    image->rows = NULL;
}
