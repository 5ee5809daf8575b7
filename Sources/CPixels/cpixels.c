#include "cpixels.h"

#include <math.h>
#include <stdbool.h>

static uint8_t *row_at(const ccodec_picture *picture, uint32_t y) {
    return picture->pixels + (size_t)y * picture->stride;
}

static size_t row_bytes(const ccodec_picture *picture) {
    return (size_t)picture->width * (size_t)picture->channels;
}

/// `value · share / 255`, rounded.
static unsigned parted(unsigned value, unsigned share) { return (value * share + 127) / 255; }

ccodec_status cpixels_tint(
    const ccodec_picture *picture, const uint8_t color[3], uint8_t alpha,
    cinterruption *interruption) {
    int colours = picture->channels >= 3 ? 3 : 1;
    uint8_t tables[3][256];
    for (int channel = 0; channel < colours; channel++) {
        for (unsigned value = 0; value < 256; value++) {
            tables[channel][value] =
                (uint8_t)((color[channel] * alpha + value * (255u - alpha) + 127) / 255);
        }
    }
    for (uint32_t y = 0; y < picture->height; y++) {
        if (cinterruption_after(interruption, row_bytes(picture))) return CCODEC_INTERRUPTED;
        uint8_t *pixel = row_at(picture, y);
        for (uint32_t x = 0; x < picture->width; x++, pixel += picture->channels) {
            for (int channel = 0; channel < colours; channel++) {
                pixel[channel] = tables[channel][pixel[channel]];
            }
        }
    }
    return CCODEC_OK;
}

/// How far the centre of pixel `n` of `count` lies beyond the centres of the corners' circles; 0
/// between them.
static double beyond(uint32_t n, uint32_t count, double radius) {
    double place = n + 0.5;
    double before = radius - place, behind = place - (count - radius);
    return fmax(0, fmax(before, behind));
}

/// Whether a pixel of that row and column lies in the quarter of one of the corners.
static bool is_in(unsigned corners, bool is_top, bool is_left) {
    unsigned corner = is_top ? is_left ? CPIXELS_TOP_LEFT : CPIXELS_TOP_RIGHT
        : is_left            ? CPIXELS_BOTTOM_LEFT
                             : CPIXELS_BOTTOM_RIGHT;
    return (corners & corner) != 0;
}

ccodec_status cpixels_round(
    const ccodec_picture *picture, double radius, unsigned corners,
    cinterruption *interruption) {
    double most = fmin(picture->width, picture->height) / 2;
    if (radius > most) radius = most;
    for (uint32_t y = 0; y < picture->height; y++) {
        if (cinterruption_after(interruption, row_bytes(picture))) return CCODEC_INTERRUPTED;
        double dy = beyond(y, picture->height, radius);
        if (dy == 0) continue;
        uint8_t *alpha = row_at(picture, y) + picture->channels - 1;
        for (uint32_t x = 0; x < picture->width; x++, alpha += picture->channels) {
            double dx = beyond(x, picture->width, radius);
            if (dx == 0 || !is_in(corners, y < picture->height / 2, x < picture->width / 2)) {
                continue;
            }
            double covered = fmin(1, fmax(0, radius - sqrt(dx * dx + dy * dy) + 0.5));
            *alpha = (uint8_t)parted(*alpha, (unsigned)lrint(covered * 255));
        }
    }
    return CCODEC_OK;
}

bool cpixels_is_opaque(const ccodec_picture *picture) {
    if (picture->channels % 2 == 1) return true;
    size_t channels = (size_t)picture->channels;
    for (size_t y = 0; y < picture->height; y++) {
        const uint8_t *alpha = picture->pixels + y * picture->stride + channels - 1;
        uint8_t all = 255;
        for (size_t x = 0; x < picture->width; x++) all &= alpha[x * channels];
        if (all != 255) return false;
    }
    return true;
}
