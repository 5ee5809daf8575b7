/// The boxes of the header `jp2h` (ISO/IEC 15444-1, I.5.3), from which the samples that openjpeg
/// will make are known before it decodes.
#pragma once

#include "copenjpeg.h"

typedef struct {
    /// Channels that a palette makes; 0 without one.
    uint32_t palette_channels;
    uint32_t palette_bits;
    /// The place of opacity among the channels; negative for none.
    int alpha;
    bool is_multiplied;
    /// Whether channels are described. A channel without a description is not alpha then.
    bool has_definitions;
    /// The number of the colour space; 0 for none, or for a profile.
    uint32_t colours;
    /// The ICC profile in the file; NULL without one.
    const uint8_t *profile;
    size_t profile_length;
    /// Whether that is for inks (CMYK).
    bool has_profile_of_inks;
} copenjpeg_boxes;

copenjpeg_boxes copenjpeg_read_boxes(const uint8_t *bytes, size_t length)
    __attribute__((visibility("hidden")));
