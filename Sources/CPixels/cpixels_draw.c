#include "cpixels.h"

#include <string.h>

/// The part of a range of `length` from `start` that lies within 0..<`limit`.
static bool clip(
    int64_t start, uint32_t length, uint32_t limit, uint32_t *first, uint32_t *count) {
    int64_t end = start + length;
    if (end > limit) end = limit;
    if (start < 0) start = 0;
    if (start >= end) return false;
    *first = (uint32_t)start;
    *count = (uint32_t)(end - start);
    return true;
}

static uint8_t *pixel_at(const ccodec_picture *picture, uint32_t x, uint32_t y) {
    return picture->pixels + (size_t)y * picture->stride + (size_t)x * (size_t)picture->channels;
}

static void replace(
    const uint8_t *from, int from_channels, uint8_t *to, int to_channels, uint32_t count) {
    if (from_channels == to_channels) {
        memcpy(to, from, (size_t)count * (size_t)to_channels);
        return;
    }
    int colours = to_channels < 3 ? 1 : 3;
    for (; count > 0; count--, from += from_channels, to += to_channels) {
        memcpy(to, from, (size_t)colours);
        if (to_channels > colours) to[colours] = 255;
    }
}

static inline __attribute__((always_inline)) void blend(
    const uint8_t *from, int colours, uint8_t *to, bool has_alpha, uint32_t count) {
    for (; count > 0; count--, from += colours + 1, to += colours + has_alpha) {
        unsigned alpha = from[colours];
        if (alpha == 0) continue;
        if (alpha == 255) {
            // Copies of constant lengths need no call.
            memcpy(to, from, (size_t)colours);
            if (has_alpha) to[colours] = 255;
            continue;
        }
        // Shares of 255 × 255.
        unsigned above = alpha * 255;
        unsigned below = (has_alpha ? to[colours] : 255u) * (255 - alpha);
        unsigned whole = above + below;
        for (int channel = 0; channel < colours; channel++) {
            to[channel] =
                (uint8_t)((from[channel] * above + to[channel] * below + whole / 2) / whole);
        }
        if (has_alpha) to[colours] = (uint8_t)((whole + 127) / 255);
    }
}

void cpixels_draw(
    const ccodec_picture *source, const ccodec_picture *target, int64_t x, int64_t y,
    bool is_blended) {
    uint32_t left, top, width, height;
    if (!clip(x, source->width, target->width, &left, &width)
        || !clip(y, source->height, target->height, &top, &height)) {
        return;
    }
    for (uint32_t row = 0; row < height; row++) {
        const uint8_t *from =
            pixel_at(source, (uint32_t)(left - x), (uint32_t)(top + row - y));
        uint8_t *to = pixel_at(target, left, top + row);
        bool has_alpha = target->channels % 2 == 0;
        if (is_blended && source->channels == 4) {
            blend(from, 3, to, has_alpha, width);
        } else if (is_blended && source->channels == 2) {
            blend(from, 1, to, has_alpha, width);
        } else {
            replace(from, source->channels, to, target->channels, width);
        }
    }
}

void cpixels_fill(const ccodec_picture *picture, const uint8_t color[4]) {
    uint8_t pixel[4] = {color[0], color[1], color[2], color[3]};
    if (picture->channels < 3) pixel[1] = color[3];
    size_t channels = (size_t)picture->channels;
    for (uint32_t x = 0; x < picture->width; x++) {
        memcpy(picture->pixels + x * channels, pixel, channels);
    }
    for (uint32_t row = 1; row < picture->height; row++) {
        memcpy(pixel_at(picture, 0, row), picture->pixels, picture->width * channels);
    }
}

void cpixels_clear(
    const ccodec_picture *picture, int64_t x, int64_t y, uint32_t width, uint32_t height) {
    uint32_t left, top;
    if (!clip(x, width, picture->width, &left, &width)
        || !clip(y, height, picture->height, &top, &height)) {
        return;
    }
    for (uint32_t row = 0; row < height; row++) {
        memset(pixel_at(picture, left, top + row), 0, (size_t)width * (size_t)picture->channels);
    }
}

bool cpixels_difference(
    const ccodec_picture *first, const ccodec_picture *second, cpixels_rectangle *difference) {
    size_t channels = (size_t)first->channels;
    size_t bytes = first->width * channels;
    uint32_t top = 0, bottom = first->height;
    while (top < bottom && memcmp(pixel_at(first, 0, top), pixel_at(second, 0, top), bytes) == 0) {
        top++;
    }
    if (top == bottom) return false;
    while (memcmp(pixel_at(first, 0, bottom - 1), pixel_at(second, 0, bottom - 1), bytes) == 0) {
        bottom--;
    }
    size_t left = bytes, right = 0;
    for (uint32_t y = top; y < bottom; y++) {
        const uint8_t *a = pixel_at(first, 0, y), *b = pixel_at(second, 0, y);
        for (size_t x = 0; x < left; x++) {
            if (a[x] != b[x]) left = x;
        }
        for (size_t x = bytes; x > right; x--) {
            if (a[x - 1] != b[x - 1]) right = x;
        }
    }
    difference->x = (uint32_t)(left / channels);
    difference->y = top;
    difference->width = (uint32_t)((right + channels - 1) / channels) - difference->x;
    difference->height = bottom - top;
    return true;
}
