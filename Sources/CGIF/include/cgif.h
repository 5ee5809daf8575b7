/// The boundary to giflib (5.2.1, its functions that read record by record).
///
/// The library reports errors by status. `DGifSlurp`, which holds the pixels of all frames, and
/// `DGifGetImageDesc`, which records each frame, are not used: memory is one row for every
/// file. The functions keep no state and are thread-safe.
#pragma once

#include "cinterruption.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

typedef struct {
    uint32_t maximum_frames;
    /// Checked about every 65,536 pixels; NULL for none.
    cinterruption *_Nullable interruption;
} cgif_limits;

/// Decodes all frames to the file's end, and keeps the pixels of the first if there is a canvas.
/// Pixels beyond the canvas are dropped. A file that ends behind a block needs no trailer.
///
/// - `canvas`: zeros, of 3 or 4 channels.
ccodec_status cgif_decode(
    const uint8_t *bytes, size_t length, const cgif_limits *limits,
    const ccodec_picture *_Nullable canvas, char message[_Nonnull CCODEC_MESSAGE_BYTES]);

/// A frame with its own pixels, as far as it lies within the canvas.
typedef struct {
    /// Rows of a spare byte, and red, green, blue and alpha for each pixel; alpha is 0 or 255. For
    /// the caller to release with `free`; NULL after the last frame.
    uint8_t *_Nullable rows;
    uint32_t x;
    uint32_t y;
    uint32_t width;
    uint32_t height;
    uint32_t delay_centiseconds;
    /// The file's: 2 restores the background, 3 the previous pixels.
    int disposal;
} cgif_frame;

/// Reads frames one after the other.
typedef struct cgif_reader cgif_reader;

/// Opens a file. Its bytes must outlive the reader. Frames are cut to a canvas of `width` and
/// `height`.
///
/// - `reader`: for the caller to release with `cgif_close`; NULL on failure.
ccodec_status cgif_open(
    const uint8_t *bytes, size_t length, uint32_t width, uint32_t height, const cgif_limits *limits,
    char message[_Nonnull CCODEC_MESSAGE_BYTES], cgif_reader *_Nullable *_Nonnull reader);

/// Decodes the next frame. After a failure the reader is only good for closing.
ccodec_status cgif_next(
    cgif_reader *reader, cgif_frame *frame, char message[_Nonnull CCODEC_MESSAGE_BYTES]);

void cgif_close(cgif_reader *reader);

/// The encoder of an animation, with a palette for each frame.
typedef struct cgif_writer cgif_writer;

/// Begins an animation.
///
/// - `width` and `height`: 1 to 65,535.
/// - `plays`: the number of plays; 0, or more than 65,536, for no end.
/// - `maximum`: the most bytes of the file; more are `CCODEC_LIMIT`.
/// - `writer`: for the caller to release with `cgif_discard`; NULL on failure.
ccodec_status cgif_begin(
    uint32_t width, uint32_t height, uint32_t plays, size_t maximum,
    cinterruption *_Nullable interruption, cgif_writer *_Nullable *_Nonnull writer);

/// Adds a frame of the canvas's size. Pixels that are less than half opaque become transparent.
///
/// A frame of more colours than a palette has is reduced by giflib's median cut. Only the part that
/// differs from the last frame is written.
///
/// - `pixels`: the first sample of the first row: red, green, blue, and alpha if there are four
///   channels.
/// - `stride`: distance between rows, in bytes.
/// - `delay_centiseconds`: 0 to 65,535.
ccodec_status cgif_add(
    cgif_writer *writer, const uint8_t *pixels, size_t stride, int channels,
    uint32_t delay_centiseconds);

/// Writes the rest of the file.
///
/// - `bytes`: the file, for the caller to release with `free`; NULL on failure.
ccodec_status cgif_end(cgif_writer *writer, uint8_t *_Nullable *_Nonnull bytes, size_t *length);

void cgif_discard(cgif_writer *writer);

/// The version of giflib that this was compiled with; the library has no function for it.
const char *cgif_library_version(void);

#pragma clang assume_nonnull end
