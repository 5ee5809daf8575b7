#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cheif.h"

#include "cheif_declarations.h"
#include "cloader.h"

#include <stdio.h>
#include <string.h>

/// Written by `load` only, which runs before anything is opened.
static struct {
#define MEMBER(name, result, parameters) result(*name) parameters;
    LIB_FUNCTIONS(MEMBER)
#undef MEMBER
} lib;

/// Also loads plug-ins: newer versions have their decoders in them.
static const char *prepare(void) {
    if (lib.init(NULL).code != LIB_OK) return "cannot be initialised";
    return lib.have_decoder_for_format(LIB_HEVC) ? NULL : "has no decoder of HEVC";
}

#define NAME(name, result, parameters) #name,
static const char *const names[] = {LIB_FUNCTIONS(NAME) NULL};
static char failure[CLOADER_MESSAGE_BYTES];

static const char *const files[] = {"libheif.so.1", NULL};

static void load_once(void) {
    cloader_open_first(files, (cloader_library){"", "heif_", names, prepare}, &lib, failure);
}

static const char *load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_once);
    return failure[0] ? failure : NULL;
}

static void library_version(char text[32]) { snprintf(text, 32, "%s", lib.get_version()); }

static ccodec_status status_of(lib_error error, char *message) {
    snprintf(message, CCODEC_MESSAGE_BYTES, "%s", error.message ? error.message : "damaged data");
    if (error.subcode == LIB_LIMIT_EXCEEDED) return CCODEC_LIMIT;
    if (error.subcode == LIB_END_OF_DATA) return CCODEC_TRUNCATED;
    switch (error.code) {
    case LIB_OK: return CCODEC_OK;
    case LIB_UNSUPPORTED_FILETYPE:
    case LIB_UNSUPPORTED_FEATURE: return CCODEC_UNSUPPORTED;
    case LIB_OUT_OF_MEMORY: return CCODEC_OUT_OF_MEMORY;
    default: return CCODEC_CORRUPT;
    }
}

// MARK: - The header

typedef struct {
    lib_context *context;
    lib_picture *picture;
} heif_file;

static void close_file(heif_file *file) {
    if (file->picture) lib.image_handle_release(file->picture);
    if (file->context) lib.context_free(file->context);
}

/// Without a profile of code points, they are not specified. libheif tells no number that it does
/// not know, nor the others beside it.
static void read_code_points(heif_file *file, ccodec_header *header) {
    lib_code_points *points = NULL;
    header->primaries = header->transfer = 2;
    lib_error error = lib.image_handle_get_nclx_color_profile(file->picture, &points);
    if (error.code != LIB_OK && error.code != LIB_NO_PROFILE) header->primaries = header->transfer = 0;
    if (error.code != LIB_OK || points == NULL) return;
    header->primaries = points->primaries;
    header->transfer = points->transfer;
    lib.nclx_color_profile_free(points);
}

/// Whether a description mentions items of AV1, which another library decodes.
static bool has_av1(const uint8_t *bytes, size_t length) {
    while (length >= 8) {
        uint64_t size = (uint32_t)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
        if (size == 1 && length >= 16) {
            size = 0;
            for (int index = 8; index < 16; index++) size = size << 8 | bytes[index];
        } else if (size == 0) {
            size = length;
        }
        if (size < 8 || size > length) return false;
        if (memcmp(bytes + 4, "meta", 4) == 0 && memmem(bytes, size, "av01", 4)) return true;
        bytes += size;
        length -= size;
    }
    return false;
}

static ccodec_status open_file(
    heif_file *file, const uint8_t *bytes, size_t length, ccodec_header *header, char *message) {
    memset(file, 0, sizeof *file);
    memset(header, 0, sizeof *header);
    if (has_av1(bytes, length)) {
        snprintf(message, CCODEC_MESSAGE_BYTES, "AV1 in a HEIF");
        return CCODEC_UNSUPPORTED;
    }
    file->context = lib.context_alloc();
    if (file->context == NULL) return CCODEC_OUT_OF_MEMORY;
    lib.context_set_max_decoding_threads(file->context, 0);
    lib_error error =
        lib.context_read_from_memory_without_copy(file->context, bytes, length, NULL);
    if (error.code == LIB_OK) {
        error = lib.context_get_primary_image_handle(file->context, &file->picture);
    }
    if (error.code != LIB_OK) return status_of(error, message);
    int width = lib.image_handle_get_width(file->picture);
    int height = lib.image_handle_get_height(file->picture);
    int bits = lib.image_handle_get_luma_bits_per_pixel(file->picture);
    if (width <= 0 || height <= 0) {
        snprintf(message, CCODEC_MESSAGE_BYTES, "no size");
        return CCODEC_CORRUPT;
    }
    if (bits < 1) {
        snprintf(message, CCODEC_MESSAGE_BYTES, "an unknown kind of picture");
        return CCODEC_UNSUPPORTED;
    }
    header->width = (uint32_t)width;
    header->height = (uint32_t)height;
    header->depth = bits > 8 ? 16 : 8;
    header->channels = lib.image_handle_has_alpha_channel(file->picture) ? 4 : 3;
    header->orientation = 1;
    header->pictures = 1;
    header->has_profile = lib.image_handle_get_raw_color_profile_size(file->picture) > 0;
    read_code_points(file, header);
    // Planes, copies that are turned or cut, interleaved samples. Pictures of 8 bits took 5.3 bytes
    // a pixel, 7.6 with alpha, those of 10 bits 9.7.
    header->library_bytes = (8u << 20)
        + (uint64_t)width * (uint64_t)height * (uint64_t)(header->depth / 8)
            * (header->channels == 4 ? 9 : 6);
    return CCODEC_OK;
}

static ccodec_status read_header(
    const uint8_t *bytes, size_t length, ccodec_header *header, char *message) {
    heif_file file;
    ccodec_status status = open_file(&file, bytes, length, header, message);
    close_file(&file);
    return status;
}

// MARK: - Pixels

/// Copies a row of samples. Samples of more than 8 bits get the full range of 16.
static void copy_row(const uint8_t *from, uint8_t *to, const ccodec_header *header, int bits) {
    size_t count = (size_t)header->width * (size_t)header->channels;
    if (header->depth == 8) {
        memcpy(to, from, count);
        return;
    }
    uint32_t most = (1u << bits) - 1;
    for (size_t index = 0; index < count; index++) {
        uint32_t value = (uint32_t)from[2 * index] << 8 | from[2 * index + 1];
        if (value > most) value = most;
        ccodec_put16(to + 2 * index, (uint32_t)(((uint64_t)value * 65535 + most / 2) / most));
    }
}

static ccodec_status copy_rows(
    heif_file *file, lib_image *image, const ccodec_header *header, cinterruption *interruption,
    uint8_t *rows, char *message) {
    int stride = 0;
    const uint8_t *plane = lib.image_get_plane_readonly(image, LIB_INTERLEAVED, &stride);
    int bits = lib.image_get_bits_per_pixel_range(image, LIB_INTERLEAVED);
    bool has_size = lib.image_get_width(image, LIB_INTERLEAVED) == (int)header->width
        && lib.image_get_height(image, LIB_INTERLEAVED) == (int)header->height;
    if (plane == NULL || !has_size || bits < 1 || bits > 16) {
        snprintf(message, CCODEC_MESSAGE_BYTES, "a size that its data contradicts");
        return CCODEC_CORRUPT;
    }
    size_t row = ccodec_stride(header);
    bool is_multiplied =
        header->channels == 4 && lib.image_handle_is_premultiplied_alpha(file->picture);
    for (uint32_t y = 0; y < header->height; y++) {
        if (cinterruption_after(interruption, row)) return CCODEC_INTERRUPTED;
        uint8_t *samples = rows + y * row + 1;
        copy_row(plane + (size_t)y * (size_t)stride, samples, header, bits);
        if (is_multiplied) ccodec_unmultiply(samples, header);
    }
    return CCODEC_OK;
}

static ccodec_status decode_picture(
    heif_file *file, const ccodec_header *header, lib_image **image, char *message) {
    lib_options *options = lib.decoding_options_alloc();
    if (options == NULL) return CCODEC_OUT_OF_MEMORY;
    // Damage must not be concealed.
    if (options->version >= 3) options->strict_decoding = 1;
    bool is_deep = header->depth == 16;
    int chroma = header->channels == 4 ? is_deep ? LIB_CHROMA_DEEP_RGBA : LIB_CHROMA_RGBA
        : is_deep                      ? LIB_CHROMA_DEEP_RGB
                                       : LIB_CHROMA_RGB;
    lib_error error = lib.decode_image(file->picture, image, LIB_COLOURS_RGB, chroma, options);
    lib.decoding_options_free(options);
    if (error.code != LIB_OK) return status_of(error, message);
    lib_error warning;
    if (lib.image_get_decoding_warnings(*image, 0, &warning, 1) > 0) {
        snprintf(
            message, CCODEC_MESSAGE_BYTES, "%s",
            warning.message ? warning.message : "damaged data");
        return CCODEC_CORRUPT;
    }
    return CCODEC_OK;
}

static ccodec_status decode(
    const uint8_t *bytes, size_t length, const ccodec_header *header, const ccodec_inks *inks,
    cinterruption *interruption, uint8_t **rows, char *message) {
    heif_file file;
    ccodec_header read;
    lib_image *image = NULL;
    *rows = NULL;
    ccodec_status status = open_file(&file, bytes, length, &read, message);
    if (status == CCODEC_OK) status = decode_picture(&file, &read, &image, message);
    if (status == CCODEC_OK) *rows = ccodec_make_rows(&read);
    if (status == CCODEC_OK && *rows == NULL) status = CCODEC_OUT_OF_MEMORY;
    if (status == CCODEC_OK) {
        status = copy_rows(&file, image, &read, interruption, *rows, message);
    }
    if (status != CCODEC_OK) {
        free(*rows);
        *rows = NULL;
    }
    if (image) lib.image_release(image);
    close_file(&file);
    return status;
}

static uint8_t *copy_profile(const uint8_t *bytes, size_t length, size_t *count) {
    heif_file file;
    ccodec_header header;
    char message[CCODEC_MESSAGE_BYTES];
    uint8_t *copy = NULL;
    *count = 0;
    if (open_file(&file, bytes, length, &header, message) == CCODEC_OK) {
        size_t size = lib.image_handle_get_raw_color_profile_size(file.picture);
        // A profile is a part of the file.
        copy = size > 0 && size <= length ? malloc(size) : NULL;
        if (copy && lib.image_handle_get_raw_color_profile(file.picture, copy).code == LIB_OK) {
            *count = size;
        } else {
            free(copy);
            copy = NULL;
        }
    }
    close_file(&file);
    return copy;
}

const ccodec_library cheif_library = {
    .files = files,
    .load = load,
    .version = library_version,
    .read_header = read_header,
    .decode = decode,
    .copy_profile = copy_profile,
};
