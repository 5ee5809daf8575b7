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

#pragma clang assume_nonnull end

#endif
