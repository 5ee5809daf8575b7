/// The boundary to giflib (5.2.1, its functions that read record by record).
///
/// The library reports errors by status. `DGifSlurp`, which holds the pixels of all frames, and
/// `DGifGetImageDesc`, which records each frame, are not used: memory is one row, whatever the
/// file. No function keeps state; all may run on several threads at once.
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
    /// The data ends before the file is complete.
    CGIF_TRUNCATED,
    /// A limit of the caller was exceeded.
    CGIF_LIMIT,
    CGIF_OUT_OF_MEMORY,
    /// Interrupted; the interruption says why.
    CGIF_INTERRUPTED,
} cgif_status;

typedef struct {
    /// The most pixels of all frames together.
    uint64_t maximum_pixels;
    uint32_t maximum_frames;
    /// Checked about every 65,536 pixels; NULL for none.
    cinterruption *_Nullable interruption;
} cgif_limits;

/// Destination of the first frame: a canvas of zeros with a spare byte before each row.
typedef struct {
    /// The first sample of the first row: red, green, blue, and alpha if there are four channels.
    uint8_t *first;
    /// Distance between rows, in bytes.
    size_t stride;
    uint32_t width;
    uint32_t height;
    /// 3 or 4.
    int channels;
} cgif_canvas;

#define CGIF_MESSAGE_BYTES 128

/// Decodes all frames to the file's end, and keeps the pixels of the first if there is a canvas.
/// Pixels beyond the canvas are dropped.
cgif_status cgif_decode(
    const uint8_t *bytes, size_t length, const cgif_limits *limits,
    const cgif_canvas *_Nullable canvas, char message[_Nonnull CGIF_MESSAGE_BYTES]);

/// The version of giflib that this was compiled with; the library has no function for it.
const char *cgif_library_version(void);

#pragma clang assume_nonnull end

#endif
