#include "cplaceholder_picture.h"

#include <string.h>

// Levels of 16 a channel; a cube has two of them a side, so it begins at one of 15.
#define LEVELS 16
#define CUBES 15

/// Of a side of more pixels every second one is looked at.
#define MANY_PIXELS 24

/// The weights of what has been looked at, by levels of red and green in one, and of blue. No more than 50 pixels a side
/// of 16 at most fit in a number.
typedef struct {
    /// With zeros behind the last.
    uint16_t all[LEVELS * LEVELS + LEVELS];
    uint16_t by_blue[LEVELS * LEVELS * LEVELS];
} histogram;

typedef struct {
    uint32_t red, green, blue;
    uint32_t weight;
} cube;

FOR_EACH_PROCESSOR static void find_levels(
    const uint8_t *restrict red, const uint8_t *restrict green, const uint8_t *restrict blue, uint32_t stride,
    uint16_t *restrict levels) {
    for (uint32_t x = 0; x < stride; x++) {
        levels[x] = (uint16_t)((red[x] & 0xF0) << 4 | (green[x] & 0xF0) | blue[x] >> 4);
    }
}

static uint32_t step_in(uint32_t side) { return side > MANY_PIXELS ? 2 : 1; }

static void count(const cplaceholder_picture *picture, histogram *counts) {
    uint16_t levels[CPLACEHOLDER_MOST_STRIDE];
    uint32_t step = step_in(picture->width);
    memset(counts, 0, sizeof *counts);
    for (uint32_t y = 0; y < picture->height; y += step_in(picture->height)) {
        size_t row = (size_t)y * picture->stride;
        const uint8_t *alpha = picture->planes[3] + row;
        find_levels(
            picture->planes[0] + row, picture->planes[1] + row, picture->planes[2] + row, picture->stride, levels);
        for (uint32_t x = 0; x < picture->width; x += step) {
            // Sixteenths, so that what is seen at all has some.
            uint32_t weight = ((uint32_t)alpha[x] + 15) / 16;
            counts->all[levels[x] / LEVELS] += (uint16_t)weight;
            counts->by_blue[levels[x]] += (uint16_t)weight;
        }
    }
}

/// Of the cubes of these reds and greens the heaviest, the first of several.
static cube heaviest_of(const histogram *counts, uint32_t red, uint32_t green) {
    const uint16_t *first = counts->by_blue + (red * LEVELS + green) * LEVELS, *second = first + LEVELS;
    const uint16_t *third = first + LEVELS * LEVELS, *fourth = third + LEVELS;
    uint16_t sums[LEVELS];
    for (int blue = 0; blue < LEVELS; blue++) {
        sums[blue] = (uint16_t)(first[blue] + second[blue] + third[blue] + fourth[blue]);
    }
    cube best = {red, green, 0, 0};
    for (uint32_t blue = 0; blue < CUBES; blue++) {
        uint32_t weight = (uint32_t)sums[blue] + sums[blue + 1];
        if (weight > best.weight) best = (cube){red, green, blue, weight};
    }
    return best;
}

/// Of all cubes the heaviest, the first of several; without weight where nothing is seen.
///
/// What is in all cubes of some reds and greens bounds what one of them can have, so few are looked at.
static cube heaviest(const histogram *counts) {
    uint16_t bounds[CUBES * LEVELS];
    const uint16_t *all = counts->all;
    for (uint32_t index = 0; index < CUBES * LEVELS; index++) {
        bounds[index] = (uint16_t)(all[index] + all[index + 1] + all[index + LEVELS] + all[index + LEVELS + 1]);
    }
    cube best = {0, 0, 0, 0};
    for (uint32_t red = 0; red < CUBES; red++) {
        for (uint32_t green = 0; green < CUBES; green++) {
            if (bounds[red * LEVELS + green] <= best.weight) continue;
            cube other = heaviest_of(counts, red, green);
            if (other.weight > best.weight) best = other;
        }
    }
    return best;
}

#define LANES 16

typedef uint8_t bytes __attribute__((vector_size(LANES)));
typedef uint32_t words __attribute__((vector_size(LANES * sizeof(uint32_t))));

/// Sums of so many pixels side by side.
typedef struct {
    words red, green, blue, alpha;
} sums;

/// Adds what of a row lies in a cube, times its alpha; `shown` is 0 for pixels that are not looked at.
FOR_EACH_PROCESSOR static void add_row(
    const cplaceholder_picture *picture, size_t start, const uint8_t *shown, const cube *in, sums *to) {
    for (uint32_t x = 0; x < picture->stride; x += LANES) {
        bytes red, green, blue, alpha, looked_at;
        memcpy(&red, picture->planes[0] + start + x, sizeof red);
        memcpy(&green, picture->planes[1] + start + x, sizeof green);
        memcpy(&blue, picture->planes[2] + start + x, sizeof blue);
        memcpy(&alpha, picture->planes[3] + start + x, sizeof alpha);
        memcpy(&looked_at, shown + x, sizeof looked_at);
        bytes is_in = (bytes)(red - (uint8_t)(in->red << 4) < 32) & (bytes)(green - (uint8_t)(in->green << 4) < 32)
            & (bytes)(blue - (uint8_t)(in->blue << 4) < 32);
        alpha &= looked_at & is_in;
        words weight = __builtin_convertvector(alpha, words);
        to->red += __builtin_convertvector(red, words) * weight;
        to->green += __builtin_convertvector(green, words) * weight;
        to->blue += __builtin_convertvector(blue, words) * weight;
        to->alpha += weight;
    }
}

static uint32_t total(const words *sums) {
    uint32_t result = 0;
    for (int lane = 0; lane < LANES; lane++) result += (*sums)[lane];
    return result;
}

bool cplaceholder_colour_of_picture(const cplaceholder_picture *picture, uint8_t colour[3]) {
    histogram counts;
    count(picture, &counts);
    cube best = heaviest(&counts);
    if (best.weight == 0) return false;
    uint8_t shown[CPLACEHOLDER_MOST_STRIDE];
    uint32_t step = step_in(picture->width);
    for (uint32_t x = 0; x < picture->stride; x++) shown[x] = x % step == 0 ? 255 : 0;
    sums mean = {{0}, {0}, {0}, {0}};
    for (uint32_t y = 0; y < picture->height; y += step_in(picture->height)) {
        add_row(picture, (size_t)y * picture->stride, shown, &best, &mean);
    }
    const words *of_colours[3] = {&mean.red, &mean.green, &mean.blue};
    uint32_t alpha = total(&mean.alpha);
    for (int channel = 0; channel < 3; channel++) {
        colour[channel] = (uint8_t)((total(of_colours[channel]) + alpha / 2) / alpha);
    }
    return true;
}
