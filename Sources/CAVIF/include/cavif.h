/// The boundary to libavif, 0.11 or 1.x (cavif_shim.h), with dav1d and aom behind it.
///
/// The library is loaded on first use, and reports errors by status. No function keeps other state;
/// all are thread-safe.
#pragma once

#include "cinterruption.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/// Loads libavif, once in a process; the functions below call it automatically.
///
/// Returns NULL, or the reason for a failure: one line that names the missing libraries.
const char *_Nullable cavif_load(void);

/// The header, read from the container.
typedef struct {
    /// The shown size before orientation: within the clean aperture (`clap`), if that is valid.
    uint32_t width;
    uint32_t height;
    /// The coded size.
    uint32_t coded_width;
    uint32_t coded_height;
    /// 8, 10 or 12 bits a sample.
    int depth;
    bool has_alpha;
    /// Without chroma.
    bool is_grey;
    /// Samples of two pixels, alpha included: 2 for grey, 3 for 4:2:0, 4 for 4:2:2, 6 for 4:4:4,
    /// and 2 for alpha.
    uint32_t samples_of_two_pixels;
    /// Frames of a sequence; 1 for an image.
    uint32_t frames;
    /// Whether data of the first or the last frame extends beyond the end of the file.
    bool is_cut;
    /// `irot` and `imir` as an EXIF orientation, 1…8, which the library does not apply.
    int orientation;
    /// Colour primaries and transfer characteristics by ITU-T H.273; 2 if unspecified.
    int primaries;
    int transfer;
} cavif_header;

typedef struct {
    /// The most pixels of each coded picture and tile; at most 2²⁸, the library's own limit.
    uint64_t maximum_pixels;
    uint32_t maximum_frames;
    /// Checked between frames, since decoding and converting each is one library call; NULL for
    /// none.
    cinterruption *_Nullable interruption;
} cavif_limits;

/// Reads the container without decoding, for any declared size.
ccodec_status cavif_read_header(
    const uint8_t *bytes, size_t length, uint32_t maximum_frames, cavif_header *header,
    char message[_Nonnull CCODEC_MESSAGE_BYTES]);

/// Decodes one frame after the other, on the calling thread. It refers to the bytes and to the
/// interruption.
typedef struct cavif_reader cavif_reader;

/// - `reader`: for the caller to release with `cavif_close`; NULL on failure.
ccodec_status cavif_open(
    const uint8_t *bytes, size_t length, const cavif_limits *limits, const cavif_header *header,
    char message[_Nonnull CCODEC_MESSAGE_BYTES], cavif_reader *_Nullable *_Nonnull reader);

typedef struct {
    /// False after the last frame; the other members are then 0.
    bool is_present;
    /// For the caller to release with `free`. A row is a spare byte and samples of red, green,
    /// blue, and alpha if there is any, not premultiplied. They have 8 bits, or 16, big-endian,
    /// for a greater depth.
    uint8_t *_Nullable rows;
    /// In parts of a second; a second has `timescale`, or 0.
    uint64_t duration;
    uint64_t timescale;
} cavif_frame;

/// - `wants_rows`: without it, the frame is only decoded.
ccodec_status cavif_next(
    cavif_reader *reader, bool wants_rows, cavif_frame *frame,
    char message[_Nonnull CCODEC_MESSAGE_BYTES]);

void cavif_close(cavif_reader *_Nullable reader);

/// Copies the ICC profile, for the caller to release with `free`; NULL without one, or without
/// memory or library.
uint8_t *_Nullable cavif_copy_profile(const uint8_t *bytes, size_t length, size_t *count);

typedef struct {
    /// For colours: 0 (the best) to 63.
    int quantizer;
    /// 0 (thorough) to 10.
    int speed;
    /// Chroma has one sample for two by two pixels, not one for each.
    bool halves_chroma;
    /// No chroma: red, green and blue are equal in each pixel.
    bool is_grey;
    /// Whether parts of flat pictures may be copied from others (intra block copy), below speed 8.
    bool searches_repetitions;
} cavif_options;

/// Encodes a picture of 8 bits a sample by aom, on this thread: the same bytes each time. Alpha is
/// lossless.
///
/// - `picture`: has 3 or 4 channels, orientation applied.
/// - `profile`: an ICC profile; without one the colours are sRGB.
/// - `exif`: the TIFF structure of EXIF.
/// - `xmp`: a packet of XMP.
/// - `interruption`: checked only at the end, since the library makes a picture in one call.
/// - `bytes`: the file, for the caller to release with `free`; NULL on failure.
ccodec_status cavif_encode(
    const ccodec_picture *picture, const uint8_t *_Nullable profile, size_t profile_length,
    const uint8_t *_Nullable exif, size_t exif_length, const uint8_t *_Nullable xmp,
    size_t xmp_length, const cavif_options *options, cinterruption *_Nullable interruption,
    uint8_t *_Nullable *_Nonnull bytes, size_t *length,
    char message[_Nonnull CCODEC_MESSAGE_BYTES]);

/// The loaded versions: libavif's and dav1d's, separated by a space; empty if libavif cannot be
/// loaded.
void cavif_library_versions(char text[_Nonnull 64]);

#pragma clang assume_nonnull end
