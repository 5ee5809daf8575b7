/// The part of libavif's interface that is used here, with the layout of one version of its binary
/// interface: `CAVIF_ABI` is the number in the library's file name, 15 or 16.
///
/// Written here because a program finds either version, and no system has the headers of both.
/// Structs end after the last member in use, if the library makes them. Structs that callers
/// make are complete. A build with libavif's own header compares the two
/// (cavif_declarations_check.c).
#pragma once

#include <stddef.h>
#include <stdint.h>

/// `avifResult`, as far as it is told apart.
enum {
    LIB_OK = 0,
    LIB_INVALID_FTYP = 2,
    LIB_NO_CONTENT = 3,
    LIB_REFORMAT_FAILED = 5,
    LIB_UNSUPPORTED_DEPTH = 6,
    LIB_ENCODE_COLOR_FAILED = 7,
    LIB_ENCODE_ALPHA_FAILED = 8,
    LIB_BMFF_PARSE_FAILED = 9,
    LIB_NO_AV1_ITEMS_FOUND = 10,
    LIB_DECODE_COLOR_FAILED = 11,
    LIB_DECODE_ALPHA_FAILED = 12,
    LIB_COLOR_ALPHA_SIZE_MISMATCH = 13,
    LIB_ISPE_SIZE_MISMATCH = 14,
    LIB_NO_CODEC_AVAILABLE = 15,
    LIB_INVALID_IMAGE_GRID = 18,
    LIB_TRUNCATED_DATA = 20,
    LIB_IO_ERROR = 22,
    LIB_WAITING_ON_IO = 23,
    LIB_NOT_IMPLEMENTED = 25,
    LIB_OUT_OF_MEMORY = 26,
};
typedef int lib_result;
typedef int lib_bool;

enum { LIB_YUV444 = 1, LIB_YUV422, LIB_YUV420, LIB_YUV400 };
enum { LIB_RANGE_FULL = 1 };
enum { LIB_RGB, LIB_RGBA };
enum { LIB_CHOICE_AOM = 1, LIB_CHOICE_DAV1D = 2 };
enum { LIB_STRICT_PIXI_REQUIRED = 1, LIB_STRICT_CLAP_VALID = 2 };
enum { LIB_TRANSFORM_CLAP = 2, LIB_TRANSFORM_IROT = 4, LIB_TRANSFORM_IMIR = 8 };
enum { LIB_PRIMARIES_BT709 = 1, LIB_TRANSFER_SRGB = 13, LIB_MATRIX_BT601 = 6 };
enum { LIB_QUANTIZER_LOSSLESS = 0 };
/// The library's default limit of pixels.
enum { LIB_MOST_PIXELS = 16384 * 16384 };

typedef struct {
    uint8_t *data;
    size_t size;
} lib_bytes;

typedef struct {
    uint64_t offset;
    size_t size;
} lib_extent;

typedef struct { uint32_t x, y, width, height; } lib_rectangle;

/// Fractions of signed numbers.
typedef struct {
    uint32_t width[2], height[2], x[2], y[2];
} lib_aperture;

typedef struct {
    uint32_t width, height, depth;
    int yuvFormat, yuvRange, yuvChromaSamplePosition;
    uint8_t *yuvPlanes[3];
    uint32_t yuvRowBytes[3];
    lib_bool imageOwnsYUVPlanes;
    uint8_t *alphaPlane;
    uint32_t alphaRowBytes;
    lib_bool imageOwnsAlphaPlane, alphaPremultiplied;
    lib_bytes icc;
    uint16_t colorPrimaries, transferCharacteristics, matrixCoefficients;
#if CAVIF_ABI >= 16
    uint16_t lightLevels[2];
#endif
    uint32_t transformFlags;
    uint32_t pixelAspectRatio[2];
    lib_aperture clap;
    uint8_t angle, mirror;
} lib_image;

/// Complete.
typedef struct {
    uint32_t width, height, depth;
    int format, chromaUpsampling, chromaDownsampling;
    lib_bool avoidLibYUV, ignoreAlpha, alphaPremultiplied, isFloat;
#if CAVIF_ABI >= 16
    int maxThreads;
#endif
    uint8_t *pixels;
    uint32_t rowBytes;
} lib_pixels;

typedef struct {
    int codecChoice, maxThreads, requestedSource;
    lib_bool allowProgressive, allowIncremental, ignoreExif, ignoreXMP;
    uint32_t imageSizeLimit, imageDimensionLimit, imageCountLimit, strictFlags;
    lib_image *image;
    int imageIndex, imageCount, progressiveState;
    struct {
        uint64_t timescale;
        double pts;
        uint64_t ptsInTimescales;
        double duration;
        uint64_t durationInTimescales;
    } imageTiming;
    uint64_t timescale;
    double duration;
    uint64_t durationInTimescales;
#if CAVIF_ABI >= 16
    int repetitionCount;
#endif
    lib_bool alphaPresent;
    size_t sizes[2];
    struct { char error[256]; } diag;
} lib_decoder;

typedef struct {
    int codecChoice, maxThreads, speed, keyframeInterval;
    uint64_t timescale;
#if CAVIF_ABI >= 16
    int repetitionCount;
    uint32_t extraLayerCount;
    int quality, qualityAlpha;
#endif
    int minQuantizer, maxQuantizer, minQuantizerAlpha, maxQuantizerAlpha;
    int tileRowsLog2, tileColsLog2;
} lib_encoder;

#if CAVIF_ABI >= 16
typedef lib_result lib_outcome;
#else
typedef void lib_outcome;
#endif

typedef void lib_CodecVersions(char text[256]);
typedef lib_decoder *lib_DecoderCreate(void);
typedef void lib_DecoderDestroy(lib_decoder *);
typedef lib_result lib_DecoderNextImage(lib_decoder *);
typedef lib_result lib_DecoderNthImageMaxExtent(const lib_decoder *, uint32_t, lib_extent *);
typedef lib_result lib_DecoderParse(lib_decoder *);
typedef lib_result lib_DecoderSetIOMemory(lib_decoder *, const uint8_t *, size_t);
typedef lib_encoder *lib_EncoderCreate(void);
typedef void lib_EncoderDestroy(lib_encoder *);
typedef lib_outcome lib_EncoderSetCodecSpecificOption(
    lib_encoder *, const char *key, const char *value);
typedef lib_result lib_EncoderWrite(lib_encoder *, const lib_image *, lib_bytes *);
typedef lib_image *lib_ImageCreate(uint32_t width, uint32_t height, uint32_t depth, int format);
typedef lib_image *lib_ImageCreateEmpty(void);
typedef void lib_ImageDestroy(lib_image *);
typedef lib_result lib_ImageRGBToYUV(lib_image *, const lib_pixels *);
typedef lib_outcome lib_ImageSetMetadataExif(lib_image *, const uint8_t *, size_t);
typedef lib_outcome lib_ImageSetMetadataXMP(lib_image *, const uint8_t *, size_t);
typedef lib_outcome lib_ImageSetProfileICC(lib_image *, const uint8_t *, size_t);
typedef lib_result lib_ImageSetViewRect(lib_image *, const lib_image *, const lib_rectangle *);
typedef lib_result lib_ImageYUVToRGB(const lib_image *, lib_pixels *);
typedef void lib_RGBImageSetDefaults(lib_pixels *, const lib_image *);
typedef void lib_RWDataFree(lib_bytes *);
typedef const char *lib_ResultToString(lib_result);
typedef const char *lib_Version(void);

/// Every function used here, without the `avif` prefix.
#define LIB_FUNCTIONS(FUNCTION) \
    FUNCTION(CodecVersions) \
    FUNCTION(DecoderCreate) \
    FUNCTION(DecoderDestroy) \
    FUNCTION(DecoderNextImage) \
    FUNCTION(DecoderNthImageMaxExtent) \
    FUNCTION(DecoderParse) \
    FUNCTION(DecoderSetIOMemory) \
    FUNCTION(EncoderCreate) \
    FUNCTION(EncoderDestroy) \
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

struct lib_functions {
#define LIB_MEMBER(name) lib_##name *name;
    LIB_FUNCTIONS(LIB_MEMBER)
#undef LIB_MEMBER
};
