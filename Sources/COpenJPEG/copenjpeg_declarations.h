/// The part of openjpeg's interface that is used here. A build with openjpeg's own header compares
/// the two (copenjpeg_declarations_check.c).
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { LIB_CODESTREAM = 0, LIB_FILE = 2 };
enum {
    LIB_COLOURS_UNKNOWN = -1,
    LIB_COLOURS_UNSPECIFIED = 0,
    LIB_COLOURS_SRGB = 1,
    LIB_COLOURS_GREY = 2,
    LIB_COLOURS_YCC = 3,
    LIB_COLOURS_INKS = 5,
};

/// Complete.
typedef struct {
    uint32_t dx, dy, w, h, x0, y0, prec, bpp, sgnd, resno_decoded, factor;
    int32_t *data;
    uint16_t alpha;
} lib_component;

typedef struct {
    uint32_t x0, y0, x1, y1, numcomps;
    int color_space;
    lib_component *comps;
    uint8_t *icc_profile_buf;
    uint32_t icc_profile_len;
} lib_image;

/// `opj_dparameters_t`, which only the library fills, has less.
typedef union {
    uint8_t bytes[32768];
    uint64_t alignment;
} lib_parameters;

typedef struct opj_codec lib_codec;
typedef struct opj_stream lib_stream;
typedef size_t (*lib_read)(void *buffer, size_t count, void *handle);
typedef int64_t (*lib_skip)(int64_t count, void *handle);
typedef int (*lib_seek)(int64_t offset, void *handle);
typedef void (*lib_message)(const char *text, void *handle);

/// Every function in use, without the prefix `opj_`: name, result, parameters.
#define LIB_FUNCTIONS(FUNCTION) \
    FUNCTION(create_decompress, lib_codec *, (int)) \
    FUNCTION(decode, int, (lib_codec *, lib_stream *, lib_image *)) \
    FUNCTION(destroy_codec, void, (lib_codec *)) \
    FUNCTION(end_decompress, int, (lib_codec *, lib_stream *)) \
    FUNCTION(image_destroy, void, (lib_image *)) \
    FUNCTION(read_header, int, (lib_stream *, lib_codec *, lib_image **)) \
    FUNCTION(set_default_decoder_parameters, void, (lib_parameters *)) \
    FUNCTION(set_error_handler, int, (lib_codec *, lib_message, void *)) \
    FUNCTION(setup_decoder, int, (lib_codec *, lib_parameters *)) \
    FUNCTION(stream_create, lib_stream *, (size_t, int)) \
    FUNCTION(stream_destroy, void, (lib_stream *)) \
    FUNCTION(stream_set_read_function, void, (lib_stream *, lib_read)) \
    FUNCTION(stream_set_seek_function, void, (lib_stream *, lib_seek)) \
    FUNCTION(stream_set_skip_function, void, (lib_stream *, lib_skip)) \
    FUNCTION(stream_set_user_data, void, (lib_stream *, void *, void (*)(void *))) \
    FUNCTION(stream_set_user_data_length, void, (lib_stream *, uint64_t)) \
    FUNCTION(version, const char *, (void))
