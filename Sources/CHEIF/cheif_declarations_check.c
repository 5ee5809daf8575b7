// Compares cheif_declarations.h with libheif's header, if the system has one.
#if __has_include(<libheif/heif.h>)

#include <libheif/heif.h>

#include "cheif_declarations.h"

#define VALUE(ours, its) _Static_assert((int)ours == (int)its, #ours);
VALUE(LIB_OK, heif_error_Ok)
VALUE(LIB_INVALID_INPUT, heif_error_Invalid_input)
VALUE(LIB_UNSUPPORTED_FILETYPE, heif_error_Unsupported_filetype)
VALUE(LIB_UNSUPPORTED_FEATURE, heif_error_Unsupported_feature)
VALUE(LIB_OUT_OF_MEMORY, heif_error_Memory_allocation_error)
VALUE(LIB_NO_PROFILE, heif_error_Color_profile_does_not_exist)
VALUE(LIB_END_OF_DATA, heif_suberror_End_of_data)
VALUE(LIB_LIMIT_EXCEEDED, heif_suberror_Security_limit_exceeded)
VALUE(LIB_HEVC, heif_compression_HEVC)
VALUE(LIB_COLOURS_RGB, heif_colorspace_RGB)
VALUE(LIB_CHROMA_RGB, heif_chroma_interleaved_RGB)
VALUE(LIB_CHROMA_RGBA, heif_chroma_interleaved_RGBA)
VALUE(LIB_CHROMA_DEEP_RGB, heif_chroma_interleaved_RRGGBB_BE)
VALUE(LIB_CHROMA_DEEP_RGBA, heif_chroma_interleaved_RRGGBBAA_BE)
VALUE(LIB_INTERLEAVED, heif_channel_interleaved)

#define MEMBER(ours, member, its, its_member) \
    _Static_assert(offsetof(ours, member) == offsetof(struct its, its_member), #ours "." #member);
MEMBER(lib_error, code, heif_error, code)
MEMBER(lib_error, subcode, heif_error, subcode)
MEMBER(lib_error, message, heif_error, message)
MEMBER(lib_code_points, version, heif_color_profile_nclx, version)
MEMBER(lib_code_points, primaries, heif_color_profile_nclx, color_primaries)
MEMBER(lib_code_points, transfer, heif_color_profile_nclx, transfer_characteristics)
MEMBER(lib_options, version, heif_decoding_options, version)
MEMBER(lib_options, strict_decoding, heif_decoding_options, strict_decoding)
_Static_assert(sizeof(lib_error) == sizeof(struct heif_error), "heif_error");

// Their parameters are not compared.
#define FUNCTION(name, result, parameters) \
    _Static_assert(sizeof(&heif_##name) == sizeof(result(*) parameters), #name);
LIB_FUNCTIONS(FUNCTION)

#endif
