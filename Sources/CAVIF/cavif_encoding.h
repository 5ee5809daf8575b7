// Encoding, compiled for each binary interface of libavif (cavif_shim.h).
#pragma once

static const char *words_for_encoding(lib_result result) {
    switch (result) {
    case LIB_NO_CODEC_AVAILABLE: return "libavif has no encoder (aom)";
    case LIB_UNSUPPORTED_DEPTH:
    case LIB_REFORMAT_FAILED: return "libavif does not convert the pixels";
    case LIB_ENCODE_COLOR_FAILED: return "aom does not encode the colours";
    case LIB_ENCODE_ALPHA_FAILED: return "aom does not encode the alpha";
    default: return "libavif does not write the file";
    }
}

static ccodec_status encoding_status(lib_result result, char *message) {
    if (result == LIB_OK) return CCODEC_OK;
    snprintf(message, CCODEC_MESSAGE_BYTES, "%s", words_for_encoding(result));
    return result == LIB_OUT_OF_MEMORY ? CCODEC_OUT_OF_MEMORY : CCODEC_FAILED;
}

typedef lib_outcome setter(lib_image *, const uint8_t *, size_t);

/// Destroys the image without memory for the data; version 15 ends the process itself.
static bool has_set(lib_image *image, setter *set, const uint8_t *bytes, size_t length) {
#if CAVIF_ABI >= 16
    if (set(image, bytes, length) == LIB_OK) return true;
    lib.ImageDestroy(image);
    return false;
#else
    set(image, bytes, length);
    return true;
#endif
}

/// Full-range luma and chroma, by JPEG's matrix; without a profile the colours are sRGB.
static lib_image *image_of(
    const ccodec_picture *picture, const uint8_t *profile, size_t profile_length,
    const uint8_t *exif, size_t exif_length, const uint8_t *xmp, size_t xmp_length,
    const cavif_options *options) {
    int format = options->is_grey ? LIB_YUV400
        : options->halves_chroma ? LIB_YUV420 : LIB_YUV444;
    lib_image *image = lib.ImageCreate(picture->width, picture->height, 8, format);
    if (image == NULL) return NULL;
    image->yuvRange = LIB_RANGE_FULL;
    image->matrixCoefficients = LIB_MATRIX_BT601;
    if (profile_length > 0) {
        if (!has_set(image, lib.ImageSetProfileICC, profile, profile_length)) return NULL;
    } else {
        image->colorPrimaries = LIB_PRIMARIES_BT709;
        image->transferCharacteristics = LIB_TRANSFER_SRGB;
    }
    if (exif_length > 0 && !has_set(image, lib.ImageSetMetadataExif, exif, exif_length)) {
        return NULL;
    }
    bool has_xmp = xmp_length == 0
        || has_set(image, lib.ImageSetMetadataXMP, xmp, xmp_length);
    return has_xmp ? image : NULL;
}

/// The base 2 logarithm of the columns of tiles, so that a tile has at most 4,096 × 2,304 pixels
/// (AV1, section 5.9.15), in superblocks of either size. aom 3.6.0 states other tiles than it
/// writes where it chooses the number itself.
static int tile_columns(uint32_t width, uint32_t height) {
    int columns = 0;
    for (uint32_t side = 64; side <= 128; side *= 2) {
        uint64_t blocks = (uint64_t)((width + side - 1) / side) * ((height + side - 1) / side);
        uint64_t most = 4096 * 2304 / (side * side);
        while (most << columns < blocks) columns++;
    }
    return columns;
}

static ccodec_status encode(
    lib_image *image, const ccodec_picture *picture, const cavif_options *options,
    lib_bytes *output, char *message) {
    lib_pixels pixels;
    lib.RGBImageSetDefaults(&pixels, image);
    pixels.depth = 8;
    pixels.format = picture->channels == 4 ? LIB_RGBA : LIB_RGB;
    pixels.pixels = picture->pixels;
    pixels.rowBytes = (uint32_t)picture->stride;
    ccodec_status status = encoding_status(lib.ImageRGBToYUV(image, &pixels), message);
    if (status != CCODEC_OK) return status;
    lib_encoder *encoder = lib.EncoderCreate();
    if (encoder == NULL) return CCODEC_OUT_OF_MEMORY;
    encoder->codecChoice = LIB_CHOICE_AOM;
    encoder->maxThreads = 1;
    encoder->speed = options->speed;
    // aom omits its filter of directions from still pictures. On photographs it saves 2 % of bytes
    // for no time.
    lib.EncoderSetCodecSpecificOption(encoder, "enable-cdef", "1");
    if (!options->searches_repetitions) {
        lib.EncoderSetCodecSpecificOption(encoder, "enable-intrabc", "0");
    }
    encoder->tileColsLog2 = tile_columns(picture->width, picture->height);
    encoder->minQuantizer = encoder->maxQuantizer = options->quantizer;
    encoder->minQuantizerAlpha = encoder->maxQuantizerAlpha = LIB_QUANTIZER_LOSSLESS;
    status = encoding_status(lib.EncoderWrite(encoder, image, output), message);
    lib.EncoderDestroy(encoder);
    return status;
}

static ccodec_status shim_encode(
    const ccodec_picture *picture, const uint8_t *profile, size_t profile_length,
    const uint8_t *exif, size_t exif_length, const uint8_t *xmp, size_t xmp_length,
    const cavif_options *options, cinterruption *interruption, uint8_t **bytes, size_t *length,
    char message[CCODEC_MESSAGE_BYTES]) {
    *bytes = NULL;
    *length = 0;
    message[0] = 0;
    if (picture->stride > UINT32_MAX) return CCODEC_LIMIT;
    lib_image *image = image_of(
        picture, profile, profile_length, exif, exif_length, xmp, xmp_length, options);
    if (image == NULL) return CCODEC_OUT_OF_MEMORY;
    lib_bytes output = {0};
    ccodec_status status = encode(image, picture, options, &output, message);
    lib.ImageDestroy(image);
    if (status == CCODEC_OK && interruption != NULL && cinterruption_look(interruption)) {
        status = CCODEC_INTERRUPTED;
    }
    if (status == CCODEC_OK) {
        // The library releases what it allocates.
        *bytes = malloc(output.size);
        if (*bytes == NULL) status = CCODEC_OUT_OF_MEMORY;
    }
    if (status == CCODEC_OK) {
        memcpy(*bytes, output.data, output.size);
        *length = output.size;
    }
    lib.RWDataFree(&output);
    return status;
}
