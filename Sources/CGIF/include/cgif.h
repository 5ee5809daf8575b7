/// The boundary to giflib (5.2.1, its functions for one record after the other).
///
/// The library reports errors by status. `DGifSlurp`, which holds the pixels of all frames, and `DGifGetImageDesc`,
/// which notes each frame, are not used: memory is one row, whatever the file. No function keeps state; all may run on
/// several threads at once.
#ifndef CGIF_H
#define CGIF_H

#include "cinterruption.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

typedef enum {
    CGIF_OK = 0,
    CGIF_CORRUPT,
    /// The data ends before the file does.
    CGIF_TRUNCATED,
    /// A limit of the caller was passed.
    CGIF_LIMIT,
    CGIF_OUT_OF_MEMORY,
    /// The interruption has the cause.
    CGIF_INTERRUPTED,
} cgif_status;

typedef struct {
    /// Pixels of all frames together.
    uint64_t maximum_pixels;
    uint32_t maximum_frames;
    /// Looked at every 65 536 pixels or so; NULL for none.
    cinterruption *_Nullable interruption;
} cgif_limits;

/// Where the first frame goes: a canvas with a spare byte in front of each row, which begins as all zeros.
typedef struct {
    /// The first sample of the first row: red, green, blue, and alpha where there are four.
    uint8_t *first;
    /// From a row to the next, in bytes.
    size_t stride;
    uint32_t width;
    uint32_t height;
    /// 3 or 4.
    int channels;
} cgif_canvas;

#define CGIF_MESSAGE_BYTES 128

/// Decodes all frames to the file's end, and keeps the pixels of the first, where there is a canvas for it. What of it
/// lies beyond the canvas is left out.
cgif_status cgif_decode(
    const uint8_t *bytes, size_t length, const cgif_limits *limits,
    const cgif_canvas *_Nullable canvas, char message[_Nonnull CGIF_MESSAGE_BYTES]);

/// The version of giflib that this was compiled with; the library does not say.
const char *cgif_library_version(void);

#pragma clang assume_nonnull end

#endif
