/// Changes pixels in place: blur, tint, rounded corners, grey, conversion of colours to sRGB. Also
/// rotates pictures, draws them on others, and compares them.
///
/// The functions keep no state and are thread-safe.
#pragma once

#include "cinterruption.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/// Applies a Gaussian blur of that standard deviation in pixels, above 0, with colours weighted by
/// alpha. Edge pixels repeat beyond the edges.
///
/// Three running means with fractional ends meet any deviation (Gwosdek, Grewenig, Bruhn, Weickert,
/// "Theoretical Foundations of Gaussian Convolution by Extended Box Filtering", 2011): O(1) a
/// pixel, for any deviation. It allocates 2 bytes a sample, and some lines.
ccodec_status cpixels_blur(
    const ccodec_picture *picture, double deviation, cinterruption *_Nullable interruption);

/// Blends a colour (red, green, blue) over the picture; alpha stays.
///
/// - `alpha`: 255 hides the picture.
/// - A grey picture takes the first sample of the colour.
ccodec_status cpixels_tint(
    const ccodec_picture *picture, const uint8_t color[_Nonnull 3], uint8_t alpha,
    cinterruption *_Nullable interruption);

/// Corners of a picture, as a set.
typedef enum {
    CPIXELS_TOP_LEFT = 1,
    CPIXELS_TOP_RIGHT = 2,
    CPIXELS_BOTTOM_LEFT = 4,
    CPIXELS_BOTTOM_RIGHT = 8,
} cpixels_corners;

/// Makes corners transparent outside circles of that radius in pixels, at most half the shorter
/// side. Pixels on the circle are covered in part, by the distance of their centre.
///
/// - `corners`: a set of `cpixels_corners`.
/// - The picture has alpha: 2 or 4 channels.
ccodec_status cpixels_round(
    const ccodec_picture *picture, double radius, unsigned corners,
    cinterruption *_Nullable interruption);

/// Makes pixels grey: each gets its luminance (ITU-R BT.709, computed in linear light) in sRGB's
/// encoding, as vips computes it. Alpha stays. Allocates 0.3 MB.
///
/// - The picture has 3 or 4 channels.
ccodec_status cpixels_make_grey(
    const ccodec_picture *picture, cinterruption *_Nullable interruption);

/// Sets all pixels to a colour (red, green, blue, alpha). Grey pictures take the red.
void cpixels_fill(const ccodec_picture *picture, const uint8_t color[_Nonnull 4]);

/// Rotates a picture clockwise about its centre, which is put on the target's centre. Bilinear,
/// with colours weighted by alpha; the edges are antialiased.
///
/// Integers only, so every processor gives the same samples.
///
/// - `cosine`, `sine`: in units of 1 / 2³⁰.
/// - `background`: red, green, blue and alpha of the canvas behind the picture. Grey pictures take
///   the red.
/// - `target`: all pixels are set. Its channels are the source's, with alpha unless both
///   source and background are opaque.
/// - Sides are at most 2²⁹.
ccodec_status cpixels_rotate(
    const ccodec_picture *source, int32_t cosine, int32_t sine,
    const uint8_t background[_Nonnull 4], const ccodec_picture *target,
    cinterruption *_Nullable interruption);

/// Draws a picture on another one: over it by its alpha, or in place of its pixels. Pixels beyond
/// the target are dropped.
///
/// - Both pictures are grey, or both have colour. A target without alpha is opaque.
void cpixels_draw(
    const ccodec_picture *source, const ccodec_picture *target, int64_t x, int64_t y,
    bool is_blended);

/// Sets all samples of a part to 0. The part may extend beyond the picture.
void cpixels_clear(
    const ccodec_picture *picture, int64_t x, int64_t y, uint32_t width, uint32_t height);

/// In pixels, inside a picture.
typedef struct {
    uint32_t x;
    uint32_t y;
    uint32_t width;
    uint32_t height;
} cpixels_rectangle;

/// Finds the smallest rectangle that holds all differences of two pictures of the same form.
///
/// - Returns: false if all of their samples are equal.
bool cpixels_difference(
    const ccodec_picture *first, const ccodec_picture *second, cpixels_rectangle *difference);

/// Whether every pixel is fully opaque.
bool cpixels_is_opaque(const ccodec_picture *picture);

/// The similarity of two pictures of the same size: 1 for equal ones, about 0 for unrelated ones.
///
/// It is the mean of SSIM (Wang, Bovik, Sheikh, Simoncelli, "Image Quality Assessment: From Error
/// Visibility to Structural Similarity", 2004) over windows of 8 × 8 samples, 4 apart, of luma and
/// two planes of chroma, weighted 6 : 1 : 1. Transparent pixels are blended over black; right and
/// bottom edge pixels repeat. The result is the same on every processor.
ccodec_status cpixels_similarity(
    const ccodec_picture *first, const ccodec_picture *second, double *similarity,
    cinterruption *_Nullable interruption);

/// Finds the block that differs most from another picture of the same size; without one, from the
/// picture with one chroma sample for two by two pixels (4:2:0).
///
/// A mean over a picture hides a wrong corner. Blocks have 16 × 16 pixels, the last ones the rest.
///
/// - `worst`: the mean difference of red, green and blue, over black, in that block; 0 to 255.
ccodec_status cpixels_worst_block(
    const ccodec_picture *picture, const ccodec_picture *_Nullable other, double *worst,
    cinterruption *_Nullable interruption);

/// Estimates the bits of a pixel in lossless coding: the entropy of the errors of predictions from
/// neighbours, in a sample of at most 64 rows, times the share of pixels that do not repeat. The
/// latter is of all rows up to 100,000 pixels, else of the sample. The result is the same on every
/// processor.
double cpixels_lossless_bits(const ccodec_picture *picture);

/// Chromaticities, as CIE x and y.
typedef struct {
    double red[2];
    double green[2];
    double blue[2];
    double white[2];
} cpixels_primaries;

/// The encoding of light by samples.
typedef struct {
    enum {
        /// IEC 61966-2-1.
        CPIXELS_CURVE_SRGB,
        /// Light is a power of the sample.
        CPIXELS_CURVE_POWER,
        /// SMPTE ST 240.
        CPIXELS_CURVE_240M,
        /// The perceptual quantiser (SMPTE ST 2084).
        CPIXELS_CURVE_PQ,
        /// Hybrid log-gamma (ARIB STD-B67).
        CPIXELS_CURVE_HLG,
    } kind;
    /// Above 0; for `CPIXELS_CURVE_POWER`.
    double exponent;
} cpixels_curve;

/// Converts samples of other primaries and another curve to sRGB: by their light, adapted to sRGB's
/// white (Bradford), clamped to sRGB's range. Grey stays grey, and alpha is kept.
///
/// Every processor gives the same samples. 8-bit ones are the nearest to the exact value, or next
/// to it on ties; 16-bit ones are off by up to 4.
///
/// - The picture has channels of `bit_depth` 8, or 16, big-endian.
/// - `primaries`: white lies between red, green and blue, and is whitish; see the caller.
/// - `curve`: one of the standard dynamic range.
/// - It allocates 0.5 MB.
ccodec_status cpixels_convert_to_srgb(
    const ccodec_picture *picture, int bit_depth, const cpixels_primaries *primaries,
    cpixels_curve curve, cinterruption *_Nullable interruption);

/// Converts samples of PQ or HLG to sRGB as ``cpixels_convert_to_srgb`` does others, with their
/// light mapped to the range of sRGB by the reference white tone mapping operator of SMPTE ST
/// 2094-50.
///
/// White of sRGB is the reference white, 203 cd/m² (ITU-R BT.2408). The light of the brightest of
/// red, green and blue of BT.2020 decides for all three: up to the reference white it is multiplied
/// by a factor, 0.5 for a peak of 1,000 cd/m² and more; from there it follows a parabola that
/// reaches white at the peak. HLG is shown as on a screen of 1,000 cd/m².
///
/// - `peak`: The brightest light, cd/m². Up to 203 nothing is mapped; it counts as 12,992 at most.
/// - It allocates 0.5 MB.
ccodec_status cpixels_tone_map_to_srgb(
    const ccodec_picture *picture, int bit_depth, const cpixels_primaries *primaries,
    cpixels_curve curve, double peak, cinterruption *_Nullable interruption);

#pragma clang assume_nonnull end
