#include "cpng.h"
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

static void on_read(png_structp png, png_bytep bytes, size_t count) {
    session *s = png_get_io_ptr(png);
    // A few kilobytes may unpack to megabytes of a row.
    check_interruption(s, 4 * (uint64_t)count);
    if (count > s->input_length - s->offset) {
        fail(s, CCODEC_TRUNCATED, "the data ends before the image does");
    }
    memcpy(bytes, s->input + s->offset, count);
    s->offset += count;
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
    png_set_chunk_cache_max(png, s->limits->maximum_cached_chunks);
    png_set_chunk_malloc_max(png, s->limits->maximum_chunk_bytes);
    // A wrong checksum ends the decode in a critical chunk and drops an ancillary one.
    png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_WARN_DISCARD);
    // Skipped unread: chunks that are not stored, or that unpack to many times their size.
    static const png_byte skipped[] =
        "bKGD\0eXIf\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0sCAL\0sPLT\0tEXt\0tIME\0zTXt";
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, skipped, (int)(sizeof skipped / 5));
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

static unsigned valid_chunks(const session *s) {
    static const struct { png_uint_32 library; unsigned ours; } names[] = {
        {PNG_INFO_gAMA, CPNG_HAS_GAMA}, {PNG_INFO_cHRM, CPNG_HAS_CHRM},
        {PNG_INFO_sRGB, CPNG_HAS_SRGB}, {PNG_INFO_sBIT, CPNG_HAS_SBIT},
        {PNG_INFO_tRNS, CPNG_HAS_TRNS},
    };
    unsigned chunks = 0;
    for (size_t index = 0; index < sizeof names / sizeof *names; index++) {
        if (png_get_valid(s->png, s->info, names[index].library)) chunks |= names[index].ours;
    }
    return chunks;
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
static bool read_whole(session *s) {
    enum { HEAD = 8 };
    cpng_image *image = s->image;
    // The library may still warn about indices beyond the palette.
    bool has_warnings_left = s->warnings < s->limits->maximum_warnings;
    if (s->limits->maximum_whole_bytes == 0 || is_interlaced(s) || !has_warnings_left) return false;
    image->bit_depth = png_get_bit_depth(s->png, s->info);
    image->color_type = png_get_color_type(s->png, s->info);
    unsigned bits = (unsigned)(png_get_channels(s->png, s->info) * image->bit_depth);
    uint64_t row_bytes = ((uint64_t)image->width * bits + 7) / 8, total;
    if (__builtin_mul_overflow(row_bytes + 1, (uint64_t)image->height, &total)
        || !cpng_is_unpacked_at_once(total, 0)) {
        return false;
    }
    // The library accepts an image chunk above the limit up to the size of the rows in stored
    // blocks.
    uint64_t longest = s->limits->maximum_chunk_bytes, stored = total + 5 * (total / 32768) + 11;
    if (longest < stored) longest = stored;
    cpng_image_data data;
    // The head of the first chunk has been read.
    if (!cpng_find_image_data(s->input, s->input_length, s->offset - HEAD, longest, &data)) {
        return false;
    }
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
    if (!is_whole) return false;
    s->offset = data.end;
    image->is_whole = true;
    return true;
}

/// Finishes rows that were unpacked in one call.
static void finish_whole(session *s) {
    // The library has not seen the end of the image data, and looks for it unless told to skip such
    // chunks.
    png_set_keep_unknown_chunks(s->png, PNG_HANDLE_CHUNK_NEVER, (png_const_bytep) "IDAT", 1);
    cpng_image *image = s->image;
    check_interruption(s, (image->row_bytes + 1) * image->height);
    if (!s->keeps_rows) return;
    if (cpng_unfilter(image, false) != CCODEC_OK) fail(s, CCODEC_INTERRUPTED, "");
}

static ccodec_status run_read(session *s) {
    uint64_t begin = cinterruption_processor_time();
    if (setjmp(s->jump)) return s->status;
    open_source(s);
    s->image->chunks = valid_chunks(s);
    if (s->colours != NULL) take_colours(s, s->colours);
    if (read_whole(s)) {
        finish_whole(s);
    } else {
        read_rows(s);
    }
    png_read_end(s->png, NULL);
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
    s.limits = limits;
    s.message = message;
    s.image = image;
    s.keeps_rows = keeps_rows;
    s.colours = colours;
    ccodec_status status = run_read(&s);
    png_destroy_read_struct(&s.png, &s.info, NULL);
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
