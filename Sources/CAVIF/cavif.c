#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cavif_library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *words_for(avifResult result) {
    switch (result) {
    case AVIF_RESULT_OK: return "";
    case AVIF_RESULT_INVALID_FTYP: return "a damaged box ftyp";
    case AVIF_RESULT_NO_CONTENT:
    case AVIF_RESULT_NO_AV1_ITEMS_FOUND: return "no picture of AV1";
    case AVIF_RESULT_UNSUPPORTED_DEPTH: return "an unknown bit depth";
    case AVIF_RESULT_BMFF_PARSE_FAILED: return "damaged or contradictory boxes";
    case AVIF_RESULT_INVALID_IMAGE_GRID: return "a damaged grid of tiles";
    case AVIF_RESULT_DECODE_COLOR_FAILED: return "damaged colours";
    case AVIF_RESULT_DECODE_ALPHA_FAILED: return "damaged alpha";
    case AVIF_RESULT_COLOR_ALPHA_SIZE_MISMATCH: return "alpha of another size than the colours";
    case AVIF_RESULT_ISPE_SIZE_MISMATCH: return "a size that its data contradicts";
    case AVIF_RESULT_REFORMAT_FAILED: return "pixels of an unknown layout";
    case AVIF_RESULT_NOT_IMPLEMENTED: return "an unknown feature";
    case AVIF_RESULT_NO_CODEC_AVAILABLE: return "no decoder for AV1";
    default: return "damaged data";
    }
}

static ccodec_status status_of(avifResult result, const avifDecoder *decoder, char *message) {
    snprintf(message, CCODEC_MESSAGE_BYTES, "%s", words_for(result));
    switch (result) {
    case AVIF_RESULT_OK: return CCODEC_OK;
    case AVIF_RESULT_TRUNCATED_DATA:
    case AVIF_RESULT_IO_ERROR:
    case AVIF_RESULT_WAITING_ON_IO: return CCODEC_TRUNCATED;
    case AVIF_RESULT_UNSUPPORTED_DEPTH:
    case AVIF_RESULT_NO_CODEC_AVAILABLE:
    case AVIF_RESULT_NOT_IMPLEMENTED: return CCODEC_UNSUPPORTED;
    case AVIF_RESULT_OUT_OF_MEMORY: return CCODEC_OUT_OF_MEMORY;
    default: break;
    }
    // The library has no codes for these. An item beyond the end of the file has two texts,
    // "possibly truncated data" and "Truncated data?".
    const char *text = cavif_functions.ResultToString(result);
    if (decoder != NULL && decoder->diag.error[0] != 0) text = decoder->diag.error;
    bool is_cut = strcasestr(text, "truncated data") != NULL;
    // "Child box too large, possibly truncated data" is no limit.
    if (!is_cut && strstr(text, "too large") != NULL) {
        snprintf(
            message, CCODEC_MESSAGE_BYTES, "one of its pictures has more than %u pixels",
            (unsigned)AVIF_DEFAULT_IMAGE_SIZE_LIMIT);
        return CCODEC_LIMIT;
    }
    return is_cut ? CCODEC_TRUNCATED : CCODEC_CORRUPT;
}

static void configure(avifDecoder *decoder) {
    decoder->codecChoice = AVIF_CODEC_CHOICE_DAV1D;
    decoder->maxThreads = 1;
    // It would apply to layers, gain maps and thumbnails too, which are not decoded.
    decoder->imageDimensionLimit = 0;
    // Files by libheif up to 1.11 lack `pixi`, and some have an invalid clean aperture; browsers
    // accept both.
    decoder->strictFlags &= ~(avifStrictFlags)(AVIF_STRICT_PIXI_REQUIRED | AVIF_STRICT_CLAP_VALID);
}

static ccodec_status parse(
    avifDecoder *decoder, const uint8_t *bytes, size_t length, char *message) {
    avifResult status = cavif_functions.DecoderSetIOMemory(decoder, bytes, length);
    if (status == AVIF_RESULT_OK) status = cavif_functions.DecoderParse(decoder);
    return status_of(status, decoder, message);
}

/// - `opened`: for the caller to destroy, also after a failure; NULL without library or memory.
static ccodec_status open_source(
    const uint8_t *bytes, size_t length, uint64_t maximum_pixels, uint32_t maximum_frames,
    avifDecoder **opened, char *message) {
    *opened = NULL;
    ccodec_status missing = cavif_require(message);
    if (missing != CCODEC_OK) return missing;
    avifDecoder *decoder = *opened = cavif_functions.DecoderCreate();
    if (decoder == NULL) return CCODEC_OUT_OF_MEMORY;
    configure(decoder);
    decoder->ignoreExif = AVIF_TRUE;
    decoder->ignoreXMP = AVIF_TRUE;
    decoder->imageCountLimit = maximum_frames;
    ccodec_status status = parse(decoder, bytes, length, message);
    // From here on it applies to decoded pictures only.
    if (maximum_pixels < AVIF_DEFAULT_IMAGE_SIZE_LIMIT) {
        decoder->imageSizeLimit = (uint32_t)maximum_pixels;
    }
    return status;
}

/// First the angle, anticlockwise, then the mirror.
static int orientation_of(const avifImage *image) {
    static const int turned[] = {1, 8, 3, 6};
    // Top and bottom exchanged, left and right exchanged.
    static const int mirrored[][2] = {{4, 2}, {5, 7}, {2, 4}, {7, 5}};
    int angle = image->transformFlags & AVIF_TRANSFORM_IROT ? image->irot.angle & 3 : 0;
    if ((image->transformFlags & AVIF_TRANSFORM_IMIR) == 0) return turned[angle];
    return mirrored[angle][image->imir.mode & 1];
}

static bool clean_aperture(const avifImage *image, avifCropRect *rectangle) {
    avifDiagnostics ignored;
    cavif_functions.DiagnosticsClearError(&ignored);
    return (image->transformFlags & AVIF_TRANSFORM_CLAP) != 0
        && cavif_functions.CropRectConvertCleanApertureBox(
            rectangle, &image->clap, image->width, image->height, image->yuvFormat, &ignored);
}

/// The decoder finds this too, but only when it reads the frame.
static bool is_cut(const avifDecoder *decoder, uint32_t frame, size_t length) {
    avifExtent extent;
    return cavif_functions.DecoderNthImageMaxExtent(decoder, frame, &extent) == AVIF_RESULT_OK
        && extent.size > 0
        && (extent.offset > length || extent.size > length - extent.offset);
}

static void note_header(const avifDecoder *decoder, cavif_header *header) {
    const avifImage *image = decoder->image;
    avifCropRect rectangle = {0, 0, image->width, image->height};
    if (!clean_aperture(image, &rectangle)) {
        rectangle.width = image->width;
        rectangle.height = image->height;
    }
    header->width = rectangle.width;
    header->height = rectangle.height;
    header->coded_width = image->width;
    header->coded_height = image->height;
    header->depth = (int)image->depth;
    header->has_alpha = decoder->alphaPresent;
    header->is_grey = image->yuvFormat == AVIF_PIXEL_FORMAT_YUV400;
    static const uint32_t samples[] = {
        [AVIF_PIXEL_FORMAT_NONE] = 6, [AVIF_PIXEL_FORMAT_YUV444] = 6,
        [AVIF_PIXEL_FORMAT_YUV422] = 4, [AVIF_PIXEL_FORMAT_YUV420] = 3,
        [AVIF_PIXEL_FORMAT_YUV400] = 2,
    };
    unsigned format = (unsigned)image->yuvFormat;
    header->samples_of_two_pixels = (format < sizeof samples / sizeof *samples ? samples[format] : 6)
        + (decoder->alphaPresent ? 2 : 0);
    header->frames = decoder->imageCount > 0 ? (uint32_t)decoder->imageCount : 1;
    header->orientation = orientation_of(image);
    header->primaries = image->colorPrimaries;
    header->transfer = image->transferCharacteristics;
}

ccodec_status cavif_read_header(
    const uint8_t *bytes, size_t length, uint32_t maximum_frames, cavif_header *header,
    char message[CCODEC_MESSAGE_BYTES]) {
    memset(header, 0, sizeof *header);
    avifDecoder *decoder;
    ccodec_status status =
        open_source(bytes, length, UINT64_MAX, maximum_frames, &decoder, message);
    if (status == CCODEC_OK) {
        note_header(decoder, header);
        header->is_cut = is_cut(decoder, 0, length) || is_cut(decoder, header->frames - 1, length);
    }
    if (decoder != NULL) cavif_functions.DecoderDestroy(decoder);
    if (status == CCODEC_OK && (header->width == 0 || header->height == 0)) return CCODEC_CORRUPT;
    return status;
}

/// The library writes 16-bit samples to even addresses: at the end of the memory, from which the
/// rows then move to their places.
static ccodec_status convert(
    const avifImage *image, const cavif_header *header, uint8_t **rows, char *message) {
    // The library applies its own size, which the data may have changed: a clean aperture that fits
    // the container's subsampling may not fit the data's.
    if (image->width != header->width || image->height != header->height) return CCODEC_CORRUPT;
    size_t sample_bytes = header->depth > 8 ? 2 : 1;
    size_t row_bytes = (size_t)header->width * (header->has_alpha ? 4 : 3) * sample_bytes;
    size_t total, height = header->height;
    if (__builtin_mul_overflow(row_bytes + 1, height, &total) || total > SIZE_MAX - 2
        || row_bytes + 1 > UINT32_MAX) {
        return CCODEC_LIMIT;
    }
    uint8_t *memory = malloc(total + 1);
    if (memory == NULL) return CCODEC_OUT_OF_MEMORY;
    size_t begin = (height + 1) / 2 * 2;
    avifRGBImage target;
    cavif_functions.RGBImageSetDefaults(&target, image);
    target.depth = sample_bytes == 2 ? 16 : 8;
    target.format = header->has_alpha ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
    target.pixels = sample_bytes == 2 ? memory + begin : memory + 1;
    target.rowBytes = (uint32_t)(sample_bytes == 2 ? row_bytes : row_bytes + 1);
    avifResult result = cavif_functions.ImageYUVToRGB(image, &target);
    if (result != AVIF_RESULT_OK) {
        free(memory);
        ccodec_status status = status_of(result, NULL, message);
        return status == CCODEC_OUT_OF_MEMORY ? status : CCODEC_UNSUPPORTED;
    }
    for (size_t y = 0; sample_bytes == 2 && y < height; y++) {
        const uint8_t *from = memory + begin + y * row_bytes;
        uint8_t *to = memory + y * (row_bytes + 1) + 1;
        for (size_t index = 0; index < row_bytes; index += 2) {
            uint16_t sample;
            memcpy(&sample, from + index, 2);
            to[index] = (uint8_t)(sample >> 8);
            to[index + 1] = (uint8_t)sample;
        }
    }
    *rows = memory;
    return CCODEC_OK;
}

static ccodec_status keep_frame(
    const avifImage *image, const cavif_header *header, uint8_t **rows, char *message) {
    avifCropRect rectangle;
    if (!clean_aperture(image, &rectangle)) return convert(image, header, rows, message);
    avifImage *view = cavif_functions.ImageCreateEmpty();
    if (view == NULL) return CCODEC_OUT_OF_MEMORY;
    avifResult result = cavif_functions.ImageSetViewRect(view, image, &rectangle);
    ccodec_status status = result == AVIF_RESULT_OK
        ? convert(view, header, rows, message) : status_of(result, NULL, message);
    cavif_functions.ImageDestroy(view);
    return status;
}

struct cavif_reader {
    avifDecoder *_Nullable decoder;
    cavif_limits limits;
    cavif_header header;
};

ccodec_status cavif_open(
    const uint8_t *bytes, size_t length, const cavif_limits *limits, const cavif_header *header,
    char message[CCODEC_MESSAGE_BYTES], cavif_reader **reader) {
    *reader = NULL;
    cavif_reader *made = calloc(1, sizeof *made);
    if (made == NULL) return CCODEC_OUT_OF_MEMORY;
    made->limits = *limits;
    made->header = *header;
    ccodec_status status = open_source(
        bytes, length, limits->maximum_pixels, limits->maximum_frames, &made->decoder, message);
    if (status == CCODEC_OK) {
        cavif_header found;
        note_header(made->decoder, &found);
        if (found.coded_width != header->coded_width
            || found.coded_height != header->coded_height) {
            status = CCODEC_CORRUPT;
        }
    }
    if (status == CCODEC_OK) {
        *reader = made;
    } else {
        cavif_close(made);
    }
    return status;
}

ccodec_status cavif_next(
    cavif_reader *reader, bool wants_rows, cavif_frame *frame,
    char message[CCODEC_MESSAGE_BYTES]) {
    *frame = (cavif_frame){0};
    avifDecoder *decoder = reader->decoder;
    const cavif_header *header = &reader->header;
    cinterruption *interruption = reader->limits.interruption;
    if (interruption != NULL && cinterruption_look(interruption)) return CCODEC_INTERRUPTED;
    if (decoder->imageIndex + 1 >= decoder->imageCount) return CCODEC_OK;
    ccodec_status status = status_of(cavif_functions.DecoderNextImage(decoder), decoder, message);
    if (status != CCODEC_OK) return status;
    const avifImage *image = decoder->image;
    if (image->width != header->coded_width || image->height != header->coded_height
        || (image->depth > 8) != (header->depth > 8)) {
        snprintf(message, CCODEC_MESSAGE_BYTES, "a picture that its container denies");
        return CCODEC_CORRUPT;
    }
    frame->is_present = true;
    frame->duration = decoder->imageTiming.durationInTimescales;
    frame->timescale = decoder->imageTiming.timescale;
    return wants_rows ? keep_frame(image, header, &frame->rows, message) : CCODEC_OK;
}

void cavif_close(cavif_reader *reader) {
    if (reader == NULL) return;
    if (reader->decoder != NULL) cavif_functions.DecoderDestroy(reader->decoder);
    free(reader);
}

uint8_t *cavif_copy_metadata(
    const uint8_t *bytes, size_t length, cavif_metadata kind, size_t *count) {
    uint8_t *copy = NULL;
    *count = 0;
    if (cavif_load() != NULL) return NULL;
    avifDecoder *decoder = cavif_functions.DecoderCreate();
    if (decoder == NULL) return NULL;
    configure(decoder);
    decoder->ignoreExif = kind != CAVIF_EXIF;
    decoder->ignoreXMP = kind != CAVIF_XMP;
    char message[CCODEC_MESSAGE_BYTES];
    if (parse(decoder, bytes, length, message) == CCODEC_OK) {
        const avifRWData *data = kind == CAVIF_ICC ? &decoder->image->icc
            : kind == CAVIF_EXIF ? &decoder->image->exif : &decoder->image->xmp;
        if (data->size > 0) copy = malloc(data->size);
        if (copy != NULL) {
            memcpy(copy, data->data, data->size);
            *count = data->size;
        }
    }
    cavif_functions.DecoderDestroy(decoder);
    return copy;
}

size_t cavif_only_place(
    const uint8_t *bytes, size_t length, const uint8_t *part, size_t part_length) {
    if (part_length == 0) return length;
    const uint8_t *first = memmem(bytes, length, part, part_length);
    if (first == NULL) return length;
    size_t rest = length - (size_t)(first - bytes) - 1;
    if (memmem(first + 1, rest, part, part_length) != NULL) return length;
    return (size_t)(first - bytes);
}

void cavif_library_versions(char text[64]) {
    text[0] = 0;
    if (cavif_load() != NULL) return;
    char codecs[256] = "";
    cavif_functions.CodecVersions(codecs);
    // For example `dav1d [dec]:1.0.0-0-g…, aom […`.
    const char *name = strstr(codecs, "dav1d");
    const char *colon = name == NULL ? NULL : strchr(name, ':');
    int count = colon == NULL ? 0 : (int)strcspn(colon + 1, ",-");
    snprintf(text, 64, "%s %.*s", cavif_functions.Version(), count, colon == NULL ? "" : colon + 1);
}
