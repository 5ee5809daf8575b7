#include "cplaceholder_picture.h"

#include <string.h>

static void make(cplaceholder_picture *picture, int orientation, cplaceholder *result) {
    memset(result, 0, sizeof *result);
    cplaceholder_turn(picture, orientation);
    result->hash_length = (uint8_t)cplaceholder_hash_picture(picture, result->hash);
    result->has_colour = cplaceholder_colour_of_picture(picture, result->colour);
}

void cplaceholder_make(const cplaceholder_rows *rows, int orientation, cplaceholder *result) {
    cplaceholder_picture picture;
    cplaceholder_reduce(rows, &picture);
    make(&picture, orientation, result);
}

void cplaceholder_make_of_planes(const cplaceholder_planes *planes, int orientation, cplaceholder *result) {
    cplaceholder_picture picture;
    cplaceholder_reduce_planes(planes, &picture);
    make(&picture, orientation, result);
}

static void take(const uint8_t *rgba, uint32_t width, uint32_t height, cplaceholder_picture *picture) {
    cplaceholder_begin(picture, width, height);
    picture->full_width = width;
    picture->full_height = height;
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++, rgba += 4) {
            for (int plane = 0; plane < 4; plane++) {
                picture->planes[plane][(size_t)y * picture->stride + x] = rgba[plane];
            }
            if (rgba[3] != 255) picture->is_opaque = false;
        }
    }
}

size_t cplaceholder_thumbhash(
    const uint8_t *rgba, uint32_t width, uint32_t height, uint8_t hash[CPLACEHOLDER_MOST_HASH]) {
    cplaceholder_picture picture;
    take(rgba, width, height, &picture);
    return cplaceholder_hash_picture(&picture, hash);
}

bool cplaceholder_colour(const uint8_t *rgba, uint32_t width, uint32_t height, uint8_t colour[3]) {
    cplaceholder_picture picture;
    take(rgba, width, height, &picture);
    return cplaceholder_colour_of_picture(&picture, colour);
}
