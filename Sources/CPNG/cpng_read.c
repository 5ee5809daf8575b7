#include "cpng.h"
#include "cpng_complete.h"
#include "cpng_whole.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

/// One call's state. Everything that changes between `setjmp` and a jump lives here, in the frame
/// of the public function. That function never calls `setjmp` itself, so no value is indeterminate.
typedef struct {
    png_structp png;
    png_infop info;
    jmp_buf jump;
    ccodec_status status;
    char *message;
    const cpng_limits *limits;
    const uint8_t *input;
    size_t input_length;
    size_t offset;
    /// The end of the chunk at `offset`; the end of the input for a cut or unknown one.
    size_t chunk_end;
    /// The first and the last chunk of image data; 0 without one.
    size_t first_data, last_data;
    /// The end of the chunks that follow the first without a gap.
    size_t data_end;
    /// The palettes before them, at most one.
    int palettes;
    /// Whether the rest of the file is checked, and the library gets an end chunk in its place.
    bool has_checked_rest;
    /// The number of their entries that pixels can name.
    size_t palette_entries;
    /// A chunk of transparency, made to fit the palette, and where to go on behind it; 0 for
    /// another chunk.
    uint8_t transparency[CPNG_CHUNK_FRAME + PNG_MAX_PALETTE_LENGTH];
    const uint8_t *rest;
    size_t rest_length, rest_offset;
    /// Makes the image data that the library gets in place of unended data; else NULL.
    cpng_completion *completion;
    /// Whether the library has begun to read it.
    bool reads_completion;
    int warnings;
    cpng_image *image;
    uint8_t *row;
    /// Whether the rows are kept, or only verified.
    bool keeps_rows;
    /// Receives the meaning of samples; NULL for none.
    cpng_colours *colours;
} session;

static _Noreturn void fail(session *s, ccodec_status status, const char *text) {
    s->status = status;
    snprintf(s->message, CCODEC_MESSAGE_BYTES, "%s", text);
    longjmp(s->jump, 1);
}

static void check_interruption(session *s, uint64_t bytes) {
    if (cinterruption_after(s->limits->interruption, bytes)) fail(s, CCODEC_INTERRUPTED, "");
}

static _Noreturn void on_error(png_structp png, png_const_charp text) {
    fail(png_get_error_ptr(png), CCODEC_CORRUPT, text);
}

/// libpng's warnings have no codes, only texts that begin with the chunk's name. The first entry
/// that matches a text's beginning decides.
static const struct {
    const char *beginning;
    bool is_harmless;
} warnings[] = {
    // More rows or bytes than the image needs; its own were complete.
    {"IDAT: Extra compressed data", true},
    {"IDAT: Too much image data", true},
    {"Extra compressed data", true},
    {"Too much image data", true},
    // Shown black. The library checks the indices of interlaced images only.
    {"IDAT: Read palette index exceeding num_palette", true},
    // "incorrect data check", "invalid distance" and similar: the stream is damaged after the last
    // row, its checksum included.
    {"IDAT", false},
    // Ancillary chunks: libpng drops the chunk, which changes no pixel. The caller checks for
    // damaged transparency; a colour beyond the bit depth matches no pixel.
    {"", true},
};

static bool is_harmless(png_const_charp text) {
    for (size_t index = 0; index < sizeof warnings / sizeof *warnings; index++) {
        const char *beginning = warnings[index].beginning;
        if (strncmp(text, beginning, strlen(beginning)) == 0) return warnings[index].is_harmless;
    }
    return false;
}

static void on_warning(png_structp png, png_const_charp text) {
    session *s = png_get_error_ptr(png);
    if (!is_harmless(text)) fail(s, CCODEC_CORRUPT, text);
    if (++s->warnings > s->limits->maximum_warnings) fail(s, CCODEC_LIMIT, "too many warnings");
}

enum { SIGNATURE = 8 };

static _Noreturn void fail_in_chunk(session *s, const uint8_t *chunk, const char *text) {
    char named[32];
    snprintf(named, sizeof named, "%.4s: %s", (const char *)chunk + CPNG_CHUNK_LENGTH, text);
    fail(s, CCODEC_CORRUPT, named);
}

enum { BIT_DEPTH = 24, COLOR_TYPE = 25, HEADER_END = 33 };

/// Whether the header before a chunk declares colours.
static bool has_colours(const session *s, size_t offset) {
    return offset >= HEADER_END && (s->input[COLOR_TYPE] & PNG_COLOR_MASK_COLOR);
}

static size_t palette_entries(const session *s, size_t bytes) {
    size_t entries = (bytes - CPNG_CHUNK_FRAME) / 3;
    size_t most = s->input[BIT_DEPTH] < 8 ? (size_t)1 << s->input[BIT_DEPTH] : 256;
    return entries < most ? entries : most;
}

/// Also checks the critical chunks before the image data, a cut one by its head. Some versions of
/// the library accept damaged, empty and repeated palettes that are suggestions.
static void find_image_data(session *s) {
    size_t offset = SIGNATURE, bytes = SIGNATURE;
    for (; bytes > 0 && s->input_length >= offset + CPNG_CHUNK_HEAD; offset += bytes) {
        const uint8_t *chunk = s->input + offset;
        bool is_leading = s->first_data == 0;
        if (!cpng_has_valid_head(chunk)) {
            if (is_leading) fail(s, CCODEC_CORRUPT, "invalid chunk type");
            return;
        }
        bytes = cpng_chunk_bytes(s->input, s->input_length, offset);
        if (cpng_is_type(chunk, "IDAT")) {
            if (is_leading) s->first_data = s->data_end = offset;
            if (bytes == 0) return;
            if (s->data_end == offset) s->data_end += bytes;
            s->last_data = offset;
        } else if (cpng_is_type(chunk, "IEND")) {
            return;
        } else if (is_leading && !cpng_is_ancillary(chunk)) {
            if (bytes > 0 && !cpng_is_intact(chunk, bytes)) fail_in_chunk(s, chunk, "CRC error");
            if (!cpng_is_type(chunk, "PLTE")) continue;
            if (s->palettes++ > 0) fail_in_chunk(s, chunk, "out of place");
            if (bytes > 0) s->palette_entries = palette_entries(s, bytes);
            bool is_empty = bytes == CPNG_CHUNK_FRAME && has_colours(s, offset);
            if (is_empty) fail_in_chunk(s, chunk, "no colours");
        }
    }
}

/// Whether a chunk is the palette of a truecolour picture, which only suggests colours. Some
/// versions forget a transparent colour before it.
static bool is_suggestion(const session *s, const uint8_t *chunk) {
    size_t offset = (size_t)(chunk - s->input);
    return s->palettes > 0 && offset < s->first_data && cpng_is_type(chunk, "PLTE")
        && has_colours(s, offset) && !(s->input[COLOR_TYPE] & PNG_COLOR_MASK_PALETTE);
}

/// Whether the library reads a chunk: one that is critical, tRNS, or what separates image data.
///
/// Versions differ in the ancillary chunks that they know, in the order and the sizes that they
/// accept, and in what one does to another. None of this applies to chunks that they do not see.
static bool is_read(const session *s, const uint8_t *chunk) {
    if (!cpng_is_ancillary(chunk)) return !is_suggestion(s, chunk);
    size_t offset = (size_t)(chunk - s->input);
    bool is_leading = s->first_data == 0 || offset < s->first_data;
    return is_leading ? cpng_is_type(chunk, "tRNS") : offset < s->last_data;
}

static const uint8_t end_chunk[] = {0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xAE, 0x42, 0x60, 0x82};

/// Gives the library bytes of ours in place of the rest of the file.
static void enter_made(session *s, const uint8_t *chunk, size_t bytes) {
    s->input = chunk;
    s->input_length = s->chunk_end = bytes;
    s->offset = 0;
}

/// Whether a chunk is transparency with more entries than the palette, which the library drops.
static bool is_long_transparency(const session *s, const uint8_t *chunk, size_t bytes) {
    return cpng_is_type(chunk, "tRNS") && s->input[COLOR_TYPE] == PNG_COLOR_TYPE_PALETTE
        && s->palette_entries > 0 && bytes - CPNG_CHUNK_FRAME > s->palette_entries
        && cpng_is_intact(chunk, bytes);
}

/// Gives the library the entries of the palette only.
static void enter_transparency(session *s, const uint8_t *chunk, size_t bytes) {
    s->rest = s->input;
    s->rest_length = s->input_length;
    s->rest_offset = s->offset + bytes;
    size_t end = CPNG_CHUNK_HEAD + s->palette_entries;
    memcpy(s->transparency, chunk, end);
    cpng_store_32(s->transparency, (uint32_t)s->palette_entries);
    const uint8_t *type = s->transparency + CPNG_CHUNK_LENGTH;
    uint32_t sum = cpng_crc(type, CPNG_CHUNK_TYPE + s->palette_entries);
    cpng_store_32(s->transparency + end, sum);
    enter_made(s, s->transparency, end + CPNG_CHUNK_CHECKSUM);
}

static void leave_transparency(session *s) {
    s->input = s->rest;
    s->input_length = s->rest_length;
    s->offset = s->rest_offset;
    s->rest = NULL;
}

static void enter_completion(session *s) {
    s->reads_completion = true;
    if (!cpng_complete_chunk(s->completion)) fail(s, CCODEC_CORRUPT, "Not enough image data");
    if (s->completion->length == 0) return enter_made(s, end_chunk, sizeof end_chunk);
    enter_made(s, s->completion->chunk, s->completion->length);
}

static void enter_chunk(session *s) {
    size_t bytes;
    if (s->rest != NULL) leave_transparency(s);
    if (s->reads_completion) return enter_completion(s);
    if (s->completion == NULL && s->has_checked_rest && s->offset >= s->data_end) {
        return enter_made(s, end_chunk, sizeof end_chunk);
    }
    while ((bytes = cpng_chunk_bytes(s->input, s->input_length, s->offset)) > 0
           && !is_read(s, s->input + s->offset)) {
        s->offset += bytes;
    }
    if (s->completion != NULL && s->offset >= s->first_data) return enter_completion(s);
    const uint8_t *chunk = s->input + s->offset;
    // The library would allocate what a cut chunk claims to have.
    if (bytes == 0 && s->input_length - s->offset >= CPNG_CHUNK_HEAD && cpng_has_valid_head(chunk)
        && cpng_is_ancillary(chunk)) {
        fail(s, CCODEC_TRUNCATED, "the data ends before the image does");
    }
    if (bytes > 0 && is_long_transparency(s, chunk, bytes)) {
        return enter_transparency(s, chunk, bytes);
    }
    s->chunk_end = bytes > 0 ? s->offset + bytes : s->input_length;
}

static void on_read(png_structp png, png_bytep bytes, size_t count) {
    session *s = png_get_io_ptr(png);
    // A few kilobytes may unpack to megabytes of a row.
    check_interruption(s, 4 * (uint64_t)count);
    while (count > 0) {
        if (s->offset == s->chunk_end) enter_chunk(s);
        size_t part = s->chunk_end - s->offset;
        if (part == 0) fail(s, CCODEC_TRUNCATED, "the data ends before the image does");
        if (part > count) part = count;
        memcpy(bytes, s->input + s->offset, part);
        s->offset += part;
        bytes += part;
        count -= part;
    }
}

/// Checks the chunks behind the image data, which have no effect on it: for another header, and
/// critical ones except the end for damage. Versions of the library differ here, so it does not see
/// them.
static void check_rest(session *s) {
    for (size_t offset = s->data_end, bytes;; offset += bytes) {
        const uint8_t *chunk = s->input + offset;
        bytes = cpng_chunk_bytes(s->input, s->input_length, offset);
        if (bytes == 0) {
            if (s->input_length - offset >= CPNG_CHUNK_HEAD && !cpng_has_valid_head(chunk)) {
                fail(s, CCODEC_CORRUPT, "invalid chunk type");
            }
            if (s->limits->lacks_end) break;
            fail(s, CCODEC_TRUNCATED, "the data ends before the image does");
        }
        if (cpng_is_ancillary(chunk)) continue;
        if (cpng_is_type(chunk, "IHDR")) fail_in_chunk(s, chunk, "out of place");
        if (cpng_is_type(chunk, "IEND")) break;
        if (!cpng_is_intact(chunk, bytes)) fail_in_chunk(s, chunk, "CRC error");
    }
    s->has_checked_rest = true;
}

static void open_source(session *s) {
    s->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, s, on_error, on_warning);
    if (s->png != NULL) s->info = png_create_info_struct(s->png);
    if (s->info == NULL) fail(s, CCODEC_OUT_OF_MEMORY, "no memory for the decoder");
    png_structp png = s->png;
    png_set_read_fn(png, s, on_read);
    uint64_t side = s->limits->maximum_pixels < PNG_UINT_31_MAX
        ? s->limits->maximum_pixels : PNG_UINT_31_MAX;
    png_set_user_limits(png, (png_uint_32)side, (png_uint_32)side);
    // The chunks that it reads have small limits of their own, and it holds no image data. Some
    // versions apply this one even to data that they pass over.
    png_set_chunk_malloc_max(png, 0);
    // A wrong checksum ends the decode in a critical chunk and drops an ancillary one.
    png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_WARN_DISCARD);
    png_read_info(png, s->info);
    cpng_image *image = s->image;
    image->width = png_get_image_width(png, s->info);
    image->height = png_get_image_height(png, s->info);
    if ((uint64_t)image->width * image->height > s->limits->maximum_pixels) {
        fail(s, CCODEC_LIMIT, "more pixels than allowed");
    }
}

static void read_row(session *s, uint8_t *row) {
    png_read_row(s->png, row, NULL);
    check_interruption(s, s->image->row_bytes);
}

static bool is_interlaced(const session *s) {
    return png_get_interlace_type(s->png, s->info) != PNG_INTERLACE_NONE;
}

/// Reads all rows into one, and keeps none.
static void skip_rows(session *s) {
    const cpng_image *image = s->image;
    s->row = malloc(image->row_bytes + 1);
    if (s->row == NULL) fail(s, CCODEC_OUT_OF_MEMORY, "no memory for a row");
    // Without interlace handling the library returns the seven small images one by one.
    int passes = is_interlaced(s) ? PNG_INTERLACE_ADAM7_PASSES : 1;
    for (int pass = 0; pass < passes; pass++) {
        uint32_t rows = passes == 1 ? image->height
            : PNG_PASS_COLS(image->width, pass) == 0 ? 0 : PNG_PASS_ROWS(image->height, pass);
        for (uint32_t y = 0; y < rows; y++) read_row(s, s->row);
    }
}

static void read_rows(session *s) {
    png_structp png = s->png;
    cpng_image *image = s->image;
    int passes = s->keeps_rows ? png_set_interlace_handling(png) : 1;
    png_read_update_info(png, s->info);
    image->bit_depth = png_get_bit_depth(png, s->info);
    image->color_type = png_get_color_type(png, s->info);
    image->row_bytes = png_get_rowbytes(png, s->info);
    int bits = png_get_channels(png, s->info) * image->bit_depth;
    image->filter_distance = bits > 8 ? bits / 8 : 1;
    if (!s->keeps_rows) return skip_rows(s);
    size_t stride, total;
    if (__builtin_add_overflow(image->row_bytes, 1, &stride)
        || __builtin_mul_overflow(stride, (size_t)image->height, &total)) {
        fail(s, CCODEC_LIMIT, "more pixels than can be addressed");
    }
    // Zeroed where the library leaves memory unchanged: the bits after a packed row's last pixel.
    image->rows = bits < 8 ? calloc(total, 1) : malloc(total);
    if (image->rows == NULL) fail(s, CCODEC_OUT_OF_MEMORY, "no memory for the pixels");
    for (int pass = 0; pass < passes; pass++) {
        for (uint32_t y = 0; y < image->height; y++) read_row(s, image->rows + y * stride + 1);
    }
}

static void take_colours(session *s, cpng_colours *colours) {
    memset(colours, 0, sizeof *colours);
    for (int index = 0; index < 256; index++) colours->palette[index] = 0xFF;
    png_colorp palette = NULL;
    png_bytep alphas = NULL;
    png_color_16p key = NULL;
    int entries = 0, count = 0;
    bool is_indexed = png_get_color_type(s->png, s->info) == PNG_COLOR_TYPE_PALETTE;
    png_get_tRNS(s->png, s->info, &alphas, &count, &key);
    if (!is_indexed) {
        if (count == 0 || key == NULL) return;
        bool is_grey = png_get_color_type(s->png, s->info) == PNG_COLOR_TYPE_GRAY;
        colours->has_key = true;
        colours->key[0] = is_grey ? key->gray : key->red;
        colours->key[1] = key->green;
        colours->key[2] = key->blue;
        return;
    }
    png_get_PLTE(s->png, s->info, &palette, &entries);
    colours->entries = entries;
    for (int index = 0; index < entries && index < 256; index++) {
        png_byte alpha = alphas != NULL && index < count ? alphas[index] : 0xFF;
        colours->palette[index] = (uint32_t)palette[index].red << 24
            | (uint32_t)palette[index].green << 16 | (uint32_t)palette[index].blue << 8 | alpha;
    }
}

/// Reads the image data in one call if it is plain. Returns false, with nothing changed, to leave
/// it to libpng: interlaced, damaged or unusual data. So only libpng words errors.
///
/// The library has then read only what precedes the image data, and reads nothing more: it promises
/// nothing about a caller that takes the data away from it.
static bool read_whole(session *s) {
    cpng_image *image = s->image;
    // The library may still warn about indices beyond the palette.
    bool has_warnings_left = s->warnings < s->limits->maximum_warnings;
    if (s->limits->maximum_whole_bytes == 0 || is_interlaced(s) || !has_warnings_left) return false;
    if (s->completion != NULL) return false;
    image->bit_depth = png_get_bit_depth(s->png, s->info);
    image->color_type = png_get_color_type(s->png, s->info);
    unsigned bits = (unsigned)(png_get_channels(s->png, s->info) * image->bit_depth);
    uint64_t row_bytes = ((uint64_t)image->width * bits + 7) / 8, total;
    if (__builtin_mul_overflow(row_bytes + 1, (uint64_t)image->height, &total)
        || !cpng_is_unpacked_at_once(total, 0)) {
        return false;
    }
    cpng_image_data data;
    if (!cpng_find_image_data(s->input, s->input_length, s->first_data, &data)) return false;
    // Two places: what the library says depends on the rows that the first has.
    if (s->last_data >= data.end) return false;
    uint64_t joined = data.chunks > 1 ? data.length : 0;
    if (total + joined > s->limits->maximum_whole_bytes) return false;
    check_interruption(s, total);
    image->row_bytes = (size_t)row_bytes;
    image->filter_distance = bits > 8 ? (int)(bits / 8) : 1;
    image->rows = malloc((size_t)total);
    bool is_whole = image->rows != NULL
        && cpng_unpack_image_data(&data, image->rows, (size_t)total);
    for (uint32_t y = 0; is_whole && y < image->height; y++) {
        is_whole = image->rows[y * (row_bytes + 1)] < PNG_FILTER_VALUE_LAST;
    }
    if (!is_whole || !s->keeps_rows) cpng_image_free(image);
    image->is_unusual = !is_whole;
    if (!is_whole) return false;
    image->is_whole = true;
    return true;
}

/// Finishes rows that were unpacked in one call.
static void finish_whole(session *s) {
    cpng_image *image = s->image;
    check_interruption(s, (image->row_bytes + 1) * image->height);
    if (!s->keeps_rows) return;
    if (cpng_unfilter(image, false) != CCODEC_OK) fail(s, CCODEC_INTERRUPTED, "");
}

/// Prepares the image data for the library if its end is missing.
static void begin_completion(session *s) {
    if (s->limits->unended.width == 0 || s->first_data == 0) return;
    check_rest(s);
    for (size_t offset = s->first_data; offset < s->data_end;) {
        size_t bytes = cpng_chunk_bytes(s->input, s->input_length, offset);
        const uint8_t *chunk = s->input + offset;
        if (!cpng_is_intact(chunk, bytes)) fail_in_chunk(s, chunk, "CRC error");
        offset += bytes;
    }
    size_t end = s->data_end + cpng_cut_image_data(s->input, s->input_length, s->data_end);
    s->completion = cpng_begin_completion(
        s->input, s->first_data, end, cpng_bytes_of_rows(&s->limits->unended));
    if (s->completion == NULL) fail(s, CCODEC_OUT_OF_MEMORY, "no memory for the decoder");
    s->image->is_unusual = true;
}

static ccodec_status run_read(session *s) {
    uint64_t begin = cinterruption_processor_time();
    if (setjmp(s->jump)) return s->status;
    find_image_data(s);
    begin_completion(s);
    open_source(s);
    s->image->has_transparency = png_get_valid(s->png, s->info, PNG_INFO_tRNS) != 0;
    if (s->colours != NULL) take_colours(s, s->colours);
    if (read_whole(s)) {
        check_rest(s);
        finish_whole(s);
    } else {
        read_rows(s);
        if (!s->has_checked_rest) check_rest(s);
        png_read_end(s->png, NULL);
    }
    s->image->nanoseconds = cinterruption_processor_time() - begin;
    return CCODEC_OK;
}

static ccodec_status read_image(
    const uint8_t *source, size_t length, const cpng_limits *limits, bool keeps_rows,
    cpng_image *image, cpng_colours *colours, char *message) {
    session s;
    memset(&s, 0, sizeof s);
    memset(image, 0, sizeof *image);
    message[0] = 0;
    image->interruption = limits->interruption;
    s.input = source;
    s.input_length = length;
    s.chunk_end = length < SIGNATURE ? length : SIGNATURE;
    s.limits = limits;
    s.message = message;
    s.image = image;
    s.keeps_rows = keeps_rows;
    s.colours = colours;
    ccodec_status status = run_read(&s);
    png_destroy_read_struct(&s.png, &s.info, NULL);
    cpng_end_completion(s.completion);
    free(s.row);
    if (status != CCODEC_OK) cpng_image_free(image);
    return status;
}

ccodec_status cpng_verify(
    const uint8_t *source, size_t length, const cpng_limits *limits, cpng_image *image,
    char *message) {
    return read_image(source, length, limits, false, image, NULL, message);
}

ccodec_status cpng_decode(
    const uint8_t *source, size_t length, const cpng_limits *limits, cpng_image *image,
    cpng_colours *colours, char *message) {
    return read_image(source, length, limits, true, image, colours, message);
}
