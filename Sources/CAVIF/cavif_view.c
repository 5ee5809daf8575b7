#include "cavif_view.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const uint8_t *bytes;
    size_t next;
    size_t end;
} walk;

typedef struct {
    size_t start;
    size_t payload;
    size_t end;
    bool is_open_ended;
} box;

static uint64_t number(const uint8_t *bytes, int count) {
    uint64_t value = 0;
    for (int index = 0; index < count; index++) value = value << 8 | bytes[index];
    return value;
}

static bool is_a(const walk *walk, const box *box, const char *type) {
    return memcmp(walk->bytes + box->start + 4, type, 4) == 0;
}

/// Returns false at the end, and at a box that passes it.
static bool next_box(walk *walk, box *box) {
    size_t rest = walk->end - walk->next;
    if (rest < 8) return false;
    const uint8_t *start = walk->bytes + walk->next;
    uint64_t length = number(start, 4);
    size_t head = 8;
    box->is_open_ended = length == 0;
    if (length == 0) length = rest;
    if (length == 1) {
        if (rest < 16) return false;
        length = number(start + 8, 8);
        head = 16;
    }
    if (length < head || length > rest) return false;
    box->start = walk->next;
    box->payload = walk->next + head;
    box->end = walk->next + (size_t)length;
    walk->next = box->end;
    return true;
}

static bool find(const walk *parent, const box *inside, size_t skipped, const char *type, box *found) {
    if (inside->end - inside->payload < skipped) return false;
    walk children = {parent->bytes, inside->payload + skipped, inside->end};
    while (next_box(&children, found)) {
        if (is_a(&children, found, type)) return true;
    }
    return false;
}

/// Whether an `auxi` in the track's sample description names something other than alpha, such as
/// depth.
static bool is_other_auxiliary(const walk *file, const box *media) {
    box information, table, descriptions, entry, auxiliary;
    if (!find(file, media, 0, "minf", &information) || !find(file, &information, 0, "stbl", &table)
        || !find(file, &table, 0, "stsd", &descriptions)
        || !find(file, &descriptions, 8, "av01", &entry)
        // The fields of a visual sample entry (ISO/IEC 14496-12, 12.1.3).
        || !find(file, &entry, 78, "auxi", &auxiliary)) {
        return false;
    }
    static const char *const alpha[] = {
        "urn:mpeg:mpegB:cicp:systems:auxiliary:alpha", "urn:mpeg:hevc:2015:auxid:1"};
    size_t skipped = auxiliary.payload + 4;
    for (size_t index = 0; index < sizeof alpha / sizeof *alpha; index++) {
        size_t length = strlen(alpha[index]) + 1;
        if (auxiliary.end >= skipped && auxiliary.end - skipped >= length
            && memcmp(file->bytes + skipped, alpha[index], length) == 0) {
            return false;
        }
    }
    return true;
}

/// Whether a track is neither picture nor alpha.
static bool is_hidden(const walk *file, const box *track) {
    box media, handler;
    if (!find(file, track, 0, "mdia", &media) || !find(file, &media, 0, "hdlr", &handler)
        || handler.end - handler.payload < 12) {
        return false;
    }
    const uint8_t *type = file->bytes + handler.payload + 8;
    if (memcmp(type, "pict", 4) != 0 && memcmp(type, "auxv", 4) != 0) return true;
    return is_other_auxiliary(file, &media);
}

static bool change(uint8_t **copy, const walk *file, size_t offset, const void *bytes) {
    if (*copy == NULL) {
        *copy = malloc(file->end);
        if (*copy == NULL) return false;
        memcpy(*copy, file->bytes, file->end);
    }
    memcpy(*copy + offset, bytes, 4);
    return true;
}

uint8_t *cavif_view(const uint8_t *bytes, size_t length, int *needs_copy) {
    walk file = {bytes, 0, length};
    uint8_t *copy = NULL;
    box found;
    *needs_copy = 0;
    while (next_box(&file, &found)) {
        size_t total = found.end - found.start;
        if (found.is_open_ended && total <= UINT32_MAX) {
            *needs_copy = 1;
            uint8_t size[4] = {
                (uint8_t)(total >> 24), (uint8_t)(total >> 16), (uint8_t)(total >> 8),
                (uint8_t)total};
            if (!change(&copy, &file, found.start, size)) return NULL;
        }
        if (!is_a(&file, &found, "moov")) continue;
        walk tracks = {bytes, found.payload, found.end};
        box track;
        while (next_box(&tracks, &track)) {
            if (!is_a(&tracks, &track, "trak") || !is_hidden(&file, &track)) continue;
            *needs_copy = 1;
            if (!change(&copy, &file, track.start + 4, "free")) return NULL;
        }
    }
    return copy;
}
