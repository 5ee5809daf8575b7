#include "cwebp.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <webp/decode.h>

static ccodec_status status_of(VP8StatusCode code) {
    switch (code) {
    case VP8_STATUS_OK: return CCODEC_OK;
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED: return CCODEC_TRUNCATED;
    case VP8_STATUS_OUT_OF_MEMORY: return CCODEC_OUT_OF_MEMORY;
    default: return CCODEC_CORRUPT;
    }
}

ccodec_status cwebp_read_header(const uint8_t *bytes, size_t length, cwebp_features *features) {
    WebPBitstreamFeatures found;
    memset(features, 0, sizeof *features);
    ccodec_status status = status_of(WebPGetFeatures(bytes, length, &found));
    if (status != CCODEC_OK) return status;
    if (found.width <= 0 || found.height <= 0) return CCODEC_CORRUPT;
    features->width = (uint32_t)found.width;
    features->height = (uint32_t)found.height;
    features->has_alpha = found.has_alpha != 0;
    features->is_animated = found.has_animation != 0;
    features->is_lossy = found.format == 1;
    return CCODEC_OK;
}

static ccodec_status run(
    const uint8_t *bytes, size_t length, uint64_t pixels, WebPDecoderConfig *config,
    cinterruption *interruption) {
    WebPIDecoder *decoder = WebPIDecode(NULL, 0, config);
    if (decoder == NULL) return CCODEC_OUT_OF_MEMORY;
    size_t slice = length / (size_t)((pixels >> 20) + 1);
    if (slice < 16) slice = 16;
    ccodec_status status = CCODEC_TRUNCATED;
    for (size_t known = 0; status == CCODEC_TRUNCATED && known < length;) {
        if (interruption != NULL && cinterruption_look(interruption)) {
            status = CCODEC_INTERRUPTED;
            break;
        }
        known = length - known > slice ? known + slice : length;
        status = status_of(WebPIUpdate(decoder, bytes, known));
    }
    WebPIDelete(decoder);
    if (status == CCODEC_OK && interruption != NULL && cinterruption_look(interruption)) {
        return CCODEC_INTERRUPTED;
    }
    return status;
}

ccodec_status cwebp_decode(
    const uint8_t *bytes, size_t length, uint32_t width, uint32_t height, const cwebp_rows *rows,
    cinterruption *interruption) {
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config)) return CCODEC_CORRUPT;
    VP8StatusCode code = WebPGetFeatures(bytes, length, &config.input);
    if (code != VP8_STATUS_OK) return status_of(code);
    if ((uint32_t)config.input.width != width || (uint32_t)config.input.height != height
        || config.input.has_animation) {
        return CCODEC_CORRUPT;
    }
    config.options.use_threads = 0;
    if (rows != NULL) {
        config.output.colorspace = rows->channels == 4 ? MODE_RGBA : MODE_RGB;
        config.output.is_external_memory = 1;
        config.output.u.RGBA.rgba = rows->first;
        if (rows->stride > INT_MAX) return CCODEC_OUT_OF_MEMORY;
        config.output.u.RGBA.stride = (int)rows->stride;
        config.output.u.RGBA.size =
            rows->stride * (height - 1) + (size_t)rows->channels * width;
    } else {
        config.output.colorspace = config.input.has_alpha ? MODE_RGBA : MODE_RGB;
        config.options.use_scaling = 1;
        config.options.scaled_width = (int)((width + 7) / 8);
        config.options.scaled_height = (int)((height + 7) / 8);
    }
    ccodec_status status =
        run(bytes, length, (uint64_t)width * height, &config, interruption);
    WebPFreeDecBuffer(&config.output);
    return status;
}

void cwebp_library_version(char text[16]) {
    int version = WebPGetDecoderVersion();
    snprintf(text, 16, "%d.%d.%d", version >> 16 & 255, version >> 8 & 255, version & 255);
}
