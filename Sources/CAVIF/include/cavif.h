/// The boundary to libavif (0.11.1), with dav1d and aom behind it.
///
/// The library is loaded when it is first needed, and reports errors by status. No function keeps other state; all may
/// run on several threads at once.
#ifndef CAVIF_H
#define CAVIF_H

#include "cinterruption.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

typedef enum {
    CAVIF_OK = 0,
    CAVIF_CORRUPT,
    /// The data ends before the image does.
    CAVIF_TRUNCATED,
    CAVIF_UNSUPPORTED,
    /// The encoder could not make the picture.
    CAVIF_FAILED,
    /// A limit of the caller was passed, or one of the library's: 268 megapixels.
    CAVIF_LIMIT,
    CAVIF_OUT_OF_MEMORY,
    /// The interruption has the cause.
    CAVIF_INTERRUPTED,
    /// libavif cannot be loaded; the message is what `cavif_load` returns.
    CAVIF_NO_LIBRARY,
} cavif_status;

/// Loads libavif, once in a process; all that follows does so by itself.
///
/// Returns NULL, or why it cannot be loaded: one line that names what is missing.
const char *_Nullable cavif_load(void);

/// What the container says.
typedef struct {
    /// Of what is shown, before it is turned: within the clean aperture (`clap`), where that is a good one.
    uint32_t width;
    uint32_t height;
    /// Of what is coded.
    uint32_t coded_width;
    uint32_t coded_height;
    /// 8, 10 or 12 bits a sample.
    int depth;
    bool has_alpha;
    /// Samples of two pixels, alpha included: 2 of grey, 3 of 4:2:0, 4 of 4:2:2, 6 of 4:4:4, and 2 of alpha.
    uint32_t samples_of_two_pixels;
    /// Frames of a sequence; 1 for an image.
    uint32_t frames;
    /// `irot` and `imir` as EXIF's orientation, 1…8, which the library does not apply.
    int orientation;
    /// Colour primaries and transfer characteristics, by ITU-T H.273; 2 where nothing is said.
    int primaries;
    int transfer;
} cavif_header;

typedef struct {
    /// Of each picture and each tile that is coded; at most 2²⁸.
    uint64_t maximum_pixels;
    uint32_t maximum_frames;
    /// Looked at between frames: each is one call of the library, as is its conversion. NULL for none.
    cinterruption *_Nullable interruption;
} cavif_limits;

#define CAVIF_MESSAGE_BYTES 256

/// Reads the container, whatever size it says, without decoding.
cavif_status cavif_read_header(
    const uint8_t *bytes, size_t length, uint32_t maximum_frames, cavif_header *header,
    char message[_Nonnull CAVIF_MESSAGE_BYTES]);

/// Decodes all frames, on this thread, and keeps the pixels of the first in `*rows`, for the caller to release with
/// `free`; NULL keeps none.
///
/// A row is a spare byte and samples of red, green, blue, and alpha where there is any, not premultiplied: of 8 bits, or
/// of 16, big-endian, where the depth is more.
cavif_status cavif_decode(
    const uint8_t *bytes, size_t length, const cavif_limits *limits, const cavif_header *header,
    uint8_t *_Nullable *_Nullable rows, char message[_Nonnull CAVIF_MESSAGE_BYTES]);

typedef enum { CAVIF_ICC, CAVIF_EXIF, CAVIF_XMP } cavif_metadata;

/// A copy of what the container has beside pixels, for the caller to release with `free`; NULL where it has none, or
/// there is no memory or no library. EXIF is without the four bytes in front of it.
uint8_t *_Nullable cavif_copy_metadata(
    const uint8_t *bytes, size_t length, cavif_metadata kind, size_t *count);

/// Where `part` is in `bytes`, if it is there once; else `length`.
size_t cavif_only_place(
    const uint8_t *bytes, size_t length, const uint8_t *part, size_t part_length);

/// Pixels to encode, upright: red, green, blue, and alpha where there are four channels, not premultiplied.
typedef struct {
    /// The first sample of the first row.
    const uint8_t *first;
    /// From a row to the next, in bytes.
    size_t stride;
    uint32_t width;
    uint32_t height;
    /// 3 or 4.
    int channels;
    /// An ICC profile; without one the colours are sRGB's.
    const uint8_t *_Nullable profile;
    size_t profile_length;
    /// The TIFF structure of EXIF.
    const uint8_t *_Nullable exif;
    size_t exif_length;
} cavif_picture;

typedef struct {
    /// Of colours: 0 (the best) to 63.
    int quantizer;
    /// 0 (thorough) to 10.
    int speed;
    /// Whether chroma has one sample for two by two pixels, and not one for each.
    bool halves_chroma;
    /// Whether there is no chroma: red, green and blue are equal in each pixel.
    bool is_grey;
} cavif_options;

/// Encodes a picture of 8 bits a sample by aom, on this thread: the same bytes each time. Alpha loses nothing.
///
/// - `interruption`: looked at when all is done, since the library makes a picture in one call.
/// - `bytes`: the file, for the caller to release with `free`; NULL without success.
cavif_status cavif_encode(
    const cavif_picture *picture, const cavif_options *options,
    cinterruption *_Nullable interruption, uint8_t *_Nullable *_Nonnull bytes, size_t *length,
    char message[_Nonnull CAVIF_MESSAGE_BYTES]);

/// The versions of what is loaded: 0.11.1 and dav1d's, separated by a space; empty where libavif cannot be loaded.
void cavif_library_versions(char text[_Nonnull 64]);

#pragma clang assume_nonnull end

#endif
