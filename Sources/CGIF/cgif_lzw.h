/// Decodes the pixels of GIF frames (GIF89a, appendix F).
///
/// giflib's own decoder accepts codes that its table does not have, and shows other pixels for
/// them.
#ifndef CGIF_LZW_H
#define CGIF_LZW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

enum { CGIF_LZW_BITS = 12, CGIF_LZW_CODES = 1 << CGIF_LZW_BITS };

typedef enum {
    CGIF_LZW_OK = 0,
    /// The file ends before the frame's data does.
    CGIF_LZW_CUT,
    /// The frame's data ends before its last pixel.
    CGIF_LZW_SHORT,
    /// A code that stands for nothing.
    CGIF_LZW_INVALID,
} cgif_lzw_status;

/// The state of one frame; constant in size.
typedef struct {
    const uint8_t *bytes;
    size_t length;
    /// The next byte of the file.
    size_t offset;
    /// The bytes that are left of the current sub-block.
    size_t block;
    uint32_t bit_buffer;
    unsigned bit_count;
    unsigned minimum_bits;
    unsigned bits;
    /// The code that the table gets next.
    unsigned next;
    /// The code before; -1 after a clear code.
    int previous;
    uint8_t first_of_previous;
    /// Pixels of the last code that did not fit into the row, the next one last.
    unsigned waiting;
    uint8_t stack[CGIF_LZW_CODES];
    uint16_t prefixes[CGIF_LZW_CODES];
    uint8_t suffixes[CGIF_LZW_CODES];
} cgif_lzw;

/// Begins a frame at its first sub-block. `minimum_bits` is at most 8.
void cgif_lzw_begin(
    cgif_lzw *lzw, const uint8_t *bytes, size_t length, size_t offset, unsigned minimum_bits)
    __attribute__((visibility("hidden")));

/// Decodes the next pixels.
cgif_lzw_status cgif_lzw_read(cgif_lzw *lzw, uint8_t *row, size_t count)
    __attribute__((visibility("hidden")));

/// Skips the rest of the frame's sub-blocks; `offset` is then after them.
cgif_lzw_status cgif_lzw_end(cgif_lzw *lzw) __attribute__((visibility("hidden")));

#pragma clang assume_nonnull end

#endif
