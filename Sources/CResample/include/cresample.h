/// Resizes pictures: averages of whole pixels by an integer ratio, where there is enough to reduce,
/// then Lanczos 3 (Duchon, "Lanczos Filtering in One and Two Dimensions", 1979) for the rest.
///
/// Pixel `n` covers `n` to `n + 1`. The target's pixel `n` has its centre where the source has
/// `x + (n + ½) · width / target width`, by the rectangle. The filter sees pixels outside of the
/// rectangle, as if the whole picture were resized and cut afterwards; beyond the picture there is
/// nothing, and the weights that are left are scaled so that their sum is 1.
///
/// Grey and RGB of 8 bits in the samples' own encoding of light, the usual case, are computed in
/// integers of 16 bits with weights of 14. All others are single-precision floats, multiplied and
/// added in one order. So all paths give the same bytes, however wide their vectors.
///
/// No function keeps state; all may run on several threads at once.
#ifndef CRESAMPLE_H
#define CRESAMPLE_H

#include "cinterruption.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

typedef enum {
    CRESAMPLE_OK = 0,
    CRESAMPLE_OUT_OF_MEMORY,
    /// The interruption has the cause; the target's bytes mean nothing.
    CRESAMPLE_INTERRUPTED,
} cresample_status;

/// Rows from the top. Samples follow each other in the order grey · grey, alpha · red, green, blue · red, green,
/// blue, alpha; those of 16 bits are big-endian. Alpha is straight.
typedef struct {
    /// The first sample of the first row.
    const uint8_t *pixels;
    /// From a row to the next, in bytes.
    size_t stride;
    /// In pixels, 1 or more, as the height.
    uint32_t width;
    uint32_t height;
    /// 1 to 4 samples a pixel.
    int channels;
    /// 8 or 16.
    int bit_depth;
} cresample_source;

/// A part of the source, in its pixels; may begin and end between them. Not empty, and inside of the picture.
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
    /// In pixels, 1 or more, as the height.
    uint32_t width;
    uint32_t height;
} cresample_target;

typedef enum {
    /// Averages by the largest integer ratio that leaves Lanczos a factor of three or more, on each axis for itself.
    CRESAMPLE_AUTOMATIC,
    /// Lanczos for all of it: what the other is measured by. Floats lose their last bits where one pixel is made of
    /// thousands.
    CRESAMPLE_LANCZOS3,
} cresample_filter;

/// For tests: all give the same bytes.
typedef enum {
    CRESAMPLE_FASTEST,
    /// AVX2 left out.
    CRESAMPLE_BASELINE,
    /// Plain C.
    CRESAMPLE_PORTABLE,
} cresample_path;

typedef struct {
    cresample_filter filter;
    /// Whether light is added, and not its encoding, which is taken for sRGB (IEC 61966-2-1).
    bool is_linear;
    cresample_path path;
    /// Looked at every 65 536 bytes or so; NULL for none.
    cinterruption *_Nullable interruption;
} cresample_options;

/// Resizes a part of the source to the whole target.
///
/// A picture of one colour keeps it exactly, and what is opaque stays so. A part of the target's size
/// that begins at a whole pixel is copied. Colours count by their alpha, so those of transparent
/// pixels do not show elsewhere; fully transparent pixels of the result are black.
///
/// - `target`: lies apart from the source.
cresample_status cresample_resize(
    const cresample_source *source, const cresample_rectangle *rectangle,
    const cresample_options *options, const cresample_target *target);

/// The bytes that `cresample_resize` allocates, in one piece, beside source and target; `SIZE_MAX`
/// for more than there can be. They follow from the widths and from the rows that the filter reaches,
/// not from the areas. `pixels` is not read.
size_t cresample_memory(
    const cresample_source *source, const cresample_rectangle *rectangle,
    const cresample_options *options, const cresample_target *target);

#pragma clang assume_nonnull end

#endif
