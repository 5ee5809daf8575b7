/// The boundary to libjpeg (libjpeg-turbo 2.1.5, the classic API).
///
/// libjpeg reports errors by `longjmp`. Every function here sets its own jump target, and creates
/// and destroys the library's state itself. It calls nothing outside C, so no jump ever crosses a
/// Swift frame. The functions keep no state and are thread-safe.
#pragma once

#include "cinterruption.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/// The version of libjpeg-turbo that this was compiled with; the library has no function for it.
const char *cjpeg_library_version(void);

/// A small preview, 8-bit grey or RGB: plane after plane, without gaps between rows.
typedef struct {
    /// Owned by the caller, who releases them with `free`; NULL until a preview is made.
    uint8_t *_Nullable pixels;
    uint32_t width;
    uint32_t height;
    /// 1 grey, 3 RGB.
    int channels;
    /// The part of the last column and of the last row that belongs to the picture: above 0, up to
    /// 1.
    double last_column;
    double last_row;
    /// Whether the pixels cover the whole picture.
    bool is_complete;
} cjpeg_preview;

/// A conversion of CMYK to RGB. 255 is no ink.
typedef struct {
    /// Converts a row; it does not jump. NULL for (1 − cyan)(1 − black) and so on.
    void (*_Nullable convert)(const void *context, const uint8_t *inks, uint8_t *rgb, size_t count);
    const void *_Nullable context;
} cjpeg_inks;

typedef struct {
    uint64_t maximum_pixels;
    /// The most scans of a multi-scan file.
    int maximum_scans;
    /// The most warnings without loss of data; any other warning is an error.
    int maximum_warnings;
    /// The most that the library itself may allocate, in bytes; 0 for no limit.
    uint64_t maximum_memory_bytes;
    /// The size in pixels from which our own decoder reads the coefficients of single-scan baseline
    /// files, where that is faster. For smaller pictures, building the tables costs more than it
    /// saves. The pixels are the same. UINT64_MAX for libjpeg alone, as the reference in
    /// comparisons.
    uint64_t least_own_pixels;
    /// Checked about every 65,536 pixels; NULL for none.
    cinterruption *_Nullable interruption;
    /// Receives a preview from functions that verify or requantise; NULL for none. Its scale is
    /// 1/8, or 2/8 or 4/8 for a small picture. EXIF orientation is not applied. CMYK and YCCK give
    /// none.
    cjpeg_preview *_Nullable preview;
    cjpeg_inks inks;
} cjpeg_limits;

/// A result. `bytes` is owned by the caller, who releases it with `free`.
typedef struct {
    uint8_t *_Nullable bytes;
    size_t length;
    /// Offset in the source just after its end-of-image marker; 0 until that was read.
    size_t source_end;
    /// Bytes that are no data, and not all zeros, stand between entropy-coded data and a
    /// marker.
    bool has_foreign_bytes;
    uint32_t width;
    uint32_t height;
    /// Channels of decoded pixels: 1 grey, 3 RGB.
    int channels;
    /// The source's pixels were CMYK or YCCK.
    bool was_cmyk;
    /// EXIF orientation was applied; `width` and `height` are the result's.
    bool was_turned;
    /// It was transcoded symbol by symbol, without arrays of coefficients.
    bool was_transcoded;
    /// Our own decoder read the coefficients that the pixels were made from.
    bool was_read_here;
    uint64_t decode_nanoseconds;
    uint64_t encode_nanoseconds;
} cjpeg_result;

/// Decodes the entropy-coded data of the whole file and keeps none of it.
ccodec_status cjpeg_verify(
    const uint8_t *source, size_t length, const cjpeg_limits *limits, cjpeg_result *result,
    char *message);

/// How to requantise.
typedef struct {
    /// libjpeg's scale, 1…100.
    int quality;
    /// Complete marker segments (0xFF, marker, length, payload) to write before the tables.
    const uint8_t *_Nullable segments;
    size_t segments_length;
    /// EXIF orientation, 1…8. It is applied where whole blocks suffice.
    int orientation;
    /// Written before `segments` where the orientation is not applied.
    const uint8_t *_Nullable orientation_segment;
    size_t orientation_segment_length;
    /// Whether the library writes a JFIF or Adobe segment; without it, `segments` alone says how to
    /// interpret the components.
    bool writes_own_segments;
    /// Whether libjpeg's coefficient arrays are used even where the transcoder could do it: the
    /// reference in comparisons.
    bool takes_coefficients;
    /// Whether chroma without subsampling may be halved where it becomes coarser.
    bool may_halve_chroma;
    /// Whether the coefficients are written again even if nothing would change.
    bool is_unconditional;
    size_t maximum_output;
} cjpeg_rewriting;

/// Verifies the file, and writes the DCT coefficients again if a quantisation table becomes
/// coarser, the orientation is applied, or the caller wants it. Each step is the larger of the
/// source's and the quality's.
///
/// `result->bytes` stays NULL with `CCODEC_OK` when nothing would change, or when the output would
/// reach `maximum_output` bytes. The output is baseline (or sequential) Huffman; it is progressive
/// only where a progressive source is turned and not coarsened. Colour space, component identifiers
/// and density are the source's, and so are sampling factors unless chroma is halved: where 4:4:4
/// becomes coarser and has little fine detail in its colours.
///
/// Single-scan baseline files that only become coarser are transcoded symbol by symbol. All others,
/// and everything unusual, take libjpeg's path, which alone words errors.
ccodec_status cjpeg_requantise(
    const uint8_t *source, size_t length, const cjpeg_limits *limits,
    const cjpeg_rewriting *rewriting, cjpeg_result *result, char *message);

/// Decodes to 8-bit grey or RGB, rows from the top, each preceded by `spare_bytes` undefined bytes.
///
/// - `denominator`: 1, or 2, 4 or 8 for a fraction of the size at lower cost. Sides are rounded up.
ccodec_status cjpeg_decode_scaled(
    const uint8_t *source, size_t length, const cjpeg_limits *limits, size_t spare_bytes,
    unsigned denominator, cjpeg_result *result, char *message);

/// Decodes at up to four scales while reading the entropy-coded data once. Each result has the
/// bytes that `cjpeg_decode_scaled` would give.
///
/// Either all results are made or none: with any status but `CCODEC_OK` the caller decodes scale by
/// scale. The first result carries the time.
ccodec_status cjpeg_decode_scales(
    const uint8_t *source, size_t length, const cjpeg_limits *limits, size_t spare_bytes,
    const unsigned *denominators, size_t count, cjpeg_result *results, char *message);

/// Encodes 8-bit grey (1 channel) or RGB (3 channels) as baseline JPEG; RGB becomes YCbCr.
///
/// `result->bytes` stays NULL with `CCODEC_OK` when the output would reach `maximum_output` bytes.
///
/// - `pixels`: the first row; `stride` bytes from one to the next.
/// - `halves_chroma`: 4:2:0 in place of 4:4:4.
/// - `segments`: complete marker segments, written after the header.
/// - `interruption`: as in the limits.
ccodec_status cjpeg_encode(
    const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height, int channels,
    int quality, bool halves_chroma, const uint8_t *_Nullable segments, size_t segments_length,
    size_t maximum_output, cinterruption *_Nullable interruption, cjpeg_result *result,
    char *message);

#pragma clang assume_nonnull end
