#include "cplaceholder.h"

#include <string.h>

// Levels of 16 a channel; a cube has two of them a side, so it begins at one of 15.
#define LEVELS 16
#define CUBES 15

static size_t level_of(const uint8_t *pixel) {
    return (size_t)(pixel[0] >> 4) * LEVELS * LEVELS + (size_t)(pixel[1] >> 4) * LEVELS + (pixel[2] >> 4);
}

/// The first cube that a level is in, and how many there are, on one axis.
static unsigned first_cube(unsigned level) { return level == 0 ? 0 : level - 1; }
static unsigned last_cube(unsigned level) { return level == LEVELS - 1 ? CUBES - 1 : level; }

static void add_to_cubes(uint32_t *cubes, size_t level, uint32_t weight) {
    unsigned red = (unsigned)(level / (LEVELS * LEVELS));
    unsigned green = (unsigned)(level / LEVELS % LEVELS);
    unsigned blue = (unsigned)(level % LEVELS);
    for (unsigned r = first_cube(red); r <= last_cube(red); r++) {
        for (unsigned g = first_cube(green); g <= last_cube(green); g++) {
            for (unsigned b = first_cube(blue); b <= last_cube(blue); b++) {
                cubes[(r * LEVELS + g) * LEVELS + b] += weight;
            }
        }
    }
}

/// Whether a channel lies in a cube.
static bool is_in(unsigned level, unsigned cube) { return level == cube || level == cube + 1; }

/// The next pixel that is looked at: every second one of a side with many.
typedef struct {
    const uint8_t *rgba;
    uint32_t width, height, x, y;
} walk;

#define MANY_PIXELS 24

static const uint8_t *next_pixel(walk *at) {
    if (at->x >= at->width) {
        at->x = 0;
        at->y += at->height > MANY_PIXELS ? 2 : 1;
    }
    if (at->y >= at->height) return NULL;
    const uint8_t *pixel = at->rgba + 4 * ((size_t)at->y * at->width + at->x);
    at->x += at->width > MANY_PIXELS ? 2 : 1;
    return pixel;
}

bool cplaceholder_colour(const uint8_t *rgba, uint32_t width, uint32_t height, uint8_t colour[3]) {
    const uint8_t *pixel;
    walk counted = {rgba, width, height, 0, 0}, averaged = counted;
    uint32_t levels[LEVELS * LEVELS * LEVELS] = {0};
    uint32_t cubes[LEVELS * LEVELS * LEVELS] = {0};
    uint16_t known[LEVELS * LEVELS * LEVELS];
    size_t count = 0;
    while ((pixel = next_pixel(&counted)) != NULL) {
        if (pixel[3] == 0) continue;
        size_t level = level_of(pixel);
        if (levels[level] == 0) known[count++] = (uint16_t)level;
        levels[level] += pixel[3];
    }
    if (count == 0) return false;
    for (size_t index = 0; index < count; index++) add_to_cubes(cubes, known[index], levels[known[index]]);
    size_t best = 0;
    for (size_t cube = 1; cube < LEVELS * LEVELS * LEVELS; cube++) {
        if (cubes[cube] > cubes[best]) best = cube;
    }
    unsigned red = (unsigned)(best / (LEVELS * LEVELS)), green = (unsigned)(best / LEVELS % LEVELS);
    unsigned blue = (unsigned)(best % LEVELS);
    uint64_t sums[3] = {0}, alphas = 0;
    while ((pixel = next_pixel(&averaged)) != NULL) {
        if (!is_in(pixel[0] >> 4, red) || !is_in(pixel[1] >> 4, green) || !is_in(pixel[2] >> 4, blue)) continue;
        for (int channel = 0; channel < 3; channel++) sums[channel] += (uint32_t)pixel[channel] * pixel[3];
        alphas += pixel[3];
    }
    for (int channel = 0; channel < 3; channel++) {
        colour[channel] = (uint8_t)((sums[channel] + alphas / 2) / alphas);
    }
    return true;
}
