#include "cplaceholder_picture.h"

// Colours are counted by 16 levels a channel; a cube spans two levels of each.
enum { LEVELS = 16, COLOURS = LEVELS * LEVELS * LEVELS };

/// Every second pixel is read of a side with more.
enum { MANY_PIXELS = 24 };

static uint32_t step_in(uint32_t side) { return side > MANY_PIXELS ? 2 : 1; }

/// Sums `weights` over each cube, in place: pairs of blue, then of green, then of red levels.
FOR_EACH_PROCESSOR static void sum_cubes(uint16_t *weights) {
    for (int distance = 1; distance < COLOURS; distance *= LEVELS) {
        for (int index = 0; index + distance < COLOURS; index++) weights[index] += weights[index + distance];
    }
}

bool cplaceholder_colour_of_picture(const cplaceholder_picture *picture, uint8_t colour[3]) {
    // At most 50 pixels a side of weight 16 each, so a sum fits 16 bits.
    uint16_t weights[COLOURS] = {0};
    uint32_t across = step_in(picture->width), down = step_in(picture->height);
    for (uint32_t y = 0; y < picture->height; y += down) {
        for (uint32_t x = 0; x < picture->width; x += across) {
            const uint8_t *pixel = picture->pixels[y * picture->width + x];
            int index = (pixel[0] >> 4) * LEVELS * LEVELS + (pixel[1] >> 4) * LEVELS + (pixel[2] >> 4);
            // Sixteenths, rounded up so that every visible pixel counts.
            weights[index] += (uint16_t)((pixel[3] + 15) / 16);
        }
    }
    sum_cubes(weights);
    uint16_t most = 0;
    int best[3] = {0};
    for (int red = 0; red < LEVELS - 1; red++) {
        for (int green = 0; green < LEVELS - 1; green++) {
            for (int blue = 0; blue < LEVELS - 1; blue++) {
                uint16_t weight = weights[(red * LEVELS + green) * LEVELS + blue];
                if (weight <= most) continue;
                most = weight;
                best[0] = red;
                best[1] = green;
                best[2] = blue;
            }
        }
    }
    if (most == 0) return false;
    uint32_t sums[3] = {0}, alpha = 0;
    for (uint32_t y = 0; y < picture->height; y += down) {
        for (uint32_t x = 0; x < picture->width; x += across) {
            const uint8_t *pixel = picture->pixels[y * picture->width + x];
            bool is_in = true;
            for (int channel = 0; channel < 3; channel++) {
                is_in &= (unsigned)((pixel[channel] >> 4) - best[channel]) < 2;
            }
            if (!is_in) continue;
            for (int channel = 0; channel < 3; channel++) sums[channel] += (uint32_t)pixel[channel] * pixel[3];
            alpha += pixel[3];
        }
    }
    for (int channel = 0; channel < 3; channel++) colour[channel] = (uint8_t)((sums[channel] + alpha / 2) / alpha);
    return true;
}
