/// The boundary to libwebp (1.2.4, the incremental decoder).
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

/// The version of the libwebp that is loaded, as 1.2.4.
void cwebp_library_version(char text[_Nonnull 16]);

#pragma clang assume_nonnull end

#endif
