#include "cplaceholder_picture.h"

#include <string.h>

/// Applies an EXIF orientation, 1 to 8.
static void turn(cplaceholder_picture *picture, int orientation) {
    if (orientation <= 1 || orientation > 8) return;
    cplaceholder_picture source = *picture;
    if (orientation > 4) {
        picture->width = source.height;
        picture->height = source.width;
        picture->full_width = source.full_height;
        picture->full_height = source.full_width;
    }
    bool is_from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    bool is_from_bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    for (uint32_t y = 0; y < picture->height; y++) {
        for (uint32_t x = 0; x < picture->width; x++) {
            uint32_t from_x = orientation > 4 ? y : x, from_y = orientation > 4 ? x : y;
            if (is_from_right) from_x = source.width - 1 - from_x;
            if (is_from_bottom) from_y = source.height - 1 - from_y;
            memcpy(picture->pixels[y * picture->width + x], source.pixels[from_y * source.width + from_x], 4);
        }
    }
}

static void make(cplaceholder_picture *picture, int orientation, cplaceholder *result) {
    memset(result, 0, sizeof *result);
    turn(picture, orientation);
    result->hash_length = (uint8_t)cplaceholder_hash_picture(picture, result->hash);
    result->has_colour = cplaceholder_colour_of_picture(picture, result->colour);
}

void cplaceholder_make(const cplaceholder_rows *rows, int orientation, cplaceholder *result) {
    cplaceholder_picture picture;
    cplaceholder_reduce(rows, &picture);
    make(&picture, orientation, result);
}

void cplaceholder_make_of_planes(
    const cplaceholder_planes *planes, int orientation, cplaceholder *result) {
    cplaceholder_picture picture;
    cplaceholder_reduce_planes(planes, &picture);
    make(&picture, orientation, result);
}

static void take(
    const uint8_t *rgba, uint32_t width, uint32_t height, cplaceholder_picture *picture) {
    picture->full_width = picture->width = width;
    picture->full_height = picture->height = height;
    memcpy(picture->pixels, rgba, (size_t)width * height * 4);
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
