// Decoding, compiled for each binary interface of libavif (cavif_shim.h).
#pragma once

static const char *words_for_decoding(lib_result result) {
    switch (result) {
    case LIB_OK: return "";
    case LIB_INVALID_FTYP: return "a damaged box ftyp";
    case LIB_NO_CONTENT:
    case LIB_NO_AV1_ITEMS_FOUND: return "no picture of AV1";
    case LIB_UNSUPPORTED_DEPTH: return "an unknown bit depth";
    case LIB_BMFF_PARSE_FAILED: return "damaged or contradictory boxes";
    case LIB_INVALID_IMAGE_GRID: return "a damaged grid of tiles";
    case LIB_DECODE_COLOR_FAILED: return "damaged colours";
    case LIB_DECODE_ALPHA_FAILED: return "damaged alpha";
    case LIB_COLOR_ALPHA_SIZE_MISMATCH: return "alpha of another size than the colours";
    case LIB_ISPE_SIZE_MISMATCH: return "a size that its data contradicts";
    case LIB_REFORMAT_FAILED: return "pixels of an unknown layout";
    case LIB_NOT_IMPLEMENTED: return "an unknown feature";
    case LIB_NO_CODEC_AVAILABLE: return "no decoder for AV1";
    default: return "damaged data";
    }
}

static ccodec_status decoding_status(lib_result result, const lib_decoder *decoder, char *message) {
    snprintf(message, CCODEC_MESSAGE_BYTES, "%s", words_for_decoding(result));
    switch (result) {
    case LIB_OK: return CCODEC_OK;
    case LIB_TRUNCATED_DATA:
    case LIB_IO_ERROR:
    case LIB_WAITING_ON_IO: return CCODEC_TRUNCATED;
    case LIB_UNSUPPORTED_DEPTH:
    case LIB_NO_CODEC_AVAILABLE:
    case LIB_NOT_IMPLEMENTED: return CCODEC_UNSUPPORTED;
    case LIB_OUT_OF_MEMORY: return CCODEC_OUT_OF_MEMORY;
    default: break;
    }
    // The library has no codes for these. An item beyond the end of the file has two texts,
    // "possibly truncated data" and "Truncated data?".
    const char *text = lib.ResultToString(result);
    if (decoder != NULL && decoder->diag.error[0] != 0) text = decoder->diag.error;
    bool is_cut = strcasestr(text, "truncated data") != NULL;
    // "Child box too large, possibly truncated data" is no limit.
    if (!is_cut && strstr(text, "too large") != NULL) {
        snprintf(
            message, CCODEC_MESSAGE_BYTES, "one of its pictures has more than %u pixels",
            (unsigned)LIB_MOST_PIXELS);
        return CCODEC_LIMIT;
    }
    return is_cut ? CCODEC_TRUNCATED : CCODEC_CORRUPT;
}

static void configure(lib_decoder *decoder) {
    decoder->codecChoice = LIB_CHOICE_DAV1D;
    decoder->maxThreads = 1;
    // It would apply to layers, gain maps and thumbnails too, which are not decoded.
    decoder->imageDimensionLimit = 0;
    // Files by libheif up to 1.11 lack `pixi`, and some have an invalid clean aperture; browsers
    // accept both.
    decoder->strictFlags &= ~(uint32_t)(LIB_STRICT_PIXI_REQUIRED | LIB_STRICT_CLAP_VALID);
}

static ccodec_status parse(
    lib_decoder *decoder, const uint8_t *bytes, size_t length, char *message) {
    lib_result status = lib.DecoderSetIOMemory(decoder, bytes, length);
    if (status == LIB_OK) status = lib.DecoderParse(decoder);
    return decoding_status(status, decoder, message);
}

/// - `opened`: for the caller to destroy, also after a failure; NULL without library or memory.
static ccodec_status open_source(
    const uint8_t *bytes, size_t length, uint64_t maximum_pixels, uint32_t maximum_frames,
    lib_decoder **opened, char *message) {
    *opened = NULL;
    lib_decoder *decoder = *opened = lib.DecoderCreate();
    if (decoder == NULL) return CCODEC_OUT_OF_MEMORY;
    configure(decoder);
    decoder->ignoreExif = 1;
    decoder->ignoreXMP = 1;
    decoder->imageCountLimit = maximum_frames;
    ccodec_status status = parse(decoder, bytes, length, message);
    // From here on it applies to decoded pictures only.
    if (maximum_pixels < LIB_MOST_PIXELS) {
        decoder->imageSizeLimit = (uint32_t)maximum_pixels;
    }
    return status;
}

/// First the angle, anticlockwise, then the mirror.
static int orientation_of(const lib_image *image) {
    static const int turned[] = {1, 8, 3, 6};
    // Top and bottom exchanged, left and right exchanged.
    static const int mirrored[][2] = {{4, 2}, {5, 7}, {2, 4}, {7, 5}};
    int angle = image->transformFlags & LIB_TRANSFORM_IROT ? image->angle & 3 : 0;
    if ((image->transformFlags & LIB_TRANSFORM_IMIR) == 0) return turned[angle];
    return mirrored[angle][image->mirror & 1];
}

/// One side of a clean aperture (ISO/IEC 14496-12, 12.1.4), given by its length and by its offset
/// from the picture's centre.
///
/// As the library does from 1.2 on, and so browsers: an odd offset into halved chroma is invalid.
/// Before, an odd length was too.
static bool aperture_side(
    uint32_t side, const uint32_t length[2], const uint32_t offset[2], bool is_halved,
    uint32_t *start, uint32_t *count) {
    int64_t whole = (int32_t)length[0], part = (int32_t)length[1];
    int64_t off = (int32_t)offset[0], unit = (int32_t)offset[1];
    if (part <= 0 || unit <= 0 || whole <= 0 || whole % part != 0) return false;
    int64_t doubled = (side - whole / part) * unit + 2 * off;
    if (doubled < 0 || doubled % (2 * unit) != 0) return false;
    int64_t first = doubled / (2 * unit);
    if (first + whole / part > side || (is_halved && first % 2 != 0)) return false;
    *start = (uint32_t)first;
    *count = (uint32_t)(whole / part);
    return true;
}

static bool clean_aperture(const lib_image *image, lib_rectangle *rectangle) {
    bool is_narrowed = image->yuvFormat == LIB_YUV420 || image->yuvFormat == LIB_YUV422;
    bool is_lowered = image->yuvFormat == LIB_YUV420;
    const lib_aperture *clap = &image->clap;
    return (image->transformFlags & LIB_TRANSFORM_CLAP) != 0
        && aperture_side(
            image->width, clap->width, clap->x, is_narrowed, &rectangle->x, &rectangle->width)
        && aperture_side(
            image->height, clap->height, clap->y, is_lowered, &rectangle->y, &rectangle->height);
}

/// The decoder finds this too, but only when it reads the frame.
static bool is_cut(const lib_decoder *decoder, uint32_t frame, size_t length) {
    lib_extent extent;
    return lib.DecoderNthImageMaxExtent(decoder, frame, &extent) == LIB_OK
        && extent.size > 0
        && (extent.offset > length || extent.size > length - extent.offset);
}

static void note_header(const lib_decoder *decoder, cavif_header *header) {
    const lib_image *image = decoder->image;
    lib_rectangle rectangle = {0, 0, image->width, image->height};
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
    header->is_grey = image->yuvFormat == LIB_YUV400;
    static const uint32_t samples[] = {
        [0] = 6, [LIB_YUV444] = 6, [LIB_YUV422] = 4, [LIB_YUV420] = 3, [LIB_YUV400] = 2,
    };
    unsigned format = (unsigned)image->yuvFormat;
    size_t kinds = sizeof samples / sizeof *samples;
    header->samples_of_two_pixels = (format < kinds ? samples[format] : 6)
        + (decoder->alphaPresent ? 2 : 0);
    header->frames = decoder->imageCount > 0 ? (uint32_t)decoder->imageCount : 1;
    header->orientation = orientation_of(image);
    header->primaries = image->colorPrimaries;
    header->transfer = image->transferCharacteristics;
}

static ccodec_status shim_read_header(
    const uint8_t *bytes, size_t length, uint32_t maximum_frames, cavif_header *header,
    char message[CCODEC_MESSAGE_BYTES]) {
    memset(header, 0, sizeof *header);
    lib_decoder *decoder;
    ccodec_status status =
        open_source(bytes, length, UINT64_MAX, maximum_frames, &decoder, message);
    if (status == CCODEC_OK) {
        note_header(decoder, header);
        header->is_cut = is_cut(decoder, 0, length) || is_cut(decoder, header->frames - 1, length);
    }
    if (decoder != NULL) lib.DecoderDestroy(decoder);
    if (status == CCODEC_OK && (header->width == 0 || header->height == 0)) return CCODEC_CORRUPT;
    return status;
}

/// The library writes 16-bit samples to even addresses: at the end of the memory, from which the
/// rows then move to their places.
static ccodec_status convert(
    const lib_image *image, const cavif_header *header, uint8_t **rows, char *message) {
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
    lib_pixels target;
    lib.RGBImageSetDefaults(&target, image);
    target.depth = sample_bytes == 2 ? 16 : 8;
    target.format = header->has_alpha ? LIB_RGBA : LIB_RGB;
    target.pixels = sample_bytes == 2 ? memory + begin : memory + 1;
    target.rowBytes = (uint32_t)(sample_bytes == 2 ? row_bytes : row_bytes + 1);
    lib_result result = lib.ImageYUVToRGB(image, &target);
    if (result != LIB_OK) {
        free(memory);
        ccodec_status status = decoding_status(result, NULL, message);
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

/// Makes `view` a part of the picture. Before 1.0, the library finds parts of grey at even places
/// only.
static lib_result view_part(
    lib_image *view, const lib_image *image, const lib_rectangle *part) {
    bool is_grey = image->yuvFormat == LIB_YUV400;
    uint32_t right = is_grey ? part->x & 1 : 0, down = is_grey ? part->y & 1 : 0;
    lib_rectangle even = {
        part->x - right, part->y - down, part->width + right, part->height + down,
    };
    lib_result result = lib.ImageSetViewRect(view, image, &even);
    if (result != LIB_OK) return result;
    view->width = part->width;
    view->height = part->height;
    size_t over = (size_t)right * (image->depth > 8 ? 2 : 1);
    view->yuvPlanes[0] += (size_t)down * view->yuvRowBytes[0] + over;
    if (view->alphaPlane != NULL) {
        view->alphaPlane += (size_t)down * view->alphaRowBytes + over;
    }
    return LIB_OK;
}

static ccodec_status keep_frame(
    const lib_image *image, const cavif_header *header, uint8_t **rows, char *message) {
    lib_rectangle rectangle;
    if (!clean_aperture(image, &rectangle)) return convert(image, header, rows, message);
    lib_image *view = lib.ImageCreateEmpty();
    if (view == NULL) return CCODEC_OUT_OF_MEMORY;
    lib_result result = view_part(view, image, &rectangle);
    ccodec_status status = result == LIB_OK
        ? convert(view, header, rows, message) : decoding_status(result, NULL, message);
    lib.ImageDestroy(view);
    return status;
}

struct cavif_reader {
    lib_decoder *decoder;
    cavif_limits limits;
    cavif_header header;
};

static void shim_close(cavif_reader *reader) {
    if (reader == NULL) return;
    if (reader->decoder != NULL) lib.DecoderDestroy(reader->decoder);
    free(reader);
}

static ccodec_status shim_open(
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
        shim_close(made);
    }
    return status;
}

static ccodec_status shim_next(
    cavif_reader *reader, bool wants_rows, cavif_frame *frame,
    char message[CCODEC_MESSAGE_BYTES]) {
    *frame = (cavif_frame){0};
    lib_decoder *decoder = reader->decoder;
    const cavif_header *header = &reader->header;
    cinterruption *interruption = reader->limits.interruption;
    if (interruption != NULL && cinterruption_look(interruption)) return CCODEC_INTERRUPTED;
    if (decoder->imageIndex + 1 >= decoder->imageCount) return CCODEC_OK;
    ccodec_status status = decoding_status(lib.DecoderNextImage(decoder), decoder, message);
    if (status != CCODEC_OK) return status;
    const lib_image *image = decoder->image;
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

static uint8_t *shim_copy_profile(const uint8_t *bytes, size_t length, size_t *count) {
    uint8_t *copy = NULL;
    *count = 0;
    lib_decoder *decoder;
    char message[CCODEC_MESSAGE_BYTES];
    if (open_source(bytes, length, UINT64_MAX, 0, &decoder, message) == CCODEC_OK) {
        const lib_bytes *data = &decoder->image->icc;
        if (data->size > 0) copy = malloc(data->size);
        if (copy != NULL) {
            memcpy(copy, data->data, data->size);
            *count = data->size;
        }
    }
    if (decoder != NULL) lib.DecoderDestroy(decoder);
    return copy;
}
