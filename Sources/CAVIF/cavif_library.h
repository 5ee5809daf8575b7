/// libavif's functions, for the files of this boundary.
///
/// libavif is not linked, but loaded for the first AVIF. It depends on 22 libraries, encoders among
/// them. Loading them took a quarter of the time of a command that decodes nothing. No call here
/// may use a function of libavif by its own name; it would not link.
#pragma once

#include "cavif.h"

#include <avif/avif.h>

#if AVIF_VERSION_MAJOR != 0 || AVIF_VERSION_MINOR != 11
// Callers access libavif's structs: their layout changes with this number.
#error "the headers are not those of libavif.so.15"
#endif

#pragma clang assume_nonnull begin

/// The library of the headers.
#define CAVIF_LIBRARY "libavif.so.15"

/// Every function used here, without the `avif` prefix.
#define CAVIF_FUNCTIONS(FUNCTION) \
    FUNCTION(CodecVersions) \
    FUNCTION(CropRectConvertCleanApertureBox) \
    FUNCTION(DecoderCreate) \
    FUNCTION(DecoderDestroy) \
    FUNCTION(DecoderNextImage) \
    FUNCTION(DecoderNthImageMaxExtent) \
    FUNCTION(DecoderParse) \
    FUNCTION(DecoderSetIOMemory) \
    FUNCTION(DiagnosticsClearError) \
    FUNCTION(EncoderCreate) \
    FUNCTION(EncoderDestroy) \
    FUNCTION(EncoderWrite) \
    FUNCTION(ImageCreate) \
    FUNCTION(ImageCreateEmpty) \
    FUNCTION(ImageDestroy) \
    FUNCTION(ImageRGBToYUV) \
    FUNCTION(ImageSetMetadataExif) \
    FUNCTION(ImageSetProfileICC) \
    FUNCTION(ImageSetViewRect) \
    FUNCTION(ImageYUVToRGB) \
    FUNCTION(RGBImageSetDefaults) \
    FUNCTION(RWDataFree) \
    FUNCTION(ResultToString) \
    FUNCTION(Version)

/// The loaded functions, typed by the header; all set, or none before loading or after a failure.
struct cavif_functions {
#define CAVIF_MEMBER(name) __typeof__(avif##name) *_Nullable name;
    CAVIF_FUNCTIONS(CAVIF_MEMBER)
#undef CAVIF_MEMBER
};

/// Written by `cavif_load` only, which runs before anything creates a decoder, an encoder or an
/// image.
extern struct cavif_functions cavif_functions __attribute__((visibility("hidden")));

/// Loads libavif, and writes the reason for a failure to `message`.
///
/// Returns `CCODEC_OK` or `CCODEC_NO_LIBRARY`.
ccodec_status cavif_require(char message[_Nonnull CCODEC_MESSAGE_BYTES])
    __attribute__((visibility("hidden")));

#pragma clang assume_nonnull end
