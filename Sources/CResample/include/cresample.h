/// Resizes pictures. Averages whole pixels by an integer ratio if there is enough to reduce, then
/// applies Lanczos 3 (Duchon, "Lanczos Filtering in One and Two Dimensions", 1979).
///
/// Pixel `n` covers `n` to `n + 1`. The centre of target pixel `n` is at `x + (n + ½) · width /
/// target width` in the source, by the rectangle. The filter sees pixels outside the rectangle, as
/// if the whole picture were resized and cut afterwards. Beyond the picture there is nothing, and
/// the remaining weights are scaled to a sum of 1.
///
/// 8-bit grey and RGB in the samples' own encoding of light, the usual case, are computed in 16-bit
/// integers with weights of 14 bits. All others are single-precision floats, multiplied and added
/// in a fixed order. So all paths give the same bytes, however wide their vectors.
///
/// The functions keep no state and are thread-safe.
#pragma once

#include "cinterruption.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/// Rows from the top. The order of samples is grey · grey, alpha · red, green, blue · red, green,
/// blue, alpha; 16-bit samples are big-endian. Alpha is straight.
typedef struct {
    /// The first sample of the first row.
    const uint8_t *pixels;
    /// Distance between rows, in bytes.
    size_t stride;
    /// In pixels, 1 or more, like the height.
    uint32_t width;
    uint32_t height;
    /// 1 to 4 samples a pixel.
    int channels;
    /// 8 or 16.
    int bit_depth;
} cresample_source;

/// A part of the source, in its pixels, not necessarily whole ones. Not empty, and inside the
/// picture.
typedef struct {
    double x;
    double y;
    double width;
    double height;
} cresample_rectangle;

/// Rows with the source's channels and bit depth.
typedef struct {
    uint8_t *pixels;
    size_t stride;
    /// In pixels, 1 or more, like the height.
    uint32_t width;
    uint32_t height;
} cresample_target;

typedef enum {
    /// Averages by the largest integer ratio that leaves Lanczos a factor of three or more, per
    /// axis.
    CRESAMPLE_AUTOMATIC,
    /// Lanczos throughout: the reference in comparisons. Floats lose their last bits where one
    /// pixel is made of thousands.
    CRESAMPLE_LANCZOS3,
} cresample_filter;

/// For tests: all give the same bytes.
typedef enum {
    CRESAMPLE_FASTEST,
    /// Without AVX2.
    CRESAMPLE_BASELINE,
    /// Plain C.
    CRESAMPLE_PORTABLE,
} cresample_path;

typedef struct {
    cresample_filter filter;
    /// Whether to add light, decoding samples as sRGB (IEC 61966-2-1), and not their encoded
    /// values.
    bool is_linear;
    cresample_path path;
    /// Checked about every 65,536 bytes; NULL for none.
    cinterruption *_Nullable interruption;
} cresample_options;

/// Resizes a part of the source to the whole target.
///
/// A picture of one colour keeps it exactly, and opaque pictures stay opaque. A part of the
/// target's size that begins at a whole pixel is copied. Colours are weighted by alpha, so colours
/// of transparent pixels do not show; fully transparent pixels of the result are black.
///
/// - `target`: must not overlap the source.
ccodec_status cresample_resize(
    const cresample_source *source, const cresample_rectangle *rectangle,
    const cresample_options *options, const cresample_target *target);

/// The bytes that `cresample_resize` allocates, in one piece, in addition to source and target;
/// `SIZE_MAX` if too large to count. It depends on the widths and the filter's rows, not on the
/// areas. `pixels` is not read.
size_t cresample_memory(
    const cresample_source *source, const cresample_rectangle *rectangle,
    const cresample_options *options, const cresample_target *target);

#pragma clang assume_nonnull end
