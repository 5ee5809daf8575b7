#include "cwebp.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <webp/encode.h>
#include <webp/mux.h>

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

/// The library's settings of options.
///
/// - Returns: false for another version of the library.
static bool configure(const cwebp_options *options, WebPConfig *config) {
    if (!WebPConfigInit(config)) return false;
    config->method = options->method;
    config->lossless = options->is_lossless;
    config->low_memory = options->saves_memory;
    // For lossless output, the effort within a method.
    config->quality = !options->is_lossless ? options->quality : options->method < 3 ? 25 : 75;
    return true;
}

/// Copies pixels into an initialised picture.
///
/// - Returns: false without memory.
static bool import_pixels(
    const ccodec_picture *pixels, bool is_argb, cinterruption *interruption,
    WebPPicture *picture) {
    picture->use_argb = is_argb;
    picture->width = (int)pixels->width;
    picture->height = (int)pixels->height;
    if (interruption != NULL) {
        picture->progress_hook = goes_on;
        picture->user_data = interruption;
    }
    return pixels->channels == 4
        ? WebPPictureImportRGBA(picture, pixels->pixels, (int)pixels->stride)
        : WebPPictureImportRGB(picture, pixels->pixels, (int)pixels->stride);
}

static ccodec_status encode(
    const ccodec_picture *pixels, const WebPConfig *config, WebPPicture *picture, output *output,
    cinterruption *interruption) {
    picture->writer = take;
    picture->custom_ptr = output;
    if (!import_pixels(pixels, config->lossless, interruption, picture)) {
        return CCODEC_OUT_OF_MEMORY;
    }
    return WebPEncode(config, picture) ? CCODEC_OK : status_of(picture, output);
}

ccodec_status cwebp_encode(
    const ccodec_picture *pixels, const cwebp_options *options, size_t maximum,
    cinterruption *interruption, uint8_t **bytes, size_t *length) {
    *bytes = NULL;
    *length = 0;
    if (pixels->width > WEBP_MAX_DIMENSION || pixels->height > WEBP_MAX_DIMENSION
        || pixels->stride > INT_MAX) {
        return CCODEC_FAILED;
    }
    WebPConfig config;
    if (!configure(options, &config)) return CCODEC_FAILED;
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

// MARK: - Animations

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
        || !WebPAnimEncoderOptionsInit(&settings) || !configure(options, &config)) {
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
    cwebp_animation *animation, const ccodec_picture *pixels, uint32_t start_milliseconds) {
    if (animation->interruption != NULL && cinterruption_look(animation->interruption)) {
        return CCODEC_INTERRUPTED;
    }
    WebPPicture picture;
    if (!WebPPictureInit(&picture)) return CCODEC_FAILED;
    if (!import_pixels(pixels, true, animation->interruption, &picture)) {
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
