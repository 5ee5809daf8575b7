#include "cjxl.h"

#include "cjxl_declarations.h"
#include "cloader.h"

#include <stdio.h>
#include <string.h>

/// Written by `load` only, which runs before anything is decoded.
static struct {
#define MEMBER(name, result, parameters) result(*name) parameters;
    LIB_FUNCTIONS(MEMBER)
#undef MEMBER
} lib;

/// Before 0.9, functions of profiles have an unused parameter.
static bool is_old(void) { return lib.Version() < 9000; }

#define NAME(name, result, parameters) #name,
static const char *const names[] = {LIB_FUNCTIONS(NAME) NULL};
static char failure[CLOADER_MESSAGE_BYTES];

/// Later interfaces are unknown.
static const char *const files[] = {
    "libjxl.so.0.11", "libjxl.so.0.10", "libjxl.so.0.9", "libjxl.so.0.8", "libjxl.so.0.7", NULL};

static void load_once(void) {
    cloader_open_first(files, (cloader_library){"", "JxlDecoder", names, NULL}, &lib, failure);
}

static const char *load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_once);
    return failure[0] ? failure : NULL;
}

static void library_version(char text[32]) {
    uint32_t version = lib.Version();
    snprintf(
        text, 32, "%u.%u.%u", version / 1000000, version / 1000 % 1000, version % 1000);
}

// MARK: - Colours

static int profile_size(lib_decoder *decoder, size_t *size) {
    if (is_old()) {
        return ((int (*)(const lib_decoder *, const void *, int, size_t *))lib.GetICCProfileSize)(
            decoder, NULL, LIB_TARGET_DATA, size);
    }
    return ((int (*)(const lib_decoder *, int, size_t *))lib.GetICCProfileSize)(
        decoder, LIB_TARGET_DATA, size);
}

static int profile_bytes(lib_decoder *decoder, uint8_t *bytes, size_t size) {
    if (is_old()) {
        return ((int (*)(const lib_decoder *, const void *, int, uint8_t *, size_t))
                    lib.GetColorAsICCProfile)(decoder, NULL, LIB_TARGET_DATA, bytes, size);
    }
    return ((int (*)(const lib_decoder *, int, uint8_t *, size_t))lib.GetColorAsICCProfile)(
        decoder, LIB_TARGET_DATA, bytes, size);
}

static int encoding(lib_decoder *decoder, lib_encoding *colours) {
    if (is_old()) {
        return ((int (*)(const lib_decoder *, const void *, int, lib_encoding *))
                    lib.GetColorAsEncodedProfile)(decoder, NULL, LIB_TARGET_DATA, colours);
    }
    return ((int (*)(const lib_decoder *, int, lib_encoding *))lib.GetColorAsEncodedProfile)(
        decoder, LIB_TARGET_DATA, colours);
}

/// Tells light of a high dynamic range by code points. A profile describes all others.
static void read_code_points(lib_decoder *decoder, ccodec_header *header) {
    lib_encoding colours;
    header->primaries = header->transfer = 2;
    memset(&colours, 0, sizeof colours);
    if (encoding(decoder, &colours) != LIB_SUCCESS) return;
    int transfer = colours.transfer_function;
    if (transfer != LIB_TRANSFER_PQ && transfer != LIB_TRANSFER_HLG) return;
    header->transfer = transfer;
    // Others have no number.
    header->primaries = 0;
    if (colours.color_space == LIB_SPACE_GREY) {
        header->primaries = 1;
        return;
    }
    bool is_daylight = colours.white_point == LIB_WHITE_D65;
    switch (colours.primaries) {
    case LIB_PRIMARIES_SRGB:
    case LIB_PRIMARIES_2100:
        if (is_daylight) header->primaries = colours.primaries;
        break;
    case LIB_PRIMARIES_P3:
        if (is_daylight) header->primaries = 12;
        else if (colours.white_point == LIB_WHITE_DCI) header->primaries = 11;
        break;
    }
}

// MARK: - The header

enum { MOST_FRAMES = 50000 };

static lib_decoder *start(const uint8_t *bytes, size_t length, int events) {
    lib_decoder *decoder = lib.Create(NULL);
    if (decoder == NULL) return NULL;
    if (lib.SubscribeEvents(decoder, events) == LIB_SUCCESS
        && lib.SetKeepOrientation(decoder, 1) == LIB_SUCCESS
        // The input is not closed: a cut file would then be a damaged one.
        && lib.SetInput(decoder, bytes, length) == LIB_SUCCESS) {
        return decoder;
    }
    lib.Destroy(decoder);
    return NULL;
}

static ccodec_status fail(int event, char *message) {
    bool is_cut = event == LIB_NEED_MORE_INPUT;
    snprintf(
        message, CCODEC_MESSAGE_BYTES, "%s",
        is_cut ? "the data ends before the image does" : "damaged data");
    return is_cut ? CCODEC_TRUNCATED : CCODEC_CORRUPT;
}

static ccodec_status describe(lib_decoder *decoder, ccodec_header *header, char *message) {
    lib_info info;
    if (lib.GetBasicInfo(decoder, &info) != LIB_SUCCESS) return fail(1, message);
    for (uint32_t index = 0; index < info.num_extra_channels; index++) {
        lib_channel channel;
        if (lib.GetExtraChannelInfo(decoder, index, &channel) != LIB_SUCCESS) break;
        if (channel.type == LIB_CHANNEL_BLACK) {
            snprintf(message, CCODEC_MESSAGE_BYTES, "inks");
            return CCODEC_UNSUPPORTED;
        }
    }
    if (info.xsize == 0 || info.ysize == 0 || info.xsize > INT32_MAX || info.ysize > INT32_MAX) {
        return fail(1, message);
    }
    header->width = info.xsize;
    header->height = info.ysize;
    header->depth = info.bits_per_sample > 8 ? 16 : 8;
    header->channels = (info.num_color_channels == 1 ? 1 : 3) + (info.alpha_bits > 0 ? 1 : 0);
    header->orientation = info.orientation >= 1 && info.orientation <= 8 ? info.orientation : 1;
    header->pictures = 1;
    // The library describes all colours by one.
    header->has_profile = true;
    // Pictures took 13 to 23 bytes a pixel, with alpha 25 to 50; frames keep others.
    uint64_t bytes = 24 + 20 * (uint64_t)info.num_extra_channels;
    header->library_bytes = (16u << 20)
        + (uint64_t)info.xsize * info.ysize * (info.have_animation ? 2 * bytes : bytes);
    return CCODEC_OK;
}

static ccodec_status count_frames(
    const uint8_t *bytes, size_t length, ccodec_header *header, char *message) {
    lib_decoder *decoder = start(bytes, length, LIB_FRAME);
    if (decoder == NULL) return CCODEC_OUT_OF_MEMORY;
    uint32_t frames = 0;
    int event;
    while ((event = lib.ProcessInput(decoder)) == LIB_FRAME && frames <= MOST_FRAMES) frames++;
    lib.Destroy(decoder);
    if (frames > MOST_FRAMES) {
        snprintf(message, CCODEC_MESSAGE_BYTES, "more than %d frames", MOST_FRAMES);
        return CCODEC_LIMIT;
    }
    if (event != LIB_SUCCESS) return fail(event, message);
    header->pictures = frames > 0 ? frames : 1;
    return CCODEC_OK;
}

static ccodec_status read_header(
    const uint8_t *bytes, size_t length, ccodec_header *header, char *message) {
    memset(header, 0, sizeof *header);
    lib_decoder *decoder = start(bytes, length, LIB_BASIC_INFO | LIB_COLOR_ENCODING);
    if (decoder == NULL) return CCODEC_OUT_OF_MEMORY;
    int event = lib.ProcessInput(decoder);
    bool is_animated = false;
    ccodec_status status =
        event == LIB_BASIC_INFO ? describe(decoder, header, message) : fail(event, message);
    if (status == CCODEC_OK) {
        lib_info info;
        is_animated = lib.GetBasicInfo(decoder, &info) == LIB_SUCCESS && info.have_animation;
        event = lib.ProcessInput(decoder);
        if (event == LIB_COLOR_ENCODING) read_code_points(decoder, header);
        else status = fail(event, message);
    }
    lib.Destroy(decoder);
    return status == CCODEC_OK && is_animated ? count_frames(bytes, length, header, message)
                                              : status;
}

// MARK: - Pixels

typedef struct {
    const ccodec_header *header;
    uint8_t *rows;
    /// Whether it is the first frame.
    bool is_wanted;
} target;

static void put_pixels(void *opaque, size_t x, size_t y, size_t pixels, const void *samples) {
    const target *target = opaque;
    const ccodec_header *header = target->header;
    if (!target->is_wanted || y >= header->height || x > header->width
        || pixels > header->width - x) {
        return;
    }
    size_t size = (size_t)(header->channels * header->depth / 8);
    memcpy(
        target->rows + y * ccodec_stride(header) + 1 + x * size, samples, pixels * size);
}

/// Decodes all frames, and keeps the first.
static ccodec_status decode_frames(
    lib_decoder *decoder, target *target, cinterruption *interruption, char *message) {
    const ccodec_header *header = target->header;
    lib_pixels format = {
        .num_channels = (uint32_t)header->channels,
        .data_type = header->depth == 16 ? LIB_UINT16 : LIB_UINT8,
        .endianness = LIB_BIG_ENDIAN,
    };
    while (true) {
        if (interruption && cinterruption_look(interruption)) return CCODEC_INTERRUPTED;
        int event = lib.ProcessInput(decoder);
        switch (event) {
        case LIB_NEED_IMAGE_OUT_BUFFER:
            if (lib.SetImageOutCallback(decoder, &format, put_pixels, target) != LIB_SUCCESS) {
                return fail(1, message);
            }
            break;
        case LIB_FULL_IMAGE: target->is_wanted = false; break;
        case LIB_SUCCESS: return target->is_wanted ? fail(1, message) : CCODEC_OK;
        default: return fail(event, message);
        }
    }
}

static bool has_multiplied_alpha(lib_decoder *decoder) {
    lib_info info;
    return lib.GetBasicInfo(decoder, &info) == LIB_SUCCESS && info.alpha_bits > 0
        && info.alpha_premultiplied;
}

static ccodec_status decode(
    const uint8_t *bytes, size_t length, const ccodec_header *header, const ccodec_inks *inks,
    cinterruption *interruption, uint8_t **rows, char *message) {
    *rows = ccodec_make_rows(header);
    if (*rows == NULL) return CCODEC_OUT_OF_MEMORY;
    lib_decoder *decoder = start(bytes, length, LIB_FULL_IMAGE);
    target target = {.header = header, .rows = *rows, .is_wanted = true};
    ccodec_status status = decoder
        ? decode_frames(decoder, &target, interruption, message) : CCODEC_OUT_OF_MEMORY;
    bool is_multiplied = status == CCODEC_OK && has_multiplied_alpha(decoder);
    if (decoder) lib.Destroy(decoder);
    for (uint32_t y = 0; is_multiplied && y < header->height; y++) {
        ccodec_unmultiply(*rows + y * ccodec_stride(header) + 1, header);
    }
    if (status != CCODEC_OK) {
        free(*rows);
        *rows = NULL;
    }
    return status;
}

static uint8_t *copy_profile(const uint8_t *bytes, size_t length, size_t *count) {
    *count = 0;
    lib_decoder *decoder = start(bytes, length, LIB_COLOR_ENCODING);
    if (decoder == NULL) return NULL;
    uint8_t *copy = NULL;
    size_t size = 0;
    if (lib.ProcessInput(decoder) == LIB_COLOR_ENCODING
        && profile_size(decoder, &size) == LIB_SUCCESS && size > 0 && size <= (4u << 20)) {
        copy = malloc(size);
        if (copy && profile_bytes(decoder, copy, size) == LIB_SUCCESS) {
            *count = size;
        } else {
            free(copy);
            copy = NULL;
        }
    }
    lib.Destroy(decoder);
    return copy;
}

const ccodec_library cjxl_library = {
    .files = files,
    .load = load,
    .version = library_version,
    .read_header = read_header,
    .decode = decode,
    .copy_profile = copy_profile,
};
