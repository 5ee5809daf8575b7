#include "creference.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

typedef struct {
    png_structp png;
    png_infop info;
    jmp_buf jump;
    creference_picture *picture;
    const uint8_t *input;
    size_t remaining;
} session;

static void note(creference_picture *picture, creference_verdict verdict, const char *text) {
    if (verdict <= picture->verdict) return;
    picture->verdict = verdict;
    snprintf(picture->message, CREFERENCE_MESSAGE_BYTES, "%s", text);
}

static _Noreturn void end(session *s, creference_verdict verdict, const char *text) {
    note(s->picture, verdict, text);
    longjmp(s->jump, 1);
}

static _Noreturn void on_error(png_structp png, png_const_charp text) {
    end(png_get_error_ptr(png), CREFERENCE_REFUSED, text);
}

static void on_warning(png_structp png, png_const_charp text) {
    session *s = png_get_error_ptr(png);
    // libpng judges profiles more strictly than other programs.
    if (strncmp(text, "iCCP", 4) != 0) note(s->picture, CREFERENCE_WARNED, text);
}

static void on_read(png_structp png, png_bytep bytes, size_t count) {
    session *s = png_get_io_ptr(png);
    if (count > s->remaining) png_error(png, "the data ends");
    memcpy(bytes, s->input, count);
    s->input += count;
    s->remaining -= count;
}

static uint32_t load_32(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/// Exchanges tRNS and a suggested palette that directly follows it, in a copy: libpng before 1.6.47
/// forgets the transparent colour there. Returns NULL for other files, and without memory.
static uint8_t *reordered(const uint8_t *input, size_t length) {
    enum { HEADER_END = 33, COLOR_TYPE = 25, FRAME = 12 };
    for (size_t offset = HEADER_END; length > offset && length - offset >= 2 * FRAME;) {
        size_t bytes = load_32(input + offset) + (size_t)FRAME;
        if (bytes > length - offset - FRAME) return NULL;
        const uint8_t *next = input + offset + bytes;
        if (memcmp(input + offset + 4, "tRNS", 4) == 0 && memcmp(next + 4, "PLTE", 4) == 0
            && (input[COLOR_TYPE] & 3) == PNG_COLOR_MASK_COLOR) {
            size_t other = load_32(next) + (size_t)FRAME;
            if (other > length - offset - bytes) return NULL;
            uint8_t *copy = malloc(length);
            if (copy == NULL) return NULL;
            memcpy(copy, input, length);
            memcpy(copy + offset, next, other);
            memcpy(copy + offset + other, input + offset, bytes);
            return copy;
        }
        offset += bytes;
    }
    return NULL;
}

static void decode(session *s, uint64_t maximum_pixels) {
    creference_picture *picture = s->picture;
    if (setjmp(s->jump)) return;
    s->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, s, on_error, on_warning);
    if (s->png != NULL) s->info = png_create_info_struct(s->png);
    if (s->info == NULL) end(s, CREFERENCE_LIMIT, "no memory");
    png_structp png = s->png;
    png_set_read_fn(png, s, on_read);
    // The format's own limit, instead of a million pixels.
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_read_info(png, s->info);
    picture->width = png_get_image_width(png, s->info);
    picture->height = png_get_image_height(png, s->info);
    if ((uint64_t)picture->width * picture->height > maximum_pixels) {
        end(s, CREFERENCE_LIMIT, "more pixels than allowed");
    }
    png_set_expand_16(png);
    png_set_gray_to_rgb(png);
    png_set_add_alpha(png, 0xFFFF, PNG_FILLER_AFTER);
    const uint16_t order = 1;
    if (*(const uint8_t *)&order == 1) png_set_swap(png);
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, s->info);
    picture->channels = png_get_channels(png, s->info);
    size_t row_bytes = png_get_rowbytes(png, s->info);
    if (row_bytes != (size_t)picture->width * 8) end(s, CREFERENCE_REFUSED, "no RGBA of 16 bits");
    picture->length = row_bytes * picture->height;
    picture->pixels = calloc(picture->length, 1);
    if (picture->pixels == NULL) end(s, CREFERENCE_LIMIT, "no memory");
    for (int pass = 0; pass < passes; pass++) {
        for (uint32_t y = 0; y < picture->height; y++) {
            png_read_row(png, picture->pixels + y * row_bytes, NULL);
        }
    }
    png_read_end(png, NULL);
}

void creference_decode_png(
    const uint8_t *source, size_t length, uint64_t maximum_pixels, creference_picture *picture) {
    memset(picture, 0, sizeof *picture);
    session s;
    memset(&s, 0, sizeof s);
    s.picture = picture;
    uint8_t *copy = reordered(source, length);
    s.input = copy != NULL ? copy : source;
    s.remaining = length;
    decode(&s, maximum_pixels);
    png_destroy_read_struct(&s.png, &s.info, NULL);
    free(copy);
    if (picture->verdict >= CREFERENCE_REFUSED) creference_free(picture);
}
