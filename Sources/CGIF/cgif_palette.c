#include "cgif_palette.h"

#include <stdlib.h>

/// The pixels of a cell, or those nearest to a colour.
typedef struct {
    uint64_t count, red, green, blue;
} pixel_sum;

enum { mostColors = 256, cells = 1 << 15, rounds = 3 };

/// A palette as numbers. Entries beyond its colours are far from every colour.
typedef struct {
    float red[mostColors], green[mostColors], blue[mostColors];
} color_table;

static color_table table_of(const GifColorType *colors, int count) {
    color_table t;
    for (int i = 0; i < mostColors; i++) {
        t.red[i] = i < count ? colors[i].Red : 1000;
        t.green[i] = i < count ? colors[i].Green : 1000;
        t.blue[i] = i < count ? colors[i].Blue : 1000;
    }
    return t;
}

/// Returns the first of the nearest colours. Distances are whole numbers below 2²⁴, so floats
/// hold them exactly.
static int nearest(const color_table *t, float red, float green, float blue) {
    float distances[mostColors];
    for (int i = 0; i < mostColors; i++) {
        float r = t->red[i] - red, g = t->green[i] - green, b = t->blue[i] - blue;
        distances[i] = r * r + g * g + b * b;
    }
    // Several minima, since one would wait for each comparison.
    float least[8];
    for (int k = 0; k < 8; k++) least[k] = distances[k];
    for (int i = 8; i < mostColors; i += 8) {
        for (int k = 0; k < 8; k++) {
            least[k] = distances[i + k] < least[k] ? distances[i + k] : least[k];
        }
    }
    float minimum = least[0];
    for (int k = 1; k < 8; k++) minimum = least[k] < minimum ? least[k] : minimum;
    int place = 0;
    while (distances[place] != minimum) place++;
    return place;
}

static uint8_t mean(uint64_t sum, uint64_t count) { return (uint8_t)((sum + count / 2) / count); }

/// Returns whether a colour has moved.
static bool move(GifColorType *colors, int count, const pixel_sum *filled, size_t filled_count) {
    color_table t = table_of(colors, count);
    pixel_sum sums[mostColors] = {0};
    for (size_t i = 0; i < filled_count; i++) {
        const pixel_sum *cell = &filled[i];
        int place = nearest(
            &t, mean(cell->red, cell->count), mean(cell->green, cell->count),
            mean(cell->blue, cell->count));
        sums[place].count += cell->count;
        sums[place].red += cell->red;
        sums[place].green += cell->green;
        sums[place].blue += cell->blue;
    }
    bool has_moved = false;
    for (int i = 0; i < count; i++) {
        const pixel_sum *s = &sums[i];
        if (s->count == 0) continue;
        GifColorType color = {
            mean(s->red, s->count), mean(s->green, s->count), mean(s->blue, s->count)};
        has_moved |= color.Red != colors[i].Red || color.Green != colors[i].Green
            || color.Blue != colors[i].Blue;
        colors[i] = color;
    }
    return has_moved;
}

ccodec_status cgif_refine(
    const uint8_t *red, const uint8_t *green, const uint8_t *blue, size_t count,
    GifColorType *colors, int colors_count, uint8_t *to, cinterruption *interruption) {
    pixel_sum *sums = calloc(cells, sizeof *sums);
    if (sums == NULL) return CCODEC_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        pixel_sum *cell = &sums[(red[i] >> 3) << 10 | (green[i] >> 3) << 5 | blue[i] >> 3];
        cell->count++;
        cell->red += red[i];
        cell->green += green[i];
        cell->blue += blue[i];
    }
    size_t filled = 0;
    for (size_t i = 0; i < cells; i++) {
        if (sums[i].count > 0) sums[filled++] = sums[i];
    }
    bool is_interrupted = false;
    for (int round = 0; round < rounds && !is_interrupted; round++) {
        is_interrupted = cinterruption_after(interruption, filled * mostColors);
        if (!is_interrupted && !move(colors, colors_count, sums, filled)) break;
    }
    free(sums);
    color_table t = table_of(colors, colors_count);
    for (size_t i = 0; i < count && !is_interrupted; i++) {
        bool is_same =
            i > 0 && red[i] == red[i - 1] && green[i] == green[i - 1] && blue[i] == blue[i - 1];
        to[i] = is_same ? to[i - 1] : (uint8_t)nearest(&t, red[i], green[i], blue[i]);
        is_interrupted = !is_same && cinterruption_after(interruption, mostColors);
    }
    return is_interrupted ? CCODEC_INTERRUPTED : CCODEC_OK;
}
