/// The part of libheif's interface that is used here. A build with libheif's own header compares
/// the two (cheif_declarations_check.c).
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct heif_context lib_context;
typedef struct heif_image_handle lib_picture;
typedef struct heif_image lib_image;

typedef struct {
    int code, subcode;
    const char *message;
} lib_error;

/// As far as it is used; the library makes it.
typedef struct {
    uint8_t version;
    int primaries, transfer;
} lib_code_points;

/// As far as it is used; the library makes it.
typedef struct {
    uint8_t version, ignore_transformations;
    void *progress[4];
    uint8_t convert_hdr_to_8bit, strict_decoding;
} lib_options;

enum {
    LIB_OK = 0,
    LIB_INVALID_INPUT = 2,
    LIB_UNSUPPORTED_FILETYPE = 3,
    LIB_UNSUPPORTED_FEATURE = 4,
    LIB_OUT_OF_MEMORY = 6,
    LIB_NO_PROFILE = 10,
};
enum { LIB_END_OF_DATA = 100, LIB_LIMIT_EXCEEDED = 1000 };
enum { LIB_HEVC = 1 };
enum { LIB_COLOURS_RGB = 1 };
enum {
    LIB_CHROMA_RGB = 10,
    LIB_CHROMA_RGBA = 11,
    LIB_CHROMA_DEEP_RGB = 12,
    LIB_CHROMA_DEEP_RGBA = 13,
};
enum { LIB_INTERLEAVED = 10 };

/// Every function in use, without the prefix `heif_`: name, result, parameters.
#define LIB_FUNCTIONS(FUNCTION) \
    FUNCTION(context_alloc, lib_context *, (void)) \
    FUNCTION(context_free, void, (lib_context *)) \
    FUNCTION(context_get_primary_image_handle, lib_error, (lib_context *, lib_picture **)) \
    FUNCTION(context_read_from_memory_without_copy, lib_error, \
             (lib_context *, const void *, size_t, const void *)) \
    FUNCTION(context_set_max_decoding_threads, void, (lib_context *, int)) \
    FUNCTION(decode_image, lib_error, \
             (const lib_picture *, lib_image **, int, int, const lib_options *)) \
    FUNCTION(decoding_options_alloc, lib_options *, (void)) \
    FUNCTION(decoding_options_free, void, (lib_options *)) \
    FUNCTION(get_version, const char *, (void)) \
    FUNCTION(have_decoder_for_format, int, (int)) \
    FUNCTION(image_get_bits_per_pixel_range, int, (const lib_image *, int)) \
    FUNCTION(image_get_decoding_warnings, int, (lib_image *, int, lib_error *, int)) \
    FUNCTION(image_get_height, int, (const lib_image *, int)) \
    FUNCTION(image_get_plane_readonly, const uint8_t *, (const lib_image *, int, int *)) \
    FUNCTION(image_get_width, int, (const lib_image *, int)) \
    FUNCTION(image_handle_get_height, int, (const lib_picture *)) \
    FUNCTION(image_handle_get_luma_bits_per_pixel, int, (const lib_picture *)) \
    FUNCTION(image_handle_get_nclx_color_profile, lib_error, \
             (const lib_picture *, lib_code_points **)) \
    FUNCTION(image_handle_get_raw_color_profile, lib_error, (const lib_picture *, void *)) \
    FUNCTION(image_handle_get_raw_color_profile_size, size_t, (const lib_picture *)) \
    FUNCTION(image_handle_get_width, int, (const lib_picture *)) \
    FUNCTION(image_handle_has_alpha_channel, int, (const lib_picture *)) \
    FUNCTION(image_handle_is_premultiplied_alpha, int, (const lib_picture *)) \
    FUNCTION(image_handle_release, void, (const lib_picture *)) \
    FUNCTION(image_release, void, (const lib_image *)) \
    FUNCTION(init, lib_error, (void *)) \
    FUNCTION(nclx_color_profile_free, void, (lib_code_points *))
