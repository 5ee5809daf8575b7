/// libavif's functions, for the files of this boundary.
///
/// libavif is not linked, but loaded when the first AVIF comes: it brings 22 libraries along, encoders among them, which
/// took a quarter of the time of a command that decodes nothing. Nothing here may call a function of libavif by its own
/// name; such a call does not link.
#ifndef CAVIF_LIBRARY_H
#define CAVIF_LIBRARY_H

#include "cavif.h"

#include <avif/avif.h>

#if AVIF_VERSION_MAJOR != 0 || AVIF_VERSION_MINOR != 11
// Callers reach into libavif's structs, which are others under another number.
#error "the headers are not those of libavif.so.15"
#endif

#pragma clang assume_nonnull begin

/// The library whose structs the headers describe.
#define CAVIF_LIBRARY "libavif.so.15"

/// Every function that is used here, without the `avif` in front.
#define CAVIF_FUNCTIONS(FUNCTION) \
    FUNCTION(CodecName) \
    FUNCTION(CodecVersions) \
    FUNCTION(CropRectConvertCleanApertureBox) \
    FUNCTION(DecoderCreate) \
    FUNCTION(DecoderDestroy) \
    FUNCTION(DecoderNextImage) \
    FUNCTION(DecoderParse) \
    FUNCTION(DecoderSetIOMemory) \
    FUNCTION(DiagnosticsClearError) \
    FUNCTION(EncoderAddImage) \
    FUNCTION(EncoderCreate) \
    FUNCTION(EncoderDestroy) \
    FUNCTION(EncoderFinish) \
    FUNCTION(EncoderSetCodecSpecificOption) \
    FUNCTION(EncoderWrite) \
    FUNCTION(ImageCreate) \
    FUNCTION(ImageCreateEmpty) \
    FUNCTION(ImageDestroy) \
    FUNCTION(ImageRGBToYUV) \
    FUNCTION(ImageSetMetadataExif) \
    FUNCTION(ImageSetMetadataXMP) \
    FUNCTION(ImageSetProfileICC) \
    FUNCTION(ImageSetViewRect) \
    FUNCTION(ImageYUVToRGB) \
    FUNCTION(RGBImageSetDefaults) \
    FUNCTION(RWDataFree) \
    FUNCTION(ResultToString) \
    FUNCTION(Version)

/// The functions as they were loaded, with the types that the header gives them; all of them or, before and where that
/// failed, none.
struct cavif_functions {
#define CAVIF_MEMBER(name) __typeof__(avif##name) *_Nullable name;
    CAVIF_FUNCTIONS(CAVIF_MEMBER)
#undef CAVIF_MEMBER
};

/// Written by `cavif_load` only, which comes before whatever makes a decoder, an encoder or an image.
extern struct cavif_functions cavif_functions __attribute__((visibility("hidden")));

/// What `cavif_load` has opened; NULL before.
extern void *_Nullable cavif_library __attribute__((visibility("hidden")));

/// Loads libavif, and writes why not into `message`.
///
/// `CAVIF_OK` or `CAVIF_NO_LIBRARY`.
cavif_status cavif_require(char message[_Nonnull CAVIF_MESSAGE_BYTES])
    __attribute__((visibility("hidden")));

#pragma clang assume_nonnull end

#endif
