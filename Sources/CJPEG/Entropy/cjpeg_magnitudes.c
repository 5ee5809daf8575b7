#include "cjpeg_magnitudes.h"

#include <jpeglib.h>

/// The most places that one step advances.
enum { MOST_STEPS = DCTSIZE2 };

void cjpeg_make_magnitudes(const cjpeg_codes *codes, cjpeg_magnitudes *magnitudes) {
    for (size_t bits = 0; bits < 1 << CJPEG_LOOK; bits++) {
        uint32_t known = codes->known[bits], meaning = known >> 16;
        magnitudes->known[bits] = known;
        if (meaning == 0) continue;
        uint32_t magnitude = meaning % CJPEG_SMALL_MAGNITUDES, distance = meaning / CJPEG_SMALL_MAGNITUDES;
        int value = cjpeg_extend(magnitude, 31 - (unsigned)__builtin_clz(magnitude));
        magnitudes->known[bits] = (uint32_t)(uint16_t)value << 16 | distance << 8 | (known & 255);
    }
}

void cjpeg_make_steps(const cjpeg_codes *codes, cjpeg_steps *steps) {
    for (unsigned bits = 0; bits < 1 << CJPEG_LOOK; bits++) {
        unsigned taken = 0, distance = 0, end = 0;
        while (taken < CJPEG_LOOK && distance < MOST_STEPS && end == 0) {
            // Unknown bits count as zero.
            unsigned found = codes->symbol[bits << taken & ((1 << CJPEG_LOOK) - 1)];
            unsigned length = found >> 8, symbol = found & 255, category = symbol & 15;
            if (length == 0 || length > CJPEG_LOOK - taken) break;
            // A symbol that no baseline file has is not skipped.
            if (category > 10 || (category == 0 && symbol != 0 && symbol != 0xF0)) break;
            taken += length + category;
            if (symbol == 0) {
                end = CJPEG_END;
            } else {
                distance += (symbol >> 4) + 1;
            }
        }
        if (distance > MOST_STEPS) distance = MOST_STEPS;
        steps->known[bits] =
            (uint16_t)(taken == 0 ? CJPEG_UNKNOWN * CJPEG_STEP : taken + (distance + end) * CJPEG_STEP);
    }
}
