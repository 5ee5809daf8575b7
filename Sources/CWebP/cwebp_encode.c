#include "cwebp_encode.h"

#include <limits.h>
#include <stdlib.h>

typedef struct {
    /// First, since `WebPMemoryWrite` takes the same pointer.
    WebPMemoryWriter written;
    size_t maximum;
    bool is_too_large;
    bool is_out_of_memory;
} output;

static int take(const uint8_t *data, size_t size, const WebPPicture *picture) {
    output *output = picture->custom_ptr;
    output->is_too_large |= size > output->maximum - output->written.size;
    if (output->is_too_large) return 0;
    output->is_out_of_memory |= !WebPMemoryWrite(data, size, picture);
    return !output->is_out_of_memory;
}

static int goes_on(int percent, const WebPPicture *picture) {
    (void)percent;
    return !cinterruption_look(picture->user_data);
}

static ccodec_status status_of(const WebPPicture *picture, const output *output) {
    if (output->is_too_large) return CCODEC_LIMIT;
    if (output->is_out_of_memory) return CCODEC_OUT_OF_MEMORY;
    switch (picture->error_code) {
    case VP8_ENC_ERROR_USER_ABORT: return CCODEC_INTERRUPTED;
    case VP8_ENC_ERROR_OUT_OF_MEMORY:
    case VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY: return CCODEC_OUT_OF_MEMORY;
    default: return CCODEC_FAILED;
    }
}

bool cwebp_configure(const cwebp_options *options, WebPConfig *config) {
    if (!WebPConfigInit(config)) return false;
    config->method = options->method;
    config->lossless = options->is_lossless;
    // For lossless output, the effort within a method.
    config->quality = !options->is_lossless ? options->quality : options->method < 3 ? 25 : 75;
    return true;
}

bool cwebp_import(
    const cwebp_picture *pixels, bool is_argb, cinterruption *interruption,
    WebPPicture *picture) {
    picture->use_argb = is_argb;
    picture->width = (int)pixels->width;
    picture->height = (int)pixels->height;
    if (interruption != NULL) {
        picture->progress_hook = goes_on;
        picture->user_data = interruption;
    }
    return pixels->channels == 4
        ? WebPPictureImportRGBA(picture, pixels->first, (int)pixels->stride)
        : WebPPictureImportRGB(picture, pixels->first, (int)pixels->stride);
}

static ccodec_status encode(
    const cwebp_picture *pixels, const WebPConfig *config, WebPPicture *picture, output *output,
    cinterruption *interruption) {
    picture->writer = take;
    picture->custom_ptr = output;
    if (!cwebp_import(pixels, config->lossless, interruption, picture)) return CCODEC_OUT_OF_MEMORY;
    return WebPEncode(config, picture) ? CCODEC_OK : status_of(picture, output);
}

ccodec_status cwebp_encode(
    const cwebp_picture *pixels, const cwebp_options *options, size_t maximum,
    cinterruption *interruption, uint8_t **bytes, size_t *length) {
    *bytes = NULL;
    *length = 0;
    if (pixels->width > WEBP_MAX_DIMENSION || pixels->height > WEBP_MAX_DIMENSION
        || pixels->stride > INT_MAX) {
        return CCODEC_FAILED;
    }
    WebPConfig config;
    if (!cwebp_configure(options, &config)) return CCODEC_FAILED;
    ccodec_status status = CCODEC_FAILED;
    // The modes of all blocks are limited to 512 KB; with less choice of modes they fit.
    for (int attempt = 0; attempt < 2; attempt++) {
        config.partition_limit = attempt == 0 ? 0 : 100;
        WebPPicture picture;
        if (!WebPPictureInit(&picture)) return CCODEC_FAILED;
        output output = {.maximum = maximum < SIZE_MAX / 4 ? maximum : SIZE_MAX / 4};
        status = encode(pixels, &config, &picture, &output, interruption);
        WebPEncodingError error = picture.error_code;
        WebPPictureFree(&picture);
        if (status == CCODEC_OK) {
            // The library allocates by `malloc`.
            *bytes = output.written.mem;
            *length = output.written.size;
            return CCODEC_OK;
        }
        free(output.written.mem);
        if (error != VP8_ENC_ERROR_PARTITION0_OVERFLOW) break;
    }
    return status;
}
