/// libjpeg and libpng as a plain program uses them, as a reference for `Codecs`. They have the
/// libraries' own error managers except for the jump, no policy about warnings, and no code of
/// CJPEG and CPNG.
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
    /// JPEG: 1 (grey), 3 (RGB) or 4 (CMYK). PNG: always 4 (RGBA).
    int channels;
    /// Rows from the top without padding: 8 bits a sample for JPEG, 16 for PNG, to which fewer are
    /// scaled exactly, in the machine's byte order. NULL unless decoded; released by
    /// `creference_free`.
    uint8_t *_Nullable pixels;
    size_t length;
} creference_picture;

/// - maximum_scans: the most scans of a multi-scan file.
void creference_decode_jpeg(
    const uint8_t *source, size_t length, uint64_t maximum_pixels, int maximum_scans,
    creference_picture *picture);

void creference_decode_png(
    const uint8_t *source, size_t length, uint64_t maximum_pixels, creference_picture *picture);

void creference_free(creference_picture *picture);

/// Applies the EXIF orientation, 1…8, to pixels by its table. Width and height are the source's;
/// the buffers do not overlap.
void creference_turn(
    const uint8_t *pixels, uint32_t width, uint32_t height, size_t bytes_per_pixel,
    int orientation, uint8_t *output);

/// Whether `output` has the DCT coefficients of `source` with the orientation applied (1 for none).
/// Each must be rounded to the nearest multiple of a step that is not finer than the source's.
/// Colour space and sampling factors must match, except that 4:4:4 may become 4:2:0; then only luma
/// is compared. `message` names the first difference.
bool creference_has_same_coefficients(
    const uint8_t *source, size_t source_length, const uint8_t *output, size_t output_length,
    int orientation, char *message);

/// Whether two JPEGs differ in their codes only: equal parameters, quantisation tables, metadata
/// segments and coefficients, padding included, without a warning. `message` names the first
/// difference.
bool creference_is_recoded(
    const uint8_t *one, size_t one_length, const uint8_t *other, size_t other_length, char *message);

/// Describes a baseline JPEG to generate.
typedef struct {
    uint32_t width;
    uint32_t height;
    /// Sampling factors of the first component; the other two have 1 each. 0 for a single
    /// component.
    int horizontal;
    int vertical;
    /// In MCUs; 0 for none.
    unsigned restart_interval;
    int quality;
    /// Optimal Huffman tables in place of the standard ones.
    bool is_optimised;
    /// The seed of the pixels.
    uint64_t seed;
} creference_baseline;

/// Generates the file from pixels between smooth and noisy. Returns NULL without memory; the caller
/// releases it with `free`.
uint8_t *_Nullable creference_make_baseline(const creference_baseline *baseline, size_t *length);

#pragma clang assume_nonnull end

#endif
