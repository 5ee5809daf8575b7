/// The part of libtiff's interface that is used here. A build with libtiff's own header compares
/// the two (ctiff_declarations_check.c).
#pragma once

#include <stdarg.h>
#include <stdint.h>

typedef struct tiff lib_tiff;

typedef int64_t (*lib_io)(void *handle, void *buffer, int64_t size);
typedef uint64_t (*lib_seek)(void *handle, uint64_t offset, int whence);
typedef int (*lib_close)(void *handle);
typedef uint64_t (*lib_size)(void *handle);
typedef int (*lib_map)(void *handle, void **base, uint64_t *size);
typedef void (*lib_unmap)(void *handle, void *base, uint64_t size);
typedef void (*lib_handler)(void *handle, const char *module, const char *format, va_list values);
typedef void (*lib_plain_handler)(const char *module, const char *format, va_list values);

enum {
    LIB_SUBFILE_TYPE = 254,
    LIB_WIDTH = 256,
    LIB_LENGTH = 257,
    LIB_BITS = 258,
    LIB_COMPRESSION = 259,
    LIB_PHOTOMETRIC = 262,
    LIB_ORIENTATION = 274,
    LIB_SAMPLES = 277,
    LIB_PLANAR = 284,
    LIB_COLOUR_MAP = 320,
    LIB_TILE_WIDTH = 322,
    LIB_TILE_LENGTH = 323,
    LIB_INK_SET = 332,
    LIB_EXTRA_SAMPLES = 338,
    LIB_SAMPLE_FORMAT = 339,
    LIB_PROFILE = 34675,
    LIB_DNG_VERSION = 50706,
    LIB_JPEG_COLOUR_MODE = 65538,
};
enum { LIB_REDUCED = 1 };
enum { LIB_COMPRESSION_JPEG = 7 };
enum {
    LIB_WHITE_IS_ZERO = 0,
    LIB_BLACK_IS_ZERO = 1,
    LIB_RGB = 2,
    LIB_PALETTE = 3,
    LIB_INKS = 5,
    LIB_YCBCR = 6,
    LIB_LAB = 8,
    LIB_ICC_LAB = 9,
};
enum { LIB_CONTIGUOUS = 1, LIB_SEPARATE = 2 };
enum { LIB_INK_SET_CMYK = 1 };
enum { LIB_ASSOCIATED_ALPHA = 1, LIB_STRAIGHT_ALPHA = 2 };
enum { LIB_UNSIGNED = 1, LIB_VOID = 4 };
enum { LIB_JPEG_COLOUR_MODE_RGB = 1 };

/// Every function in use, without the prefix `TIFF`: name, result, parameters.
#define LIB_FUNCTIONS(FUNCTION) \
    FUNCTION(ClientOpen, lib_tiff *, \
             (const char *, const char *, void *, lib_io, lib_io, lib_seek, lib_close, lib_size, \
              lib_map, lib_unmap)) \
    FUNCTION(Close, void, (lib_tiff *)) \
    FUNCTION(GetField, int, (lib_tiff *, uint32_t, ...)) \
    FUNCTION(GetFieldDefaulted, int, (lib_tiff *, uint32_t, ...)) \
    FUNCTION(GetVersion, const char *, (void)) \
    FUNCTION(IsCODECConfigured, int, (uint16_t)) \
    FUNCTION(IsTiled, int, (lib_tiff *)) \
    FUNCTION(LastDirectory, int, (lib_tiff *)) \
    FUNCTION(RGBAImageOK, int, (lib_tiff *, char *)) \
    FUNCTION(ReadRGBAImageOriented, int, \
             (lib_tiff *, uint32_t, uint32_t, uint32_t *, int, int)) \
    FUNCTION(ReadScanline, int, (lib_tiff *, void *, uint32_t, uint16_t)) \
    FUNCTION(ReadTile, int64_t, \
             (lib_tiff *, void *, uint32_t, uint32_t, uint32_t, uint16_t)) \
    FUNCTION(ScanlineSize64, uint64_t, (lib_tiff *)) \
    FUNCTION(SetErrorHandler, lib_plain_handler, (lib_plain_handler)) \
    FUNCTION(SetErrorHandlerExt, lib_handler, (lib_handler)) \
    FUNCTION(SetField, int, (lib_tiff *, uint32_t, ...)) \
    FUNCTION(SetWarningHandler, lib_plain_handler, (lib_plain_handler)) \
    FUNCTION(SetWarningHandlerExt, lib_handler, (lib_handler)) \
    FUNCTION(StripSize64, uint64_t, (lib_tiff *)) \
    FUNCTION(TileRowSize64, uint64_t, (lib_tiff *)) \
    FUNCTION(TileSize64, uint64_t, (lib_tiff *))
