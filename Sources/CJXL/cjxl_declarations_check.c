// Compares cjxl_declarations.h with libjxl's header, if the system has one.
#if __has_include(<jxl/decode.h>)

#include <jxl/decode.h>

#include "cjxl_declarations.h"

#define VALUE(ours, its) _Static_assert((int)ours == (int)its, #ours);
VALUE(LIB_SUCCESS, JXL_DEC_SUCCESS)
VALUE(LIB_NEED_MORE_INPUT, JXL_DEC_NEED_MORE_INPUT)
VALUE(LIB_NEED_IMAGE_OUT_BUFFER, JXL_DEC_NEED_IMAGE_OUT_BUFFER)
VALUE(LIB_BASIC_INFO, JXL_DEC_BASIC_INFO)
VALUE(LIB_COLOR_ENCODING, JXL_DEC_COLOR_ENCODING)
VALUE(LIB_FRAME, JXL_DEC_FRAME)
VALUE(LIB_FULL_IMAGE, JXL_DEC_FULL_IMAGE)
VALUE(LIB_UINT8, JXL_TYPE_UINT8)
VALUE(LIB_UINT16, JXL_TYPE_UINT16)
VALUE(LIB_BIG_ENDIAN, JXL_BIG_ENDIAN)
VALUE(LIB_TARGET_DATA, JXL_COLOR_PROFILE_TARGET_DATA)
VALUE(LIB_CHANNEL_BLACK, JXL_CHANNEL_BLACK)
VALUE(LIB_SPACE_GREY, JXL_COLOR_SPACE_GRAY)
VALUE(LIB_WHITE_D65, JXL_WHITE_POINT_D65)
VALUE(LIB_WHITE_DCI, JXL_WHITE_POINT_DCI)
VALUE(LIB_PRIMARIES_SRGB, JXL_PRIMARIES_SRGB)
VALUE(LIB_PRIMARIES_2100, JXL_PRIMARIES_2100)
VALUE(LIB_PRIMARIES_P3, JXL_PRIMARIES_P3)
VALUE(LIB_TRANSFER_PQ, JXL_TRANSFER_FUNCTION_PQ)
VALUE(LIB_TRANSFER_HLG, JXL_TRANSFER_FUNCTION_HLG)

#define MEMBER_AS(ours, member, its, its_member) \
    _Static_assert(offsetof(ours, member) == offsetof(its, its_member), #ours "." #member);
#define MEMBER(ours, its, member) MEMBER_AS(ours, member, its, member)
MEMBER(lib_info, JxlBasicInfo, xsize)
MEMBER(lib_info, JxlBasicInfo, bits_per_sample)
MEMBER(lib_info, JxlBasicInfo, have_animation)
MEMBER(lib_info, JxlBasicInfo, orientation)
MEMBER(lib_info, JxlBasicInfo, num_color_channels)
MEMBER(lib_info, JxlBasicInfo, num_extra_channels)
MEMBER(lib_info, JxlBasicInfo, alpha_bits)
MEMBER(lib_info, JxlBasicInfo, alpha_premultiplied)
MEMBER_AS(lib_info, intrinsic, JxlBasicInfo, intrinsic_xsize)
MEMBER(lib_channel, JxlExtraChannelInfo, type)
MEMBER(lib_encoding, JxlColorEncoding, white_point)
MEMBER(lib_encoding, JxlColorEncoding, primaries)
MEMBER(lib_encoding, JxlColorEncoding, transfer_function)
MEMBER(lib_pixels, JxlPixelFormat, data_type)
MEMBER(lib_pixels, JxlPixelFormat, align)
_Static_assert(sizeof(lib_info) == sizeof(JxlBasicInfo), "JxlBasicInfo");
_Static_assert(sizeof(lib_channel) == sizeof(JxlExtraChannelInfo), "JxlExtraChannelInfo");
_Static_assert(sizeof(lib_encoding) == sizeof(JxlColorEncoding), "JxlColorEncoding");
_Static_assert(sizeof(lib_pixels) == sizeof(JxlPixelFormat), "JxlPixelFormat");

// Their parameters are not compared.
#define FUNCTION(name, result, parameters) \
    _Static_assert(sizeof(&JxlDecoder##name) == sizeof(result(*) parameters), #name);
LIB_FUNCTIONS(FUNCTION)

#endif
