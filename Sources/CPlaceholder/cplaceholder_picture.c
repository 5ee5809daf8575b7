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
