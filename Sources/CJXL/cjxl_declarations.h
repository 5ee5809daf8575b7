/// The part of libjxl's interface that is used here. A build with libjxl's own header compares the
/// two (cjxl_declarations_check.c).
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct JxlDecoderStruct lib_decoder;

/// `JxlDecoderStatus`, as far as it is told apart.
enum {
    LIB_SUCCESS = 0,
    LIB_NEED_MORE_INPUT = 2,
    LIB_NEED_IMAGE_OUT_BUFFER = 5,
    LIB_BASIC_INFO = 0x40,
    LIB_COLOR_ENCODING = 0x100,
    LIB_FRAME = 0x400,
    LIB_FULL_IMAGE = 0x1000,
};
enum { LIB_UINT8 = 2, LIB_UINT16 = 3 };
enum { LIB_BIG_ENDIAN = 2 };
/// The profile of the decoded samples.
enum { LIB_TARGET_DATA = 1 };
enum { LIB_CHANNEL_BLACK = 4 };
enum { LIB_SPACE_GREY = 1 };
enum { LIB_WHITE_D65 = 1, LIB_WHITE_DCI = 11 };
enum { LIB_PRIMARIES_SRGB = 1, LIB_PRIMARIES_2100 = 9, LIB_PRIMARIES_P3 = 11 };
enum { LIB_TRANSFER_PQ = 16, LIB_TRANSFER_HLG = 18 };

/// `JxlBasicInfo`, complete.
typedef struct {
    int have_container;
    uint32_t xsize, ysize, bits_per_sample, exponent_bits_per_sample;
    float intensity_target, min_nits;
    int relative_to_max_display;
    float linear_below;
    int uses_original_profile, have_preview, have_animation, orientation;
    uint32_t num_color_channels, num_extra_channels, alpha_bits, alpha_exponent_bits;
    int alpha_premultiplied;
    uint32_t preview[2], animation[3];
    int have_timecodes;
    uint32_t intrinsic[2];
    uint8_t padding[100];
} lib_info;

/// `JxlExtraChannelInfo`, complete.
typedef struct {
    int type;
    uint32_t bits_per_sample, exponent_bits_per_sample, dim_shift, name_length;
    int alpha_premultiplied;
    float spot_color[4];
    uint32_t cfa_channel;
} lib_channel;

/// `JxlColorEncoding`, complete.
typedef struct {
    int color_space, white_point;
    double white_point_xy[2];
    int primaries;
    double primaries_xy[6];
    int transfer_function;
    double gamma;
    int rendering_intent;
} lib_encoding;

/// `JxlPixelFormat`, complete.
typedef struct {
    uint32_t num_channels;
    int data_type, endianness;
    size_t align;
} lib_pixels;

typedef void (*lib_callback)(
    void *opaque, size_t x, size_t y, size_t pixels, const void *samples);

/// Every function in use, without the prefix `JxlDecoder`: name, result, parameters. The profile's
/// have an unused second parameter before version 0.9 (cjxl.c).
#define LIB_FUNCTIONS(FUNCTION) \
    FUNCTION(Create, lib_decoder *, (const void *)) \
    FUNCTION(Destroy, void, (lib_decoder *)) \
    FUNCTION(GetBasicInfo, int, (const lib_decoder *, lib_info *)) \
    FUNCTION(GetColorAsEncodedProfile, void, (void)) \
    FUNCTION(GetColorAsICCProfile, void, (void)) \
    FUNCTION(GetExtraChannelInfo, int, (const lib_decoder *, size_t, lib_channel *)) \
    FUNCTION(GetICCProfileSize, void, (void)) \
    FUNCTION(ProcessInput, int, (lib_decoder *)) \
    FUNCTION(SetImageOutCallback, int, \
             (lib_decoder *, const lib_pixels *, lib_callback, void *)) \
    FUNCTION(SetInput, int, (lib_decoder *, const uint8_t *, size_t)) \
    FUNCTION(SetKeepOrientation, int, (lib_decoder *, int)) \
    FUNCTION(SubscribeEvents, int, (lib_decoder *, int)) \
    FUNCTION(Version, uint32_t, (void))
