#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cavif_library.h"

#include <stdio.h>

static const char *words_for(avifResult result) {
    switch (result) {
    case AVIF_RESULT_NO_CODEC_AVAILABLE: return "libavif has no encoder (aom)";
    case AVIF_RESULT_UNSUPPORTED_DEPTH:
    case AVIF_RESULT_REFORMAT_FAILED: return "libavif does not convert the pixels";
    case AVIF_RESULT_ENCODE_COLOR_FAILED: return "aom does not encode the colours";
    case AVIF_RESULT_ENCODE_ALPHA_FAILED: return "aom does not encode the alpha";
    default: return "libavif does not write the file";
    }
}

static ccodec_status status_of(avifResult result, char *message) {
    if (result == AVIF_RESULT_OK) return CCODEC_OK;
    snprintf(message, CCODEC_MESSAGE_BYTES, "%s", words_for(result));
    return result == AVIF_RESULT_OUT_OF_MEMORY ? CCODEC_OUT_OF_MEMORY : CCODEC_FAILED;
}

/// Full-range luma and chroma, by JPEG's matrix; without a profile the colours are sRGB.
static avifImage *image_of(
    const ccodec_picture *picture, const uint8_t *profile, size_t profile_length,
    const uint8_t *exif, size_t exif_length, const cavif_options *options) {
    avifPixelFormat format = options->is_grey ? AVIF_PIXEL_FORMAT_YUV400
        : options->halves_chroma ? AVIF_PIXEL_FORMAT_YUV420 : AVIF_PIXEL_FORMAT_YUV444;
    avifImage *image = cavif_functions.ImageCreate(picture->width, picture->height, 8, format);
    if (image == NULL) return NULL;
    image->yuvRange = AVIF_RANGE_FULL;
    image->matrixCoefficients = AVIF_MATRIX_COEFFICIENTS_BT601;
    if (profile_length > 0) {
        cavif_functions.ImageSetProfileICC(image, profile, profile_length);
    } else {
        image->colorPrimaries = AVIF_COLOR_PRIMARIES_BT709;
        image->transferCharacteristics = AVIF_TRANSFER_CHARACTERISTICS_SRGB;
    }
    if (exif_length > 0) cavif_functions.ImageSetMetadataExif(image, exif, exif_length);
    return image;
}

static ccodec_status encode(
    avifImage *image, const ccodec_picture *picture, const cavif_options *options,
    avifRWData *output, char *message) {
    avifRGBImage pixels;
    cavif_functions.RGBImageSetDefaults(&pixels, image);
    pixels.depth = 8;
    pixels.format = picture->channels == 4 ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
    pixels.pixels = picture->pixels;
    pixels.rowBytes = (uint32_t)picture->stride;
    ccodec_status status = status_of(cavif_functions.ImageRGBToYUV(image, &pixels), message);
    if (status != CCODEC_OK) return status;
    avifEncoder *encoder = cavif_functions.EncoderCreate();
    if (encoder == NULL) return CCODEC_OUT_OF_MEMORY;
    encoder->codecChoice = AVIF_CODEC_CHOICE_AOM;
    encoder->maxThreads = 1;
    encoder->speed = options->speed;
    encoder->minQuantizer = encoder->maxQuantizer = options->quantizer;
    encoder->minQuantizerAlpha = encoder->maxQuantizerAlpha = AVIF_QUANTIZER_LOSSLESS;
    status = status_of(cavif_functions.EncoderWrite(encoder, image, output), message);
    cavif_functions.EncoderDestroy(encoder);
    return status;
}

ccodec_status cavif_encode(
    const ccodec_picture *picture, const uint8_t *profile, size_t profile_length,
    const uint8_t *exif, size_t exif_length, const cavif_options *options,
    cinterruption *interruption, uint8_t **bytes, size_t *length,
    char message[CCODEC_MESSAGE_BYTES]) {
    *bytes = NULL;
    *length = 0;
    ccodec_status loaded = cavif_require(message);
    if (loaded != CCODEC_OK) return loaded;
    message[0] = 0;
    if (picture->stride > UINT32_MAX) return CCODEC_LIMIT;
    avifImage *image = image_of(picture, profile, profile_length, exif, exif_length, options);
    if (image == NULL) return CCODEC_OUT_OF_MEMORY;
    avifRWData output = AVIF_DATA_EMPTY;
    ccodec_status status = encode(image, picture, options, &output, message);
    cavif_functions.ImageDestroy(image);
    if (status == CCODEC_OK && interruption != NULL && cinterruption_look(interruption)) {
        status = CCODEC_INTERRUPTED;
    }
    if (status != CCODEC_OK) {
        cavif_functions.RWDataFree(&output);
        return status;
    }
    // The library allocates by `malloc`.
    *bytes = output.data;
    *length = output.size;
    return CCODEC_OK;
}
