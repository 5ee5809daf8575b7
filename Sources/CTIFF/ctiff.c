#include "ctiff_file.h"

#include "cloader.h"

#include <stdio.h>
#include <string.h>

struct lib_functions lib;

// MARK: - Loading

/// Keeps messages about damage from standard error.
static void note_error(void *handle, const char *module, const char *format, va_list values) {
    ctiff_file *file = handle;
    if (file == NULL || file->error[0]) return;
    vsnprintf(file->error, sizeof file->error, format, values);
    // Some name the file, which has no name.
    for (char *place = file->error; *place; place++) {
        if ((uint8_t)*place < ' ') *place = ' ';
    }
}

/// Takes the warnings of these decoders about lost pixels for damage. Others are about directories.
static void note_warning(void *handle, const char *module, const char *format, va_list values) {
    static const char *const modules[] = {"JPEGLib", "Fax3", "Fax4", "PackBitsDecode"};
    ctiff_file *file = handle;
    if (file == NULL || !file->is_decoding || module == NULL) return;
    for (size_t index = 0; index < sizeof modules / sizeof *modules; index++) {
        if (strncmp(module, modules[index], strlen(modules[index])) != 0) continue;
        note_error(handle, module, format, values);
        return;
    }
}

static const char *prepare(void) {
    lib.SetWarningHandler(NULL);
    lib.SetWarningHandlerExt(note_warning);
    lib.SetErrorHandler(NULL);
    lib.SetErrorHandlerExt(note_error);
    return NULL;
}

#define NAME(name, result, parameters) #name,
static const char *const names[] = {LIB_FUNCTIONS(NAME) NULL};
static char failure[CLOADER_MESSAGE_BYTES];

/// Debian 12 and later have 6, Ubuntu 22.04 has 5, with the same functions.
static const char *const files[] = {"libtiff.so.6", "libtiff.so.5", NULL};

static void load_once(void) {
    cloader_open_first(files, (cloader_library){"", "TIFF", names, prepare}, &lib, failure);
}

const char *ctiff_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_once);
    return failure[0] ? failure : NULL;
}

/// The number in `LIBTIFF, Version 4.5.0`, which further lines follow.
static void library_version(char text[32]) {
    const char *version = strstr(lib.GetVersion(), "Version ");
    int count = version ? (int)strcspn(version + 8, "\n ") : 0;
    snprintf(text, 32, "%.*s", count, version ? version + 8 : "");
}

// MARK: - The file in memory

static int64_t read_bytes(void *handle, void *buffer, int64_t size) {
    ctiff_file *file = handle;
    if (size < 0 || file->position >= file->length) return 0;
    uint64_t rest = file->length - file->position;
    uint64_t count = (uint64_t)size < rest ? (uint64_t)size : rest;
    memcpy(buffer, file->bytes + file->position, count);
    file->position += count;
    return (int64_t)count;
}

static int64_t write_bytes(void *handle, void *buffer, int64_t size) { return -1; }

static uint64_t seek(void *handle, uint64_t offset, int whence) {
    ctiff_file *file = handle;
    uint64_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? file->position : file->length;
    // Wraps for a negative distance.
    file->position = base + offset;
    return file->position;
}

static int close_file(void *handle) { return 0; }

static uint64_t size_of_file(void *handle) { return ((ctiff_file *)handle)->length; }

static int map(void *handle, void **base, uint64_t *size) { return 0; }

static void unmap(void *handle, void *base, uint64_t size) {}

void ctiff_close(ctiff_file *file) {
    if (file->tiff) lib.Close(file->tiff);
    file->tiff = NULL;
}

// MARK: - The header

static uint16_t number(ctiff_file *file, uint32_t tag, uint16_t fallback) {
    uint16_t value = fallback;
    return lib.GetFieldDefaulted(file->tiff, tag, &value) ? value : fallback;
}

static ccodec_status refuse(char *message, const char *reason) {
    snprintf(message, CCODEC_MESSAGE_BYTES, "%s", reason);
    return CCODEC_UNSUPPORTED;
}

enum { MOST_SAMPLES = 32 };

/// Finds alpha. Other samples beyond the colours are ignored.
static void find_alpha(ctiff_file *file, uint16_t colours) {
    uint16_t count = 0, *kinds = NULL;
    if (file->samples <= colours) return;
    if (!lib.GetField(file->tiff, LIB_EXTRA_SAMPLES, &count, &kinds) || count == 0) {
        // Without the tag, four samples of RGB are taken for RGBA, as in other readers.
        file->alpha = file->samples == colours + 1 && file->kind != CTIFF_INKS ? colours : 0;
        return;
    }
    for (uint16_t index = 0; index < count && colours + index < file->samples; index++) {
        if (kinds[index] != LIB_ASSOCIATED_ALPHA && kinds[index] != LIB_STRAIGHT_ALPHA) continue;
        file->alpha = colours + index;
        file->is_multiplied = kinds[index] == LIB_ASSOCIATED_ALPHA;
        return;
    }
}

/// Chooses how the samples are read; `CTIFF_CONVERTED` where they are not read here.
static void choose_kind(ctiff_file *file, uint16_t photometric) {
    uint16_t compression = number(file, LIB_COMPRESSION, 1);
    file->kind = CTIFF_CONVERTED;
    uint16_t colours = 1;
    switch (photometric) {
    case LIB_WHITE_IS_ZERO: file->kind = CTIFF_INVERTED_GREY; break;
    case LIB_BLACK_IS_ZERO: file->kind = CTIFF_GREY; break;
    case LIB_PALETTE:
        if (file->bits <= 16) file->kind = CTIFF_PALETTE;
        break;
    case LIB_YCBCR:
        // libjpeg converts it, at full resolution.
        if (compression != LIB_COMPRESSION_JPEG || file->is_planar || file->bits != 8) break;
        if (!lib.SetField(file->tiff, LIB_JPEG_COLOUR_MODE, LIB_JPEG_COLOUR_MODE_RGB)) break;
        file->kind = CTIFF_RGB;
        colours = 3;
        break;
    case LIB_RGB:
        file->kind = CTIFF_RGB;
        colours = 3;
        break;
    case LIB_LAB:
    case LIB_ICC_LAB:
        if (file->bits == 8) file->kind = photometric == LIB_LAB ? CTIFF_LAB : CTIFF_ICC_LAB;
        colours = 3;
        break;
    case LIB_INKS:
        if (number(file, LIB_INK_SET, LIB_INK_SET_CMYK) == LIB_INK_SET_CMYK) {
            file->kind = CTIFF_INKS;
        }
        colours = 4;
        break;
    }
    if (file->samples < colours) file->kind = CTIFF_CONVERTED;
    if (file->kind != CTIFF_CONVERTED) find_alpha(file, colours);
}

/// Refuses pages with samples of unknown meaning.
static ccodec_status check_kind(ctiff_file *file, char *message) {
    uint32_t subfile = 0;
    // libtiff's table may have a number of bytes before their place.
    void *version = NULL, *place = NULL;
    char reason[1024] = "";
    if (lib.GetField(file->tiff, LIB_SUBFILE_TYPE, &subfile) && subfile & LIB_REDUCED) {
        return refuse(message, "a preview as its first page");
    }
    if (lib.GetField(file->tiff, LIB_DNG_VERSION, &version, &place)) {
        return refuse(message, "the raw data of a camera");
    }
    if (!lib.IsCODECConfigured(number(file, LIB_COMPRESSION, 1))) {
        return refuse(message, "a compression that is unknown");
    }
    uint16_t format = number(file, LIB_SAMPLE_FORMAT, LIB_UNSIGNED);
    if (format != LIB_UNSIGNED && format != LIB_VOID) {
        return refuse(message, "signed or floating-point samples");
    }
    if (file->samples > MOST_SAMPLES) return refuse(message, "more than 32 samples a pixel");
    bool is_opaque = file->kind == CTIFF_INKS || file->kind == CTIFF_LAB || file->kind == CTIFF_ICC_LAB;
    if (is_opaque && file->alpha) return refuse(message, "transparent inks or L*a*b*");
    if (file->kind != CTIFF_CONVERTED && file->bits <= 32 && file->bits > 0) return CCODEC_OK;
    if (lib.RGBAImageOK(file->tiff, reason)) {
        file->kind = CTIFF_CONVERTED;
        return CCODEC_OK;
    }
    return refuse(message, reason[0] ? reason : "an unknown kind of pixels");
}

/// Whether strips are decoded row by row.
static bool has_rows(ctiff_file *file) {
    switch (number(file, LIB_COMPRESSION, 1)) {
    case 1: case 2: case 3: case 4: case 5: case LIB_COMPRESSION_JPEG: case 8: case 32773:
    case 32946: case 34925: case 50000:
        return file->kind != CTIFF_CONVERTED && !lib.IsTiled(file->tiff);
    default: return false;
    }
}

/// A tile or a strip in memory, and libtiff's own buffers for the compressed and the decoded data.
static uint64_t working_bytes(ctiff_file *file, const ccodec_header *header) {
    uint64_t piece = has_rows(file) ? lib.ScanlineSize64(file->tiff)
        : lib.IsTiled(file->tiff)   ? lib.TileSize64(file->tiff)
                                    : lib.StripSize64(file->tiff);
    uint64_t bytes = (2u << 20) + 2 * file->length;
    if (__builtin_mul_overflow(piece, 2, &piece)) return INT64_MAX;
    if (__builtin_add_overflow(bytes, piece, &bytes)) return INT64_MAX;
    uint64_t more = (uint64_t)header->width * header->height;
    if (file->kind == CTIFF_CONVERTED) more *= 4;
    else if (file->kind != CTIFF_INKS) more = 0;
    if (__builtin_add_overflow(bytes, more, &bytes) || bytes > INT64_MAX) return INT64_MAX;
    return bytes;
}

static void describe(ctiff_file *file, ccodec_header *header) {
    bool is_grey = file->kind == CTIFF_GREY || file->kind == CTIFF_INVERTED_GREY;
    header->has_inks = file->kind == CTIFF_INKS;
    header->channels = is_grey ? 1 : 3;
    if (file->kind == CTIFF_CONVERTED) {
        header->channels = 4;
    } else if (file->alpha) {
        header->channels++;
    }
    bool is_deep = file->bits > 8 && (is_grey || file->kind == CTIFF_RGB);
    header->depth = is_deep ? 16 : 8;
    uint16_t orientation = number(file, LIB_ORIENTATION, 1);
    header->orientation = orientation >= 1 && orientation <= 8 ? orientation : 1;
    header->pictures = lib.LastDirectory(file->tiff) ? 1 : 2;
    header->primaries = header->transfer = 2;
    uint32_t size = 0;
    void *profile = NULL;
    header->has_profile = lib.GetField(file->tiff, LIB_PROFILE, &size, &profile) && size > 0;
    header->library_bytes = working_bytes(file, header);
}

ccodec_status ctiff_open(
    ctiff_file *file, const uint8_t *bytes, size_t length, ccodec_header *header, char *message) {
    memset(file, 0, sizeof *file);
    memset(header, 0, sizeof *header);
    file->bytes = bytes;
    file->length = length;
    // m: no mapping.
    file->tiff = lib.ClientOpen(
        "", "rm", file, read_bytes, write_bytes, seek, close_file, size_of_file, map, unmap);
    if (file->tiff == NULL) {
        snprintf(message, CCODEC_MESSAGE_BYTES, "%s", file->error[0] ? file->error : "no TIFF");
        return CCODEC_CORRUPT;
    }
    file->error[0] = 0;
    if (!lib.GetField(file->tiff, LIB_WIDTH, &header->width)
        || !lib.GetField(file->tiff, LIB_LENGTH, &header->height) || header->width == 0
        || header->height == 0 || header->width > INT32_MAX || header->height > INT32_MAX) {
        snprintf(message, CCODEC_MESSAGE_BYTES, "no size");
        ctiff_close(file);
        return CCODEC_CORRUPT;
    }
    file->bits = number(file, LIB_BITS, 1);
    file->samples = number(file, LIB_SAMPLES, 1);
    file->is_planar =
        number(file, LIB_PLANAR, LIB_CONTIGUOUS) == LIB_SEPARATE && file->samples > 1;
    uint16_t photometric = 0;
    ccodec_status status;
    if (lib.GetField(file->tiff, LIB_PHOTOMETRIC, &photometric)) {
        choose_kind(file, photometric);
        status = check_kind(file, message);
    } else {
        status = refuse(message, "samples of an unstated meaning");
    }
    if (status == CCODEC_OK) describe(file, header);
    else ctiff_close(file);
    file->error[0] = 0;
    return status;
}

static ccodec_status read_header(
    const uint8_t *bytes, size_t length, ccodec_header *header, char *message) {
    ctiff_file file;
    ccodec_status status = ctiff_open(&file, bytes, length, header, message);
    ctiff_close(&file);
    return status;
}

static ccodec_status decode(
    const uint8_t *bytes, size_t length, const ccodec_header *header, const ccodec_inks *inks,
    cinterruption *interruption, uint8_t **rows, char *message) {
    ctiff_file file;
    ccodec_header read;
    *rows = NULL;
    ccodec_status status = ctiff_open(&file, bytes, length, &read, message);
    if (status != CCODEC_OK) return status;
    ccodec_header wide = read;
    // Inks have a sample more until they are converted.
    if (read.has_inks) wide.channels = 4;
    *rows = ccodec_make_rows(&wide);
    file.is_decoding = true;
    status = *rows ? ctiff_decode_page(&file, &read, inks, interruption, *rows, message)
                   : CCODEC_OUT_OF_MEMORY;
    if (status != CCODEC_OK) {
        free(*rows);
        *rows = NULL;
    }
    ctiff_close(&file);
    return status;
}

static uint8_t *copy_profile(const uint8_t *bytes, size_t length, size_t *count) {
    ctiff_file file;
    ccodec_header header;
    char message[CCODEC_MESSAGE_BYTES];
    *count = 0;
    if (ctiff_open(&file, bytes, length, &header, message) != CCODEC_OK) return NULL;
    uint32_t size = 0;
    void *profile = NULL;
    uint8_t *copy = NULL;
    if (lib.GetField(file.tiff, LIB_PROFILE, &size, &profile) && profile && size > 0) {
        copy = malloc(size);
        if (copy) memcpy(copy, profile, size);
        *count = copy ? size : 0;
    }
    ctiff_close(&file);
    return copy;
}

const ccodec_library ctiff_library = {
    .files = files,
    .load = ctiff_load,
    .version = library_version,
    .read_header = read_header,
    .decode = decode,
    .copy_profile = copy_profile,
};
