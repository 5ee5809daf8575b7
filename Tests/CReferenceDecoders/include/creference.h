/// libjpeg and libpng as a plain program uses them, to compare `Codecs` with: the libraries' own
/// error managers but for the jump, no policy about warnings, and none of the code of CJPEG and CPNG.
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
    /// Not tried, or given up: more pixels or scans than allowed, or no memory.
    CREFERENCE_LIMIT,
} creference_verdict;

#define CREFERENCE_MESSAGE_BYTES 256

typedef struct {
    creference_verdict verdict;
    /// The error or, without one, the first warning.
    char message[CREFERENCE_MESSAGE_BYTES];
    uint32_t width;
    uint32_t height;
    /// Of a JPEG 1 (grey), 3 (RGB) or 4 (CMYK); of a PNG always 4 (RGBA).
    int channels;
    /// Rows from the top without padding: 8 bits a sample of a JPEG, 16 of a PNG, to which fewer
    /// are scaled exactly, in the machine's byte order. NULL unless it was decoded; released by
    /// `creference_free`.
    uint8_t *_Nullable pixels;
    size_t length;
} creference_picture;

/// - maximum_scans: of a multi-scan file.
void creference_decode_jpeg(
    const uint8_t *source, size_t length, uint64_t maximum_pixels, int maximum_scans,
    creference_picture *picture);

void creference_decode_png(
    const uint8_t *source, size_t length, uint64_t maximum_pixels, creference_picture *picture);

void creference_free(creference_picture *picture);

/// Turns pixels upright, by the table of EXIF's orientation 1…8. Widths and heights are those
/// before; the buffers do not overlap.
void creference_turn(
    const uint8_t *pixels, uint32_t width, uint32_t height, size_t bytes_per_pixel,
    int orientation, uint8_t *output);

/// Whether `output` has the DCT coefficients of `source`, turned upright from that orientation (1
/// for not at all), each rounded to the nearest multiple of a step that is not finer than the
/// source's, in the same colour space and with the same sampling factors. `message` says what is
/// not so.
bool creference_has_same_coefficients(
    const uint8_t *source, size_t source_length, const uint8_t *output, size_t output_length,
    int orientation, char *message);

/// Whether two JPEGs say the same by other codes: parameters, tables of quantisation, segments of metadata and all
/// coefficients, those of padding, too, without a warning. `message` says what is not so.
bool creference_is_recoded(
    const uint8_t *one, size_t one_length, const uint8_t *other, size_t other_length, char *message);

/// A baseline JPEG to be made.
typedef struct {
    uint32_t width;
    uint32_t height;
    /// Sampling factors of the first component; the two others have 1 each. 0 for a picture of one component.
    int horizontal;
    int vertical;
    /// In units of the scan; 0 for none.
    unsigned restart_interval;
    int quality;
    /// With the best Huffman tables in place of the standard ones.
    bool is_optimised;
    /// Of the pixels.
    uint64_t seed;
} creference_baseline;

/// Makes it of pixels between smooth and noisy. Returns NULL without memory; the caller releases it with `free`.
uint8_t *_Nullable creference_make_baseline(const creference_baseline *baseline, size_t *length);

#pragma clang assume_nonnull end

#endif
