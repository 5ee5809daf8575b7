#include "copenjpeg.h"

#include "cloader.h"
#include "copenjpeg_boxes.h"
#include "copenjpeg_declarations.h"

#include <stdio.h>
#include <string.h>

/// Written by `load` only, which runs before anything is opened.
static struct {
#define MEMBER(name, result, parameters) result(*name) parameters;
    LIB_FUNCTIONS(MEMBER)
#undef MEMBER
} lib;

#define NAME(name, result, parameters) #name,
static const char *const names[] = {LIB_FUNCTIONS(NAME) NULL};
static char failure[CLOADER_MESSAGE_BYTES];

static const char *const files[] = {"libopenjp2.so.7", NULL};

static void load_once(void) {
    cloader_open_first(files, (cloader_library){"", "opj_", names, NULL}, &lib, failure);
}

static const char *load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_once);
    return failure[0] ? failure : NULL;
}

static void library_version(char text[32]) { snprintf(text, 32, "%s", lib.version()); }

// MARK: - The file in memory

typedef struct {
    const uint8_t *bytes;
    size_t length;
    size_t position;
    lib_codec *codec;
    lib_stream *stream;
    lib_image *image;
    /// The first error of openjpeg; empty without one.
    char error[CCODEC_MESSAGE_BYTES];
    copenjpeg_boxes boxes;
} jp2_file;

static size_t read_bytes(void *buffer, size_t count, void *handle) {
    jp2_file *file = handle;
    size_t rest = file->length - file->position;
    // openjpeg's end of file.
    if (rest == 0) return SIZE_MAX;
    if (count > rest) count = rest;
    memcpy(buffer, file->bytes + file->position, count);
    file->position += count;
    return count;
}

static int64_t skip(int64_t count, void *handle) {
    jp2_file *file = handle;
    if (count < 0) return -1;
    size_t rest = file->length - file->position;
    size_t skipped = (uint64_t)count < rest ? (size_t)count : rest;
    file->position += skipped;
    return (int64_t)skipped;
}

static int seek(int64_t offset, void *handle) {
    jp2_file *file = handle;
    if (offset < 0 || (uint64_t)offset > file->length) return 0;
    file->position = (size_t)offset;
    return 1;
}

static void note_error(const char *text, void *handle) {
    jp2_file *file = handle;
    if (file->error[0]) return;
    snprintf(file->error, sizeof file->error, "%.*s", (int)strcspn(text, "\n"), text);
}

static void close_file(jp2_file *file) {
    if (file->image) lib.image_destroy(file->image);
    if (file->stream) lib.stream_destroy(file->stream);
    if (file->codec) lib.destroy_codec(file->codec);
}

static ccodec_status fail(const jp2_file *file, char *message) {
    snprintf(
        message, CCODEC_MESSAGE_BYTES, "%s", file->error[0] ? file->error : "damaged data");
    return CCODEC_CORRUPT;
}

static ccodec_status refuse(char *message, const char *reason) {
    snprintf(message, CCODEC_MESSAGE_BYTES, "%s", reason);
    return CCODEC_UNSUPPORTED;
}

static ccodec_status open_file(
    jp2_file *file, const uint8_t *bytes, size_t length, char *message) {
    memset(file, 0, sizeof *file);
    file->bytes = bytes;
    file->length = length;
    bool is_bare = length >= 2 && bytes[0] == 0xFF;
    file->boxes = is_bare ? (copenjpeg_boxes){.alpha = -1} : copenjpeg_read_boxes(bytes, length);
    file->codec = lib.create_decompress(is_bare ? LIB_CODESTREAM : LIB_FILE);
    file->stream = lib.stream_create(64 << 10, 1);
    lib_parameters *parameters = calloc(1, sizeof *parameters);
    if (!file->codec || !file->stream || !parameters) {
        free(parameters);
        return CCODEC_OUT_OF_MEMORY;
    }
    lib.stream_set_user_data(file->stream, file, NULL);
    lib.stream_set_user_data_length(file->stream, length);
    lib.stream_set_read_function(file->stream, read_bytes);
    lib.stream_set_skip_function(file->stream, skip);
    lib.stream_set_seek_function(file->stream, seek);
    lib.set_error_handler(file->codec, note_error, file);
    lib.set_default_decoder_parameters(parameters);
    bool is_ready = lib.setup_decoder(file->codec, parameters)
        && lib.read_header(file->stream, file->codec, &file->image);
    free(parameters);
    return is_ready && file->image ? CCODEC_OK : fail(file, message);
}

// MARK: - The header

/// Numbers of colour spaces (I.5.3.3).
enum { INKS = 12, SRGB = 16, GREY = 17, YCC = 18 };

static uint32_t channel_count(const jp2_file *file) {
    return file->boxes.palette_channels ? file->boxes.palette_channels : file->image->numcomps;
}

static bool has_inks(const jp2_file *file) {
    return file->boxes.colours == INKS || file->boxes.has_profile_of_inks;
}

/// Colours without alpha. Without definitions, a second or fourth channel is alpha, as in other
/// readers.
static uint32_t colour_count(const jp2_file *file) {
    uint32_t count = channel_count(file);
    if (has_inks(file)) return count >= 4 ? 4 : 0;
    bool is_grey = file->boxes.colours == GREY || count < 3;
    return is_grey ? 1 : count >= 3 ? 3 : 0;
}

static bool has_alpha(const jp2_file *file) {
    uint32_t count = channel_count(file);
    if (has_inks(file)) return false;
    if (file->boxes.has_definitions) {
        return file->boxes.alpha >= 0 && (uint32_t)file->boxes.alpha < count;
    }
    return count == colour_count(file) + 1;
}

static ccodec_status describe(jp2_file *file, ccodec_header *header, char *message) {
    const lib_image *image = file->image;
    uint32_t colours = colour_count(file), number = file->boxes.colours;
    if (number != 0 && number != INKS && number != SRGB && number != GREY && number != YCC) {
        return refuse(message, "a colour space that is unknown");
    }
    if (colours == 0) return refuse(message, "too few components");
    if (image->numcomps > 5) return refuse(message, "more than five components");
    if (image->x1 <= image->x0 || image->y1 <= image->y0 || image->x1 - image->x0 > INT32_MAX
        || image->y1 - image->y0 > INT32_MAX) {
        return fail(file, message);
    }
    header->width = image->x1 - image->x0;
    header->height = image->y1 - image->y0;
    uint32_t bits = file->boxes.palette_channels ? file->boxes.palette_bits : 0;
    for (uint32_t index = 0; bits == 0 && index < image->numcomps && index < colours; index++) {
        if (image->comps[index].prec > bits) bits = image->comps[index].prec;
    }
    header->has_inks = has_inks(file);
    header->depth = bits > 8 && !header->has_inks ? 16 : 8;
    header->channels = (colours == 1 ? 1 : 3) + (has_alpha(file) ? 1 : 0);
    header->orientation = 1;
    header->pictures = 1;
    header->primaries = header->transfer = 2;
    header->has_profile = file->boxes.profile != NULL;
    // Components of 32 bits, and the codestream of a tile. Pictures of three took 13 bytes a pixel.
    uint32_t components = image->numcomps + file->boxes.palette_channels;
    header->library_bytes = (4u << 20) + 2 * (uint64_t)file->length
        + (uint64_t)header->width * header->height * (4 * (uint64_t)components + 2);
    return CCODEC_OK;
}

static ccodec_status read_header(
    const uint8_t *bytes, size_t length, ccodec_header *header, char *message) {
    jp2_file file;
    memset(header, 0, sizeof *header);
    ccodec_status status = open_file(&file, bytes, length, message);
    if (status == CCODEC_OK) status = describe(&file, header, message);
    close_file(&file);
    return status;
}

// MARK: - Pixels

/// The place of a component's sample for a place of the picture, on one axis.
static uint32_t place(uint32_t start, uint32_t x, uint32_t step, uint32_t count) {
    if (step > 1) {
        uint64_t first = ((uint64_t)start + step - 1) / step, found = ((uint64_t)start + x) / step;
        x = found > first ? (uint32_t)(found - first) : 0;
    }
    return x < count ? x : count - 1;
}

/// A component's sample for a place of the picture, from 0 to `most`.
static uint32_t sample(
    const lib_image *image, uint32_t index, uint32_t x, uint32_t y, uint32_t most) {
    const lib_component *component = &image->comps[index];
    size_t row = place(image->y0, y, component->dy, component->h);
    int64_t value =
        component->data[row * component->w + place(image->x0, x, component->dx, component->w)];
    uint32_t bits = component->prec < 1 ? 1 : component->prec > 31 ? 31 : component->prec;
    int64_t highest = ((int64_t)1 << bits) - 1;
    if (component->sgnd) value += (int64_t)1 << (bits - 1);
    if (value < 0) value = 0;
    if (value > highest) value = highest;
    if (highest == most) return (uint32_t)value;
    return (uint32_t)(((uint64_t)value * most + (uint64_t)highest / 2) / (uint64_t)highest);
}

static int clamped(double value, uint32_t most) {
    return value < 0 ? 0 : value > most ? (int)most : (int)(value + 0.5);
}

/// sYCC (IEC 61966-2-1, annex G), of the full range.
static void convert_ycc(uint32_t colours[3], uint32_t most) {
    double luma = colours[0], blue = colours[1] - (most + 1) / 2.0;
    double red = colours[2] - (most + 1) / 2.0;
    colours[0] = (uint32_t)clamped(luma + 1.402 * red, most);
    colours[1] = (uint32_t)clamped(luma - 0.344136 * blue - 0.714136 * red, most);
    colours[2] = (uint32_t)clamped(luma + 1.772 * blue, most);
}

/// The component with alpha, after definitions were applied: 1, or 2 if it is premultiplied.
static int alpha_component(const jp2_file *file, uint32_t colours) {
    for (uint32_t index = 0; index < file->image->numcomps; index++) {
        uint16_t alpha = file->image->comps[index].alpha;
        if (alpha == 1 || alpha == 2) return (int)index;
    }
    return (int)colours;
}

static bool is_ycc(const jp2_file *file) {
    const lib_image *image = file->image;
    if (file->boxes.colours == YCC) return image->numcomps >= 3;
    // As openjpeg's own programs.
    return file->boxes.colours == 0 && image->numcomps == 3 && image->comps[0].dx == 1
        && image->comps[1].dx > 1 && file->boxes.profile == NULL;
}

static void put_row(
    const jp2_file *file, const ccodec_header *header, uint32_t y, uint8_t *row) {
    uint32_t most = header->depth == 16 ? 65535 : 255;
    int count = header->has_inks ? 4 : header->channels;
    bool has_alpha = !header->has_inks && header->channels % 2 == 0;
    int colours = has_alpha ? count - 1 : count;
    bool converts = colours == 3 && is_ycc(file);
    int alpha = has_alpha ? alpha_component(file, (uint32_t)colours) : -1;
    for (uint32_t x = 0; x < header->width; x++) {
        uint32_t samples[4] = {0};
        int found = 0;
        for (uint32_t index = 0; index < file->image->numcomps && found < colours; index++) {
            // Others than 0 are no colour.
            if ((int)index == alpha || file->image->comps[index].alpha) continue;
            samples[found++] = sample(file->image, index, x, y, most);
        }
        if (converts) convert_ycc(samples, most);
        if (has_alpha) samples[colours] = sample(file->image, (uint32_t)alpha, x, y, most);
        for (int index = 0; index < count; index++) {
            // Files have 0 for no ink.
            uint32_t value = header->has_inks ? most - samples[index] : samples[index];
            if (most == 255) *row++ = (uint8_t)value;
            else ccodec_put16(row, value), row += 2;
        }
    }
}

static ccodec_status put_rows(
    const jp2_file *file, const ccodec_header *header, const ccodec_inks *inks,
    cinterruption *interruption, uint8_t *rows) {
    size_t stride = ccodec_stride(header);
    uint8_t *line = header->has_inks ? malloc((size_t)header->width * 4) : NULL;
    if (header->has_inks && line == NULL) return CCODEC_OUT_OF_MEMORY;
    ccodec_status status = CCODEC_OK;
    for (uint32_t y = 0; y < header->height && status == CCODEC_OK; y++) {
        if (cinterruption_after(interruption, stride)) status = CCODEC_INTERRUPTED;
        uint8_t *samples = rows + y * stride + 1;
        put_row(file, header, y, line ? line : samples);
        if (line) ccodec_convert_inks(line, samples, header->width, inks);
        else if (file->boxes.is_multiplied) ccodec_unmultiply(samples, header);
    }
    free(line);
    return status;
}

/// Whether the decoded components are as the header promised.
static bool has_components(const jp2_file *file, const ccodec_header *header) {
    const lib_image *image = file->image;
    uint32_t wanted = header->has_inks ? 4 : (uint32_t)header->channels;
    bool has_alpha = !header->has_inks && header->channels % 2 == 0;
    if (image->numcomps < wanted) return false;
    int alpha = has_alpha ? alpha_component(file, wanted - 1) : -1;
    uint32_t colours = 0;
    for (uint32_t index = 0; index < image->numcomps; index++) {
        if ((int)index != alpha && image->comps[index].alpha == 0) colours++;
        if (!image->comps[index].data || !image->comps[index].w || !image->comps[index].h) {
            return false;
        }
    }
    if (alpha >= (int)image->numcomps || colours < wanted - (has_alpha ? 1 : 0)) return false;
    return image->x1 - image->x0 == header->width && image->y1 - image->y0 == header->height;
}

static ccodec_status decode(
    const uint8_t *bytes, size_t length, const ccodec_header *header, const ccodec_inks *inks,
    cinterruption *interruption, uint8_t **rows, char *message) {
    jp2_file file;
    *rows = NULL;
    ccodec_status status = open_file(&file, bytes, length, message);
    if (status == CCODEC_OK
        && (!lib.decode(file.codec, file.stream, file.image)
            || !lib.end_decompress(file.codec, file.stream) || file.error[0]
            || !has_components(&file, header))) {
        status = fail(&file, message);
    }
    if (status == CCODEC_OK) *rows = ccodec_make_rows(header);
    if (status == CCODEC_OK && *rows == NULL) status = CCODEC_OUT_OF_MEMORY;
    if (status == CCODEC_OK) status = put_rows(&file, header, inks, interruption, *rows);
    if (status != CCODEC_OK) {
        free(*rows);
        *rows = NULL;
    }
    close_file(&file);
    return status;
}

static uint8_t *copy_profile(const uint8_t *bytes, size_t length, size_t *count) {
    *count = 0;
    if (length < 2 || bytes[0] == 0xFF) return NULL;
    copenjpeg_boxes boxes = copenjpeg_read_boxes(bytes, length);
    uint8_t *copy = boxes.profile ? malloc(boxes.profile_length) : NULL;
    if (copy) {
        memcpy(copy, boxes.profile, boxes.profile_length);
        *count = boxes.profile_length;
    }
    return copy;
}

const ccodec_library copenjpeg_library = {
    .files = files,
    .load = load,
    .version = library_version,
    .read_header = read_header,
    .decode = decode,
    .copy_profile = copy_profile,
};
