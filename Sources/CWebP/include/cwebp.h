/// The boundary to libwebp (1.2.4: the incremental decoder, and the encoder).
///
/// The library reports errors by status. No function keeps state; all may run on several threads at
/// once.
#pragma once

#include "cinterruption.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

typedef struct {
    /// 1 to 16,383; up to 2²⁴ for a canvas (`VP8X`).
    uint32_t width;
    uint32_t height;
    bool has_alpha;
    bool is_animated;
    /// False if the file does not say, as for animations.
    bool is_lossy;
} cwebp_features;

/// Reads the header of a file, or of a frame's data without container.
ccodec_status cwebp_read_header(const uint8_t *bytes, size_t length, cwebp_features *features);

/// Destination of decoded pixels.
typedef struct {
    /// The first sample of the first row: red, green, blue, and alpha if there are four channels,
    /// not premultiplied.
    uint8_t *first;
    /// Distance between rows, in bytes.
    size_t stride;
    /// 3 or 4.
    int channels;
} cwebp_rows;

/// Decodes the picture of a file, or a frame's data, if it has the size that the caller knows.
///
/// The data is given to the library in about one slice a megapixel, and the interruption is checked
/// between slices. A picture of one colour takes no bits, so it is decoded in one step at any size.
///
/// - `rows`: for the whole picture; NULL keeps none, and takes memory for a 64th of the pixels.
ccodec_status cwebp_decode(
    const uint8_t *bytes, size_t length, uint32_t width, uint32_t height,
    const cwebp_rows *_Nullable rows, cinterruption *_Nullable interruption);

/// The memory that the library allocates for prefix code tables, found without decoding. A file of
/// 300 KB may need 1.3 GB. For several pictures it is the memory of the largest one.
///
/// A lossless picture, and the alpha of a lossy one, assigns each of its parts one of up to 65,536
/// groups of codes. libwebp 1.2.4 holds tables of 12 to 20 KB for each group. A file that it
/// refuses before allocating counts as 0. For alpha without a palette, its pixels are included.
///
/// - `chunks`: the chunks of a file after `WEBP`, or a frame's. Truncated chunks count as far as
///   they reach.
/// - `width` and `height`: the picture's, for its alpha.
/// - `effort`: the most steps, some nanoseconds each; on return the steps left. A picture that
///   takes more counts as if it had all groups that its size allows.
uint64_t cwebp_table_bytes(
    const uint8_t *chunks, size_t length, uint32_t width, uint32_t height, uint64_t *effort);

typedef struct {
    /// Lossless for every pixel that is not fully transparent.
    bool is_lossless;
    /// The library's, 0 to 100. Ignored for lossless output.
    float quality;
    /// The library's: 0 (fast) to 6.
    int method;
    /// Whether lossy encoding takes more time and less memory, mostly from method 3 on.
    bool saves_memory;
} cwebp_options;

/// Encodes a picture of 3 or 4 channels, with an alpha channel if any pixel is not opaque. Alpha is
/// lossless.
///
/// The interruption is checked for each row of blocks, and some twenty times for a lossless
/// picture.
///
/// - `maximum`: the most bytes.
/// - `bytes`: the file, with its container and without metadata, for the caller to release with
///   `free`; NULL on failure.
ccodec_status cwebp_encode(
    const ccodec_picture *picture, const cwebp_options *options, size_t maximum,
    cinterruption *_Nullable interruption, uint8_t *_Nullable *_Nonnull bytes, size_t *length);

/// The encoder of an animation. It holds three pictures of the canvas's size, and the output twice
/// at its end.
typedef struct cwebp_animation cwebp_animation;

/// Begins an animation.
///
/// - `plays`: the number of plays; 0, or more than 65,535, for no end.
/// - `animation`: for the caller to release with `cwebp_animation_free`; NULL on failure.
ccodec_status cwebp_animation_begin(
    uint32_t width, uint32_t height, uint32_t plays, const cwebp_options *options,
    cinterruption *_Nullable interruption, cwebp_animation *_Nullable *_Nonnull animation);

/// Adds a frame of the canvas's size and 3 or 4 channels. A frame that equals the last one prolongs
/// it.
///
/// - `start_milliseconds`: the time from the first frame, not before the last one's.
ccodec_status cwebp_animation_add(
    cwebp_animation *animation, const ccodec_picture *picture, uint32_t start_milliseconds);

/// Ends the last frame, and makes the file as `cwebp_encode` does. One frame makes a still picture.
ccodec_status cwebp_animation_end(
    cwebp_animation *animation, uint32_t end_milliseconds, size_t maximum,
    uint8_t *_Nullable *_Nonnull bytes, size_t *length);

void cwebp_animation_free(cwebp_animation *animation);

/// The version of the loaded libwebp, for example 1.2.4.
void cwebp_library_version(char text[_Nonnull 16]);

#pragma clang assume_nonnull end
