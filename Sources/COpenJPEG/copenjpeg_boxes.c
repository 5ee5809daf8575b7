#include "copenjpeg_boxes.h"

#include <string.h>

static uint32_t number(const uint8_t *bytes, int count) {
    uint32_t value = 0;
    for (int index = 0; index < count; index++) value = value << 8 | bytes[index];
    return value;
}

/// Finds a box among the boxes from `bytes` on; NULL without a whole one. `length` becomes that of
/// its content.
static const uint8_t *box(const uint8_t *bytes, size_t *length, const char *type) {
    size_t rest = *length;
    while (rest >= 8) {
        uint64_t size = number(bytes, 4), head = 8;
        if (size == 1 && rest >= 16) {
            size = (uint64_t)number(bytes + 8, 4) << 32 | number(bytes + 12, 4);
            head = 16;
        } else if (size == 0) {
            size = rest;
        }
        if (size < head || size > rest) return NULL;
        if (memcmp(bytes + 4, type, 4) == 0) {
            *length = size - head;
            return bytes + head;
        }
        bytes += size;
        rest -= size;
    }
    return NULL;
}

/// Channel definitions (I.5.3.6): number, type and association of each.
static void read_definitions(copenjpeg_boxes *boxes, const uint8_t *content, size_t length) {
    if (length < 2) return;
    uint32_t count = number(content, 2);
    boxes->has_definitions = true;
    for (uint32_t index = 0; index < count && 2 + 6 * (size_t)(index + 1) <= length; index++) {
        const uint8_t *entry = content + 2 + 6 * index;
        uint32_t type = number(entry + 2, 2), association = number(entry + 4, 2);
        // 1 is opacity, 2 premultiplied opacity, here of the whole picture.
        if ((type != 1 && type != 2) || association != 0 || boxes->alpha >= 0) continue;
        boxes->alpha = (int)number(entry, 2);
        boxes->is_multiplied = type == 2;
    }
}

copenjpeg_boxes copenjpeg_read_boxes(const uint8_t *bytes, size_t length) {
    copenjpeg_boxes boxes = {.alpha = -1};
    size_t size = length;
    const uint8_t *header = box(bytes, &size, "jp2h");
    if (header == NULL) return boxes;
    size_t part = size;
    const uint8_t *content = box(header, &part, "pclr");
    if (content && part > 3 && content[2] > 0) {
        boxes.palette_channels = content[2];
        boxes.palette_bits = (content[3] & 0x7Fu) + 1;
    }
    part = size;
    content = box(header, &part, "cdef");
    if (content) read_definitions(&boxes, content, part);
    part = size;
    content = box(header, &part, "colr");
    // The first one counts. Method 1 is a number, 2 and 3 are profiles.
    if (content && part >= 7 && content[0] == 1) boxes.colours = number(content + 3, 4);
    if (content && part > 3 + 128 && (content[0] == 2 || content[0] == 3)) {
        boxes.profile = content + 3;
        boxes.profile_length = part - 3;
        boxes.has_profile_of_inks = memcmp(boxes.profile + 16, "CMYK", 4) == 0;
    }
    return boxes;
}
