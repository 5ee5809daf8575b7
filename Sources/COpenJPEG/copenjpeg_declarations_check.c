// Compares copenjpeg_declarations.h with openjpeg's header, if the system has one.
#if __has_include(<openjpeg-2.5/openjpeg.h>)

#include <openjpeg-2.5/openjpeg.h>

#include "copenjpeg_declarations.h"

#define VALUE(ours, its) _Static_assert((int)ours == (int)its, #ours);
VALUE(LIB_CODESTREAM, OPJ_CODEC_J2K)
VALUE(LIB_FILE, OPJ_CODEC_JP2)
VALUE(LIB_COLOURS_UNKNOWN, OPJ_CLRSPC_UNKNOWN)
VALUE(LIB_COLOURS_UNSPECIFIED, OPJ_CLRSPC_UNSPECIFIED)
VALUE(LIB_COLOURS_SRGB, OPJ_CLRSPC_SRGB)
VALUE(LIB_COLOURS_GREY, OPJ_CLRSPC_GRAY)
VALUE(LIB_COLOURS_YCC, OPJ_CLRSPC_SYCC)
VALUE(LIB_COLOURS_INKS, OPJ_CLRSPC_CMYK)

#define MEMBER(ours, its, member) \
    _Static_assert(offsetof(ours, member) == offsetof(its, member), #ours "." #member);
MEMBER(lib_component, opj_image_comp_t, dx)
MEMBER(lib_component, opj_image_comp_t, w)
MEMBER(lib_component, opj_image_comp_t, prec)
MEMBER(lib_component, opj_image_comp_t, sgnd)
MEMBER(lib_component, opj_image_comp_t, data)
MEMBER(lib_component, opj_image_comp_t, alpha)
MEMBER(lib_image, opj_image_t, x1)
MEMBER(lib_image, opj_image_t, numcomps)
MEMBER(lib_image, opj_image_t, color_space)
MEMBER(lib_image, opj_image_t, comps)
MEMBER(lib_image, opj_image_t, icc_profile_buf)
MEMBER(lib_image, opj_image_t, icc_profile_len)
_Static_assert(sizeof(lib_component) == sizeof(opj_image_comp_t), "opj_image_comp_t");
_Static_assert(sizeof(lib_parameters) >= sizeof(opj_dparameters_t), "opj_dparameters_t");

// Their parameters are not compared.
#define FUNCTION(name, result, parameters) \
    _Static_assert(sizeof(&opj_##name) == sizeof(result(*) parameters), #name);
LIB_FUNCTIONS(FUNCTION)

#endif
