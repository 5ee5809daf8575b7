/// The boundary to libwebp (1.2.4: the incremental decoder, and the encoder).
///
/// The library reports errors by status. No function keeps state; all may run on several threads at once.
#ifndef CWEBP_H
#define CWEBP_H

#include "cinterruption.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

typedef enum {
    CWEBP_OK = 0,
    CWEBP_CORRUPT,
    /// The data ends before the image does.
    CWEBP_TRUNCATED,
    CWEBP_OUT_OF_MEMORY,
    /// The interruption has the cause.
    CWEBP_INTERRUPTED,
    /// What is made would have more bytes than it may have.
    CWEBP_TOO_LARGE,
    /// What the format cannot hold.
    CWEBP_FAILED,
} cwebp_status;

typedef struct {
    /// 1 to 16 383; of a canvas (`VP8X`) to 2²⁴.
    uint32_t width;
    uint32_t height;
    bool has_alpha;
    bool is_animated;
    /// False where the file does not say, which is so of animations.
    bool is_lossy;
} cwebp_features;

/// Reads the header of a file, or of a frame's data without a container.
cwebp_status cwebp_read_header(const uint8_t *bytes, size_t length, cwebp_features *features);

/// Where decoded pixels go.
typedef struct {
    /// The first sample of the first row: red, green, blue, and alpha where there are four, not premultiplied.
    uint8_t *first;
    /// From a row to the next, in bytes.
    size_t stride;
    /// 3 or 4.
    int channels;
} cwebp_rows;

/// Decodes the picture of a file, or a frame's data, as long as its size is the one that the caller knows.
///
/// The library decodes what comes with each of about as many slices as the picture has megapixels, and the
/// interruption is looked at between them. A picture whose pixels cost no bits is decoded at once, however large.
///
/// - `rows`: for the whole picture; NULL keeps nothing, and takes memory for a 64th of the pixels.
cwebp_status cwebp_decode(
    const uint8_t *bytes, size_t length, uint32_t width, uint32_t height,
    const cwebp_rows *_Nullable rows, cinterruption *_Nullable interruption);

/// What the library allocates for the tables of prefix codes, which a file of 300 KB may have 1.3 GB of: followed as far as
/// these are known, without decoding. For more than one picture it is the most of one.
///
/// A lossless picture, and the alpha of a lossy one, says for each part of it which of up to 65 536 groups of codes it has;
/// libwebp 1.2.4 holds tables of 12 to 20 KB for each group. What it refuses before it has any is 0. Alpha that is not
/// of a palette counts with what it takes beside them, too.
///
/// - `chunks`: those of a file behind `WEBP`, or a frame's. Those that are cut count as far as they are there.
/// - `width` and `height`: of the picture, for its alpha.
/// - `effort`: steps, some nanoseconds each, that the look may take, and on return those that are left. A picture that
///   takes more is answered as if it had all groups that its size allows.
uint64_t cwebp_table_bytes(
    const uint8_t *chunks, size_t length, uint32_t width, uint32_t height, uint64_t *effort);

/// Pixels to encode: red, green, blue, and alpha where there are four channels, not premultiplied.
typedef struct {
    /// The first sample of the first row.
    const uint8_t *first;
    /// From a row to the next, in bytes.
    size_t stride;
    uint32_t width;
    uint32_t height;
    /// 3 or 4.
    int channels;
} cwebp_picture;

typedef struct {
    /// Of every sample of a pixel that is not fully transparent.
    bool is_lossless;
    /// The library's: 0 to 100. Not looked at where the result is lossless.
    float quality;
    /// The library's: 0 (fast) to 6.
    int method;
} cwebp_options;

/// Encodes a picture, with an alpha channel where any pixel is not opaque. Alpha itself loses nothing.
///
/// The interruption is looked at for each row of blocks, and some twenty times for a lossless picture.
///
/// - `maximum`: of the bytes made.
/// - `bytes`: the file, a container of its own without metadata, for the caller to release with `free`; NULL without
///   success.
cwebp_status cwebp_encode(
    const cwebp_picture *picture, const cwebp_options *options, size_t maximum,
    cinterruption *_Nullable interruption, uint8_t *_Nullable *_Nonnull bytes, size_t *length);

/// The version of the libwebp that is loaded, as 1.2.4.
void cwebp_library_version(char text[_Nonnull 16]);

#pragma clang assume_nonnull end

#endif
