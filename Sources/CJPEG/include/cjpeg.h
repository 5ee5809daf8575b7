/// The boundary to libjpeg (libjpeg-turbo 2.1.5, the classic API).
///
/// libjpeg reports errors by `longjmp`. Every function here sets its own jump target, creates and
/// destroys the library's state itself and calls nothing outside C, so no jump ever crosses a
/// Swift frame. No function keeps state; all may run on several threads at once.
#ifndef CJPEG_H
#define CJPEG_H

#include "cinterruption.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/// The version of libjpeg-turbo that this was compiled with; the library has no function for it.
const char *cjpeg_library_version(void);

typedef enum {
    CJPEG_OK = 0,
    /// The data is damaged: an error, or a warning that means lost data.
    CJPEG_CORRUPT,
    /// The data ends before the image does.
    CJPEG_TRUNCATED,
    /// A legal JPEG of a kind that the library does not decode.
    CJPEG_UNSUPPORTED,
    /// A limit of the caller was passed.
    CJPEG_LIMIT,
    CJPEG_OUT_OF_MEMORY,
    /// The source was read, but cannot be written in the asked form.
    CJPEG_ENCODE_FAILED,
    /// The interruption has the cause.
    CJPEG_INTERRUPTED,
} cjpeg_status;

/// A picture in small, 8-bit grey or RGB, as far as one is come by: a plane after the other, without gaps between rows.
typedef struct {
    /// Owned by the caller, who releases them with `free`; NULL before there are any.
    uint8_t *_Nullable pixels;
    uint32_t width;
    uint32_t height;
    /// 1 grey, 3 RGB.
    int channels;
    /// Of the last column and the last row so much belongs to the picture, more than 0 up to 1.
    double last_column;
    double last_row;
    /// Whether the pixels are those of the whole picture.
    bool is_complete;
} cjpeg_preview;

typedef struct {
    uint64_t maximum_pixels;
    /// Scans of a multi-scan file.
    int maximum_scans;
    /// Warnings without loss of data; any other warning is an error at once.
    int maximum_warnings;
    /// What the library itself may allocate, in bytes; 0 for no limit.
    uint64_t maximum_memory_bytes;
    /// From so many pixels of the source on, those of a baseline file of one scan are decoded from coefficients that are
    /// read here and not by libjpeg, where that is faster. Of small ones tables take longer than they save. The pixels are
    /// the same. UINT64_MAX for libjpeg alone, which is what the other way is compared with.
    uint64_t least_own_pixels;
    /// Looked at every 65 536 pixels or so; NULL for none.
    cinterruption *_Nullable interruption;
    /// Where functions that verify or requantise note the picture in small, at an eighth of its size or, of a small
    /// one, at two or four, as it is stored (not turned). Those of four inks are not noted. NULL for nowhere.
    cjpeg_preview *_Nullable preview;
} cjpeg_limits;

/// What came out. `bytes` is owned by the caller, who releases it with `free`.
typedef struct {
    uint8_t *_Nullable bytes;
    size_t length;
    /// Offset in the source just after its end-of-image marker; 0 until that was read.
    size_t source_end;
    uint32_t width;
    uint32_t height;
    /// Of decoded pixels: 1 grey, 3 RGB.
    int channels;
    /// The source's pixels were CMYK or YCCK.
    bool was_cmyk;
    /// The picture was turned upright; `width` and `height` are those of the result.
    bool was_turned;
    /// It was written again without coefficients in between.
    bool was_transcoded;
    /// Its pixels were made of coefficients that were read here and not by libjpeg.
    bool was_read_here;
    uint64_t decode_nanoseconds;
    uint64_t encode_nanoseconds;
} cjpeg_result;

#define CJPEG_MESSAGE_BYTES 256

/// Decodes the entropy-coded data of the whole file and keeps nothing of it.
cjpeg_status cjpeg_verify(
    const uint8_t *source, size_t length, const cjpeg_limits *limits, cjpeg_result *result,
    char *message);

/// How coefficients are written again.
typedef struct {
    /// Libjpeg's scale, 1…100.
    int quality;
    /// Complete marker segments (0xFF, marker, length, payload) to write before the tables.
    const uint8_t *_Nullable segments;
    size_t segments_length;
    /// EXIF's, 1…8: how the stored picture is turned for display. It is turned upright where that
    /// takes whole blocks only.
    int orientation;
    /// Written before `segments` where the picture is not turned upright.
    const uint8_t *_Nullable orientation_segment;
    size_t orientation_segment_length;
    /// Whether the library writes a JFIF or Adobe segment; without it, those of `segments` alone
    /// say what the components mean.
    bool writes_own_segments;
    /// By libjpeg's arrays of coefficients, also where these are not needed: what the other way is compared with.
    bool takes_coefficients;
    size_t maximum_output;
} cjpeg_rewriting;

/// Verifies the file and, where that makes a quantisation table coarser or turns the picture
/// upright, writes its DCT coefficients again, quantised by the larger of the source's step and
/// that of the quality.
///
/// `result->bytes` stays NULL with `CJPEG_OK` when nothing would change, or when the output would
/// reach `maximum_output` bytes. The output is baseline (or sequential) Huffman, progressive where
/// a progressive source is turned and nothing else, with the source's sampling factors, colour
/// space, component identifiers and density.
///
/// Baseline files of one scan that need nothing else go from symbol to symbol, without coefficients; all others, and all
/// that is odd, go by libjpeg, which alone words errors.
cjpeg_status cjpeg_requantise(
    const uint8_t *source, size_t length, const cjpeg_limits *limits,
    const cjpeg_rewriting *rewriting, cjpeg_result *result, char *message);

/// Decodes to 8-bit grey or RGB, rows from the top with `spare_bytes` that mean nothing in front of
/// each.
cjpeg_status cjpeg_decode(
    const uint8_t *source, size_t length, const cjpeg_limits *limits, size_t spare_bytes,
    cjpeg_result *result, char *message);

/// The same at a fraction of the size, 1, 1/2, 1/4 or 1/8, for less: `denominator` is 1, 2, 4 or 8. Sides are
/// rounded up.
cjpeg_status cjpeg_decode_scaled(
    const uint8_t *source, size_t length, const cjpeg_limits *limits, size_t spare_bytes,
    unsigned denominator, cjpeg_result *result, char *message);

/// The same at several scales, at most four, each with the bytes that it has by itself, for the cost of decoding the
/// entropy-coded data once. All results are made or none: unless it returns `CJPEG_OK`, one of them could not be, or not
/// in this way, and whoever calls makes them one by one. The first has the time.
cjpeg_status cjpeg_decode_several(
    const uint8_t *source, size_t length, const cjpeg_limits *limits, size_t spare_bytes,
    const unsigned *denominators, size_t count, cjpeg_result *results, char *message);

/// Encodes 8-bit grey (1 channel) or RGB (3 channels) as baseline JPEG; RGB becomes YCbCr.
///
/// - `pixels`: the first row; `stride` bytes from one to the next.
/// - `halves_chroma`: 4:2:0 in place of 4:4:4.
/// - `segments`: complete, for after the header.
///
/// `result->bytes` stays NULL with `CJPEG_OK` when the output would reach `maximum_output` bytes.
///
/// - `interruption`: as in the limits.
cjpeg_status cjpeg_encode(
    const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height, int channels,
    int quality, bool halves_chroma, const uint8_t *_Nullable segments, size_t segments_length,
    size_t maximum_output, cinterruption *_Nullable interruption, cjpeg_result *result,
    char *message);

#pragma clang assume_nonnull end

#endif
