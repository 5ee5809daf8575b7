#include "cplaceholder_picture.h"

#include <string.h>

void cplaceholder_begin(cplaceholder_picture *picture, uint32_t width, uint32_t height) {
    picture->width = width;
    picture->height = height;
    picture->stride = (width + 15) / 16 * 16;
    picture->is_opaque = true;
    if (picture->stride == width) return;
    for (int plane = 0; plane < 4; plane++) {
        for (uint32_t y = 0; y < height; y++) {
            memset(picture->planes[plane] + (size_t)y * picture->stride + width, 0, picture->stride - width);
        }
    }
}

void cplaceholder_turn(cplaceholder_picture *picture, int orientation) {
    if (orientation <= 1 || orientation > 8) return;
    cplaceholder_picture source = *picture;
    uint32_t width = source.width, height = source.height;
    if (orientation > 4) {
        cplaceholder_begin(picture, height, width);
        picture->is_opaque = source.is_opaque;
        picture->full_width = source.full_height;
        picture->full_height = source.full_width;
    }
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++) {
            uint32_t right = width - 1 - x, bottom = height - 1 - y, to_x = x, to_y = y;
            switch (orientation) {
            case 2: to_x = right; break;
            case 3: to_x = right; to_y = bottom; break;
            case 4: to_y = bottom; break;
            case 5: to_x = y; to_y = x; break;
            case 6: to_x = bottom; to_y = x; break;
            case 7: to_x = bottom; to_y = right; break;
            case 8: to_x = y; to_y = right; break;
            }
            for (int plane = 0; plane < 4; plane++) {
                picture->planes[plane][(size_t)to_y * picture->stride + to_x] =
                    source.planes[plane][(size_t)y * source.stride + x];
            }
        }
    }
}

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
