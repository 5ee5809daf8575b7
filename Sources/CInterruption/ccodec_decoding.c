#include "ccodec_decoding.h"

static void unmultiply(uint8_t *pixel, int colours) {
    uint32_t alpha = pixel[colours];
    if (alpha == 0 || alpha == 255) return;
    for (int sample = 0; sample < colours; sample++) {
        uint32_t value = (pixel[sample] * 255u + alpha / 2) / alpha;
        pixel[sample] = (uint8_t)(value > 255 ? 255 : value);
    }
}

static void unmultiply_deep(uint8_t *pixel, int colours) {
    uint32_t alpha = (uint32_t)pixel[2 * colours] << 8 | pixel[2 * colours + 1];
    if (alpha == 0 || alpha == 65535) return;
    for (int sample = 0; sample < colours; sample++) {
        uint8_t *place = pixel + 2 * sample;
        uint64_t stored = (uint64_t)place[0] << 8 | place[1];
        uint64_t value = (stored * 65535 + alpha / 2) / alpha;
        ccodec_put16(place, value > 65535 ? 65535 : (uint32_t)value);
    }
}

void ccodec_unmultiply(uint8_t *samples, const ccodec_header *header) {
    for (uint32_t x = 0; x < header->width; x++) {
        if (header->depth == 16) unmultiply_deep(samples, header->channels - 1);
        else unmultiply(samples, header->channels - 1);
        samples += header->channels * header->depth / 8;
    }
}

void ccodec_convert_inks(
    const uint8_t *from, uint8_t *to, size_t pixels, const ccodec_inks *inks) {
    if (inks->convert) {
        inks->convert(inks->context, from, to, pixels);
        return;
    }
    for (; pixels > 0; pixels--, from += 4, to += 3) {
        for (int sample = 0; sample < 3; sample++) {
            to[sample] = (uint8_t)((from[sample] * from[3] + 127) / 255);
        }
    }
}
