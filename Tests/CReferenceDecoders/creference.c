#include "creference.h"

#include <stdlib.h>
#include <string.h>

void creference_free(creference_picture *picture) {
    free(picture->pixels);
    picture->pixels = NULL;
}

void creference_turn(
    const uint8_t *pixels, uint32_t width, uint32_t height, size_t bytes_per_pixel,
    int orientation, uint8_t *output) {
    size_t output_width = orientation < 5 ? width : height;
    for (size_t y = 0; y < height; y++) {
        for (size_t x = 0; x < width; x++) {
            size_t right = width - 1 - x, below = height - 1 - y;
            size_t column = 0, row = 0;
            // The shown position of the pixel at column x and row y (JEITA CP-3451, 4.6.4 A).
            switch (orientation) {
            case 2: column = right; row = y; break;
            case 3: column = right; row = below; break;
            case 4: column = x; row = below; break;
            case 5: column = y; row = x; break;
            case 6: column = below; row = x; break;
            case 7: column = below; row = right; break;
            case 8: column = y; row = right; break;
            default: column = x; row = y;
            }
            memcpy(
                output + (row * output_width + column) * bytes_per_pixel,
                pixels + (y * width + x) * bytes_per_pixel, bytes_per_pixel);
        }
    }
}
