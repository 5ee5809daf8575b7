#include "cjpeg_bits.h"

#include <string.h>

/// Appends to the window, up to its size or the next marker. Returns false if the source ends
/// first.
static bool take_bytes(cjpeg_window *window) {
    uint8_t *to = (uint8_t *)(uintptr_t)window->end, *full = window->bytes + CJPEG_WINDOW_BYTES;
    const uint8_t *from = window->source;
    bool is_ended = false;
    while (to < full) {
        size_t room = (size_t)(full - to), left = (size_t)(window->source_end - from);
        size_t most = room < left ? room : left;
        const uint8_t *found = memchr(from, 0xFF, most);
        size_t plain = found != NULL ? (size_t)(found - from) : most;
        memcpy(to, from, plain);
        to += plain;
        from += plain;
        if (found == NULL && plain == room) break;
        // No marker; the last byte may be half of one.
        if (window->source_end - from < 2) {
            is_ended = true;
            break;
        }
        if (from[1] != 0) {
            window->is_last = true;
            break;
        }
        *to++ = 0xFF;
        from += 2;
    }
    window->source = from;
    window->end = to;
    if (is_ended) return false;
    if (window->is_last) {
        memset(to, 0, CJPEG_BLOCK_BYTES + sizeof(uint64_t));
        // Bytes beyond the end have been read ahead.
        window->limit = to + sizeof(uint64_t);
    } else {
        window->limit = to - CJPEG_BLOCK_BYTES;
    }
    return true;
}

bool cjpeg_begin_segment(cjpeg_window *window, cjpeg_bits *bits) {
    window->end = window->bytes;
    window->is_last = false;
    *bits = (cjpeg_bits){.next = window->bytes};
    return take_bytes(window);
}

bool cjpeg_move_window(cjpeg_window *window, cjpeg_bits *bits) {
    if (window->is_last || bits->next > window->end) return false;
    size_t left = (size_t)(window->end - bits->next);
    memmove(window->bytes, bits->next, left);
    bits->next = window->bytes;
    window->end = window->bytes + left;
    return take_bytes(window);
}

ptrdiff_t cjpeg_unread_bytes(const cjpeg_window *window, const cjpeg_bits *bits) {
    // Whole bytes among the present bits count as unread.
    return (window->end - bits->next) + (ptrdiff_t)((bits->count & 63) >> 3);
}

bool cjpeg_is_at_end(const cjpeg_window *window, const cjpeg_bits *bits) {
    return window->is_last && cjpeg_unread_bytes(window, bits) == 0;
}
