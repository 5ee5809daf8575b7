/// libjpeg and libpng in their plain form, as a reference for `Codecs`. Errors are handled as the
/// libraries do, except for the jump; all warnings are tolerated. Uses no code of CJPEG and CPNG.
#ifndef CREFERENCE_H
#define CREFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

typedef enum {
    CREFERENCE_OK = 0,
    /// Decoded, with at least one warning.
    CREFERENCE_WARNED,
    CREFERENCE_REFUSED,
    /// Not tried or abandoned: too many pixels or scans, or out of memory.
    CREFERENCE_LIMIT,
} creference_verdict;

#define CREFERENCE_MESSAGE_BYTES 256

typedef struct {
    creference_verdict verdict;
    /// The error or, if there is none, the first warning.
    char message[CREFERENCE_MESSAGE_BYTES];
    uint32_t width;
    uint32_t height;
    /// 1 (grey), 3 (RGB) or 4 (CMYK) for a JPEG; always 4 (RGBA) for a PNG.
    int channels;
    /// Rows from the top without padding: 8 bits a sample for a JPEG. For a PNG 16 bits in native
    /// byte order, with smaller depths scaled exactly. NULL unless decoded; released by
    /// `creference_free`.
    uint8_t *_Nullable pixels;
    size_t length;
} creference_picture;

/// - maximum_scans: The limit for a multi-scan file.
void creference_decode_jpeg(
    const uint8_t *source, size_t length, uint64_t maximum_pixels, int maximum_scans,
    creference_picture *picture);

void creference_decode_png(
    const uint8_t *source, size_t length, uint64_t maximum_pixels, creference_picture *picture);

void creference_free(creference_picture *picture);

/// Applies an EXIF orientation, 1…8, to pixels. Widths and heights are those before; the buffers
/// must not overlap.
void creference_turn(
    const uint8_t *pixels, uint32_t width, uint32_t height, size_t bytes_per_pixel,
    int orientation, uint8_t *output);

/// Whether `output` has the DCT coefficients of `source` with the EXIF orientation applied (1 for
/// none).
///
/// Each must be rounded to the nearest multiple of a step no finer than the source's. The colour
/// space and sampling factors must be equal. `message` describes a difference.
bool creference_has_same_coefficients(
    const uint8_t *source, size_t source_length, const uint8_t *output, size_t output_length,
    int orientation, char *message);

/// Whether two JPEGs differ only in entropy coding. Parameters, quantisation tables, metadata
/// segments and all coefficients, including padding, must be equal, and neither may give a warning.
/// `message` describes a difference.
bool creference_is_recoded(
    const uint8_t *one, size_t one_length, const uint8_t *other, size_t other_length, char *message);

/// The parameters of a generated baseline JPEG.
typedef struct {
    uint32_t width;
    uint32_t height;
    /// Sampling factors of the first component; the two others have 1. 0 for a picture with one
    /// component.
    int horizontal;
    int vertical;
    /// In MCUs; 0 for none.
    unsigned restart_interval;
    int quality;
    /// Whether to optimise the Huffman tables.
    bool is_optimised;
    /// The seed of the pixels.
    uint64_t seed;
} creference_baseline;

/// Generates a JPEG from partly smooth, partly noisy pixels. Returns NULL if out of memory; the
/// caller frees it with `free`.
uint8_t *_Nullable creference_make_baseline(const creference_baseline *baseline, size_t *length);

#pragma clang assume_nonnull end

#endif
