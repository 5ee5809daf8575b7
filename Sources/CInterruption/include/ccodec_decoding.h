/// The common interface of the boundaries to libraries that decode behind walls only: CTIFF, CHEIF,
/// CJXL and COpenJPEG. They read bytes in memory, on the calling thread, and keep no state.
#pragma once

#include "cinterruption.h"

#include <stdlib.h>

#pragma clang assume_nonnull begin

/// A picture, as far as it is known before its pixels are decoded.
typedef struct {
    /// As decoded, before `orientation` is applied.
    uint32_t width;
    uint32_t height;
    /// 8 or 16 bits a sample of the rows.
    int depth;
    /// 1 to 4 samples a pixel of the rows.
    int channels;
    /// An EXIF value, 1…8, that the rows do not have yet.
    int orientation;
    /// Pages or frames. Only the first is decoded.
    uint32_t pictures;
    /// Whether the file has inks (CMYK), which become red, green and blue while they are decoded.
    bool has_inks;
    bool has_profile;
    /// Colour primaries and transfer characteristics by ITU-T H.273; 2 if unspecified.
    int primaries;
    int transfer;
    /// Upper estimate of the library's memory, without the rows.
    uint64_t library_bytes;
} ccodec_header;

/// Converts inks, with 255 for none, to red, green and blue.
typedef struct {
    const void *_Nullable context;
    /// NULL for red = (1 − cyan)(1 − black) and so on.
    void (*_Nullable convert)(
        const void *context, const uint8_t *inks, uint8_t *rgb, size_t count);
} ccodec_inks;

/// One library. It is constant, so all threads may use it.
typedef struct __attribute__((swift_attr("@Sendable"))) {
    /// The names of its file, the one that is preferred first; NULL ends them.
    const char *_Nullable const *_Nonnull files;
    /// Loads it. Returns NULL, or the reason for a failure. The others are called after a success.
    const char *_Nullable (*_Nonnull load)(void);
    /// For example `4.5.0`.
    void (*_Nonnull version)(char text[_Nonnull 32]);
    /// Refuses with `CCODEC_UNSUPPORTED` what `decode` does not decode, as far as the header tells.
    ccodec_status (*_Nonnull read_header)(
        const uint8_t *bytes, size_t length, ccodec_header *header,
        char message[_Nonnull CCODEC_MESSAGE_BYTES]);
    /// Decodes the first picture. `header` is the one that `read_header` returned.
    ///
    /// - `rows`: for the caller to release with `free`; NULL on failure. A row is a spare byte and
    ///   its samples: grey or red, green, blue, then alpha, not premultiplied. They have 8 bits, or
    ///   16, big-endian.
    ccodec_status (*_Nonnull decode)(
        const uint8_t *bytes, size_t length, const ccodec_header *header, const ccodec_inks *inks,
        cinterruption *_Nullable interruption, uint8_t *_Nullable *_Nonnull rows,
        char message[_Nonnull CCODEC_MESSAGE_BYTES]);
    /// Copies the ICC profile, for the caller to release with `free`; NULL without one.
    uint8_t *_Nullable (*_Nonnull copy_profile)(const uint8_t *bytes, size_t length, size_t *count);
} ccodec_library;

/// The bytes of a row, its spare byte included.
static inline size_t ccodec_stride(const ccodec_header *header) {
    return 1 + (size_t)header->width * (size_t)header->channels * (size_t)header->depth / 8;
}

/// Allocates the rows, which are zero; NULL without memory.
static inline uint8_t *_Nullable ccodec_make_rows(const ccodec_header *header) {
    return calloc(header->height, ccodec_stride(header));
}

static inline void ccodec_put16(uint8_t *place, uint32_t value) {
    place[0] = (uint8_t)(value >> 8);
    place[1] = (uint8_t)value;
}

/// Divides the samples of a row's pixels by their alpha, the last sample.
void ccodec_unmultiply(uint8_t *samples, const ccodec_header *header);

/// Converts a row of inks of 8 bits, with 255 for none, to another row.
void ccodec_convert_inks(
    const uint8_t *from, uint8_t *to, size_t pixels, const ccodec_inks *inks);

#pragma clang assume_nonnull end
