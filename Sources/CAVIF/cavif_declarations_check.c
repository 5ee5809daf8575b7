// Compares cavif_declarations.h with libavif's header, if the system has one.
#if __has_include(<avif/avif.h>)

#include <avif/avif.h>

#if AVIF_VERSION_MAJOR == 0 && AVIF_VERSION_MINOR == 11
#define CAVIF_ABI 15
#elif AVIF_VERSION_MAJOR == 1
#define CAVIF_ABI 16
#else
#error "libavif's header is of another version than the two of cavif_declarations.h"
#endif
#include "cavif_declarations.h"

#define VALUE(ours, its) _Static_assert((int)ours == (int)its, #ours);
VALUE(LIB_OK, AVIF_RESULT_OK)
VALUE(LIB_INVALID_FTYP, AVIF_RESULT_INVALID_FTYP)
VALUE(LIB_NO_CONTENT, AVIF_RESULT_NO_CONTENT)
VALUE(LIB_REFORMAT_FAILED, AVIF_RESULT_REFORMAT_FAILED)
VALUE(LIB_UNSUPPORTED_DEPTH, AVIF_RESULT_UNSUPPORTED_DEPTH)
VALUE(LIB_ENCODE_COLOR_FAILED, AVIF_RESULT_ENCODE_COLOR_FAILED)
VALUE(LIB_ENCODE_ALPHA_FAILED, AVIF_RESULT_ENCODE_ALPHA_FAILED)
VALUE(LIB_BMFF_PARSE_FAILED, AVIF_RESULT_BMFF_PARSE_FAILED)
VALUE(LIB_NO_AV1_ITEMS_FOUND, AVIF_RESULT_NO_AV1_ITEMS_FOUND)
VALUE(LIB_DECODE_COLOR_FAILED, AVIF_RESULT_DECODE_COLOR_FAILED)
VALUE(LIB_DECODE_ALPHA_FAILED, AVIF_RESULT_DECODE_ALPHA_FAILED)
VALUE(LIB_COLOR_ALPHA_SIZE_MISMATCH, AVIF_RESULT_COLOR_ALPHA_SIZE_MISMATCH)
VALUE(LIB_ISPE_SIZE_MISMATCH, AVIF_RESULT_ISPE_SIZE_MISMATCH)
VALUE(LIB_NO_CODEC_AVAILABLE, AVIF_RESULT_NO_CODEC_AVAILABLE)
VALUE(LIB_INVALID_IMAGE_GRID, AVIF_RESULT_INVALID_IMAGE_GRID)
VALUE(LIB_TRUNCATED_DATA, AVIF_RESULT_TRUNCATED_DATA)
VALUE(LIB_IO_ERROR, AVIF_RESULT_IO_ERROR)
VALUE(LIB_WAITING_ON_IO, AVIF_RESULT_WAITING_ON_IO)
VALUE(LIB_NOT_IMPLEMENTED, AVIF_RESULT_NOT_IMPLEMENTED)
VALUE(LIB_OUT_OF_MEMORY, AVIF_RESULT_OUT_OF_MEMORY)
VALUE(LIB_YUV444, AVIF_PIXEL_FORMAT_YUV444)
VALUE(LIB_YUV422, AVIF_PIXEL_FORMAT_YUV422)
VALUE(LIB_YUV420, AVIF_PIXEL_FORMAT_YUV420)
VALUE(LIB_YUV400, AVIF_PIXEL_FORMAT_YUV400)
VALUE(LIB_RANGE_FULL, AVIF_RANGE_FULL)
VALUE(LIB_RGB, AVIF_RGB_FORMAT_RGB)
VALUE(LIB_RGBA, AVIF_RGB_FORMAT_RGBA)
VALUE(LIB_CHOICE_AOM, AVIF_CODEC_CHOICE_AOM)
VALUE(LIB_CHOICE_DAV1D, AVIF_CODEC_CHOICE_DAV1D)
VALUE(LIB_STRICT_PIXI_REQUIRED, AVIF_STRICT_PIXI_REQUIRED)
VALUE(LIB_STRICT_CLAP_VALID, AVIF_STRICT_CLAP_VALID)
VALUE(LIB_TRANSFORM_CLAP, AVIF_TRANSFORM_CLAP)
VALUE(LIB_TRANSFORM_IROT, AVIF_TRANSFORM_IROT)
VALUE(LIB_TRANSFORM_IMIR, AVIF_TRANSFORM_IMIR)
VALUE(LIB_PRIMARIES_BT709, AVIF_COLOR_PRIMARIES_BT709)
VALUE(LIB_TRANSFER_SRGB, AVIF_TRANSFER_CHARACTERISTICS_SRGB)
VALUE(LIB_MATRIX_BT601, AVIF_MATRIX_COEFFICIENTS_BT601)
VALUE(LIB_QUANTIZER_LOSSLESS, AVIF_QUANTIZER_LOSSLESS)
VALUE(LIB_MOST_PIXELS, AVIF_DEFAULT_IMAGE_SIZE_LIMIT)

#define MEMBER_AS(ours, member, its, its_member) \
    _Static_assert( \
        offsetof(ours, member) == offsetof(its, its_member) \
            && sizeof(((ours *)0)->member) == sizeof(((its *)0)->its_member), \
        #ours "." #member);
#define MEMBER(ours, its, member) MEMBER_AS(ours, member, its, member)
MEMBER(lib_bytes, avifRWData, data)
MEMBER(lib_bytes, avifRWData, size)
MEMBER(lib_extent, avifExtent, offset)
MEMBER(lib_extent, avifExtent, size)
MEMBER(lib_rectangle, avifCropRect, x)
MEMBER(lib_rectangle, avifCropRect, y)
MEMBER(lib_rectangle, avifCropRect, width)
MEMBER(lib_rectangle, avifCropRect, height)
MEMBER_AS(lib_aperture, width[0], avifCleanApertureBox, widthN)
MEMBER_AS(lib_aperture, width[1], avifCleanApertureBox, widthD)
MEMBER_AS(lib_aperture, height[0], avifCleanApertureBox, heightN)
MEMBER_AS(lib_aperture, height[1], avifCleanApertureBox, heightD)
MEMBER_AS(lib_aperture, x[0], avifCleanApertureBox, horizOffN)
MEMBER_AS(lib_aperture, x[1], avifCleanApertureBox, horizOffD)
MEMBER_AS(lib_aperture, y[0], avifCleanApertureBox, vertOffN)
MEMBER_AS(lib_aperture, y[1], avifCleanApertureBox, vertOffD)
MEMBER(lib_image, avifImage, width)
MEMBER(lib_image, avifImage, height)
MEMBER(lib_image, avifImage, depth)
MEMBER(lib_image, avifImage, yuvFormat)
MEMBER(lib_image, avifImage, yuvRange)
MEMBER(lib_image, avifImage, yuvPlanes)
MEMBER(lib_image, avifImage, yuvRowBytes)
MEMBER(lib_image, avifImage, alphaPlane)
MEMBER(lib_image, avifImage, alphaRowBytes)
MEMBER(lib_image, avifImage, icc)
MEMBER(lib_image, avifImage, colorPrimaries)
MEMBER(lib_image, avifImage, transferCharacteristics)
MEMBER(lib_image, avifImage, matrixCoefficients)
MEMBER(lib_image, avifImage, transformFlags)
MEMBER(lib_image, avifImage, clap)
MEMBER_AS(lib_image, angle, avifImage, irot.angle)
MEMBER_AS(lib_image, mirror, avifImage, imir)
MEMBER(lib_pixels, avifRGBImage, depth)
MEMBER(lib_pixels, avifRGBImage, format)
MEMBER(lib_pixels, avifRGBImage, pixels)
MEMBER(lib_pixels, avifRGBImage, rowBytes)
MEMBER(lib_decoder, avifDecoder, codecChoice)
MEMBER(lib_decoder, avifDecoder, maxThreads)
MEMBER(lib_decoder, avifDecoder, ignoreExif)
MEMBER(lib_decoder, avifDecoder, ignoreXMP)
MEMBER(lib_decoder, avifDecoder, imageSizeLimit)
MEMBER(lib_decoder, avifDecoder, imageDimensionLimit)
MEMBER(lib_decoder, avifDecoder, imageCountLimit)
MEMBER(lib_decoder, avifDecoder, strictFlags)
MEMBER(lib_decoder, avifDecoder, image)
MEMBER(lib_decoder, avifDecoder, imageIndex)
MEMBER(lib_decoder, avifDecoder, imageCount)
MEMBER(lib_decoder, avifDecoder, imageTiming.timescale)
MEMBER(lib_decoder, avifDecoder, imageTiming.durationInTimescales)
MEMBER(lib_decoder, avifDecoder, alphaPresent)
MEMBER(lib_decoder, avifDecoder, diag.error)
MEMBER(lib_encoder, avifEncoder, codecChoice)
MEMBER(lib_encoder, avifEncoder, maxThreads)
MEMBER(lib_encoder, avifEncoder, speed)
MEMBER(lib_encoder, avifEncoder, minQuantizer)
MEMBER(lib_encoder, avifEncoder, maxQuantizer)
MEMBER(lib_encoder, avifEncoder, minQuantizerAlpha)
MEMBER(lib_encoder, avifEncoder, maxQuantizerAlpha)
MEMBER(lib_encoder, avifEncoder, tileColsLog2)

// Structs that callers make.
_Static_assert(sizeof(lib_bytes) == sizeof(avifRWData), "avifRWData");
_Static_assert(sizeof(lib_extent) == sizeof(avifExtent), "avifExtent");
_Static_assert(sizeof(lib_rectangle) == sizeof(avifCropRect), "avifCropRect");
_Static_assert(sizeof(lib_pixels) == sizeof(avifRGBImage), "avifRGBImage");

// Declared there, too; their parameters are not compared.
#define FUNCTION(name) _Static_assert(sizeof(&avif##name) == sizeof(lib_##name *), #name);
LIB_FUNCTIONS(FUNCTION)

#endif
