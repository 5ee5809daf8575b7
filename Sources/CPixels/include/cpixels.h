/// Changes pixels where they are: blurring, tinting, rounded corners, colours of other primaries. And compares pictures.
///
/// No function keeps state; all may run on several threads at once.
#ifndef CPIXELS_H
#define CPIXELS_H

#include "cinterruption.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

typedef enum {
    CPIXELS_OK = 0,
    CPIXELS_OUT_OF_MEMORY,
    /// The interruption has the cause; the pixels mean nothing.
    CPIXELS_INTERRUPTED,
} cpixels_status;

/// Rows from the top, samples of 8 bits in the order grey · grey, alpha · red, green, blue · red, green, blue, alpha. Alpha
/// is straight.
typedef struct {
    /// The first sample of the first row.
    uint8_t *pixels;
    /// From a row to the next, in bytes.
    size_t stride;
    /// In pixels, 1 or more, as the height.
    uint32_t width;
    uint32_t height;
    /// 1 to 4 samples a pixel.
    int channels;
} cpixels_picture;

/// Blurs by a Gaussian of that standard deviation in pixels, above 0, with colours weighted by their alpha. Beyond the edges
/// the picture goes on as its last pixel.
///
/// Three running means, whose ends count in part so that any deviation is met (Gwosdek, Grewenig, Bruhn, Weickert,
/// "Theoretical Foundations of Gaussian Convolution by Extended Box Filtering", 2011): O(1) a pixel, whatever the deviation.
/// It allocates 2 bytes a sample, and some lines.
cpixels_status cpixels_blur(
    const cpixels_picture *picture, double deviation, cinterruption *_Nullable interruption);

/// Lays a colour (red, green, blue) over the picture, whose alpha stays.
///
/// - `alpha`: 255 hides the picture.
/// - A picture of grey takes the first sample of the colour.
cpixels_status cpixels_tint(
    const cpixels_picture *picture, const uint8_t color[_Nonnull 3], uint8_t alpha,
    cinterruption *_Nullable interruption);

/// Makes the corners transparent outside of circles of that radius in pixels, at most half the shorter side. Pixels that
/// the circle goes through are covered by their share of it, by the distance of their centre.
///
/// - The picture has alpha: 2 or 4 channels.
cpixels_status cpixels_round(
    const cpixels_picture *picture, double radius, cinterruption *_Nullable interruption);

/// Whether no pixel is transparent, not even in part.
bool cpixels_is_opaque(const cpixels_picture *picture);

/// How alike two pictures of the same size are: 1 for equal ones, about 0 for such as have nothing to do with each other.
///
/// The mean of SSIM (Wang, Bovik, Sheikh, Simoncelli, "Image Quality Assessment: From Error Visibility to Structural
/// Similarity", 2004) over windows of 8 × 8 samples, 4 apart, of luma and the two planes of chroma, which count 6 : 1 : 1.
/// What is transparent is laid over black; at the right and the bottom edge the pictures go on as their last pixels. The
/// result is the same on every processor.
cpixels_status cpixels_similarity(
    const cpixels_picture *first, const cpixels_picture *second, double *similarity,
    cinterruption *_Nullable interruption);

/// Chromaticities, as CIE x and y.
typedef struct {
    double red[2];
    double green[2];
    double blue[2];
    double white[2];
} cpixels_primaries;

/// How samples encode light.
typedef enum {
    /// IEC 61966-2-1.
    CPIXELS_CURVE_SRGB,
    CPIXELS_CURVE_LINEAR,
    CPIXELS_CURVE_GAMMA_2_2,
    CPIXELS_CURVE_GAMMA_2_8,
    /// SMPTE ST 240.
    CPIXELS_CURVE_240M,
} cpixels_curve;

/// Makes samples of sRGB out of such of other primaries and another curve: by their light, adapted to sRGB's white
/// (Bradford), with what sRGB cannot show cut off at 0 and the most. Grey stays grey, and alpha what it is.
///
/// Every processor makes the same samples. Those of 8 bits are the nearest to the exact ones, or next to them where these
/// lie between two; those of 16 bits are off by up to 4.
///
/// - The picture has 3 or 4 channels, here of `bit_depth` 8, or 16, big-endian.
/// - It allocates 0.5 MB.
cpixels_status cpixels_convert_to_srgb(
    const cpixels_picture *picture, int bit_depth, const cpixels_primaries *primaries,
    cpixels_curve curve, cinterruption *_Nullable interruption);

#pragma clang assume_nonnull end

#endif
