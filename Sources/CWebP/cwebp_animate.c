#include "cwebp_encode.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <webp/mux.h>

struct cwebp_animation {
    WebPAnimEncoder *encoder;
    WebPConfig config;
    bool has_alpha;
    cinterruption *interruption;
};

/// The flags follow the headers of the file and of the chunk `VP8X`.
enum { FLAGS_OFFSET = 20 };

ccodec_status cwebp_animation_begin(
    uint32_t width, uint32_t height, uint32_t plays, const cwebp_options *options,
    cinterruption *interruption, cwebp_animation **animation) {
    *animation = NULL;
    WebPAnimEncoderOptions settings;
    WebPConfig config;
    if (width > WEBP_MAX_DIMENSION || height > WEBP_MAX_DIMENSION
        || !WebPAnimEncoderOptionsInit(&settings)
        || !cwebp_configure(options, &config)) {
        return CCODEC_FAILED;
    }
    settings.anim_params.loop_count = plays > UINT16_MAX ? 0 : (int)plays;
    // Pixels that a frame clears become transparent.
    settings.anim_params.bgcolor = 0;
    // Whole frames in between would be encoded twice, and only help to seek.
    settings.kmax = 0;
    cwebp_animation *made = calloc(1, sizeof *made);
    if (made == NULL) return CCODEC_OUT_OF_MEMORY;
    made->config = config;
    made->interruption = interruption;
    made->encoder = WebPAnimEncoderNew((int)width, (int)height, &settings);
    if (made->encoder == NULL) {
        free(made);
        return CCODEC_OUT_OF_MEMORY;
    }
    *animation = made;
    return CCODEC_OK;
}

/// The status of a call of the encoder that failed; its errors are texts alone.
static ccodec_status failure(const cwebp_animation *animation, const WebPPicture *picture) {
    if (animation->interruption != NULL && cinterruption_look(animation->interruption)) {
        return CCODEC_INTERRUPTED;
    }
    return picture == NULL || picture->error_code == VP8_ENC_ERROR_OUT_OF_MEMORY
            || picture->error_code == VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY
            || picture->error_code == VP8_ENC_OK
        ? CCODEC_OUT_OF_MEMORY : CCODEC_FAILED;
}

ccodec_status cwebp_animation_add(
    cwebp_animation *animation, const cwebp_picture *pixels, uint32_t start_milliseconds) {
    if (animation->interruption != NULL && cinterruption_look(animation->interruption)) {
        return CCODEC_INTERRUPTED;
    }
    WebPPicture picture;
    if (!WebPPictureInit(&picture)) return CCODEC_FAILED;
    if (!cwebp_import(pixels, true, animation->interruption, &picture)) {
        WebPPictureFree(&picture);
        return CCODEC_OUT_OF_MEMORY;
    }
    if (pixels->channels == 4) animation->has_alpha = true;
    int is_added = WebPAnimEncoderAdd(
        animation->encoder, &picture, (int)start_milliseconds, &animation->config);
    ccodec_status status = is_added ? CCODEC_OK : failure(animation, &picture);
    WebPPictureFree(&picture);
    return status;
}

ccodec_status cwebp_animation_end(
    cwebp_animation *animation, uint32_t end_milliseconds, size_t maximum, uint8_t **bytes,
    size_t *length) {
    *bytes = NULL;
    *length = 0;
    WebPData data;
    WebPDataInit(&data);
    if (!WebPAnimEncoderAdd(animation->encoder, NULL, (int)end_milliseconds, NULL)
        || !WebPAnimEncoderAssemble(animation->encoder, &data)) {
        return failure(animation, NULL);
    }
    if (data.size > maximum) {
        WebPDataClear(&data);
        return CCODEC_LIMIT;
    }
    // Allocated by `malloc`.
    uint8_t *file = (uint8_t *)data.bytes;
    // The library ignores pixels that are transparent between opaque frames, which readers without
    // alpha then show black.
    if (animation->has_alpha && data.size > FLAGS_OFFSET && memcmp(file + 12, "VP8X", 4) == 0) {
        file[FLAGS_OFFSET] |= ALPHA_FLAG;
    }
    *bytes = file;
    *length = data.size;
    return CCODEC_OK;
}

void cwebp_animation_free(cwebp_animation *animation) {
    WebPAnimEncoderDelete(animation->encoder);
    free(animation);
}
