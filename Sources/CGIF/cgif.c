#include "cgif.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gif_lib.h>

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

typedef struct {
    const uint8_t *bytes;
    size_t length;
    size_t offset;
    /// Whether a read passed the end.
    bool is_at_end;
    const cgif_limits *limits;
    GifFileType *file;
    GifPixelType *row;
    size_t row_length;
    /// The transparent index of the next frame; -1 for none.
    int transparent;
    uint64_t pixels;
    uint32_t frames;
    char *message;
} session;

static int on_read(GifFileType *file, GifByteType *target, int count) {
    session *s = file->UserData;
    size_t rest = s->length - s->offset;
    size_t taken = count < 0 ? 0 : (size_t)count < rest ? (size_t)count : rest;
    if (taken < (size_t)count) s->is_at_end = true;
    memcpy(target, s->bytes + s->offset, taken);
    s->offset += taken;
    return (int)taken;
}

static cgif_status fail(session *s, cgif_status status, const char *text) {
    if (s->is_at_end) {
        status = CGIF_TRUNCATED;
        text = "the data ends before the image does";
    }
    if (s->frames > 1 && status == CGIF_CORRUPT) {
        snprintf(s->message, CGIF_MESSAGE_BYTES, "frame %u: %s", (unsigned)s->frames, text);
    } else {
        snprintf(s->message, CGIF_MESSAGE_BYTES, "%s", text);
    }
    return status;
}

static cgif_status fail_as_library(session *s) {
    if (s->file->Error == D_GIF_ERR_NOT_ENOUGH_MEM) {
        return fail(s, CGIF_OUT_OF_MEMORY, "no memory for the decoder");
    }
    const char *text = GifErrorString(s->file->Error);
    return fail(s, CGIF_CORRUPT, text == NULL ? "damaged data" : text);
}

/// Returns the row of an interlaced frame by its number: every eighth, the ones between, and so on
/// (GIF89a, appendix E).
static uint32_t row_at(uint32_t number, uint32_t height, bool is_interlaced) {
    if (!is_interlaced) return number;
    static const uint32_t first[] = {0, 4, 2, 1}, step[] = {8, 8, 4, 2};
    for (int pass = 0; pass < 4; pass++) {
        uint32_t rows = height <= first[pass] ? 0 : (height - first[pass] - 1) / step[pass] + 1;
        if (number < rows) return first[pass] + number * step[pass];
        number -= rows;
    }
    return height;
}

static void put_row(const session *s, const cgif_canvas *canvas, uint32_t y) {
    const GifImageDesc *frame = &s->file->Image;
    const ColorMapObject *map = frame->ColorMap != NULL ? frame->ColorMap : s->file->SColorMap;
    uint32_t top = (uint32_t)frame->Top, left = (uint32_t)frame->Left;
    if (top + y >= canvas->height) return;
    uint8_t *target = canvas->first + (size_t)(top + y) * canvas->stride;
    for (uint32_t x = 0; x < (uint32_t)frame->Width && left + x < canvas->width; x++) {
        int index = s->row[x];
        uint8_t *pixel = target + (size_t)(left + x) * (size_t)canvas->channels;
        if (canvas->channels == 4) {
            if (index == s->transparent) continue;
            pixel[3] = 255;
        }
        // Indices beyond the palette are black.
        if (map == NULL || index >= map->ColorCount) continue;
        pixel[0] = map->Colors[index].Red;
        pixel[1] = map->Colors[index].Green;
        pixel[2] = map->Colors[index].Blue;
    }
}

static cgif_status read_frame(session *s, const cgif_canvas *canvas) {
    s->frames += 1;
    if (s->frames > s->limits->maximum_frames) return fail(s, CGIF_LIMIT, "too many frames");
    if (DGifGetImageHeader(s->file) != GIF_OK) return fail_as_library(s);
    const GifImageDesc *frame = &s->file->Image;
    uint32_t width = (uint32_t)frame->Width, height = (uint32_t)frame->Height;
    if (width == 0 || height == 0) return fail(s, CGIF_CORRUPT, "a frame without pixels");
    s->pixels += (uint64_t)width * height;
    if (s->pixels > s->limits->maximum_pixels) {
        return fail(s, CGIF_LIMIT, "more pixels in all frames than allowed");
    }
    if (width > s->row_length) {
        free(s->row);
        s->row_length = 0;
        s->row = malloc(width);
        if (s->row == NULL) return fail(s, CGIF_OUT_OF_MEMORY, "no memory for a row");
        s->row_length = width;
    }
    for (uint32_t number = 0; number < height; number++) {
        if (DGifGetLine(s->file, s->row, (int)width) != GIF_OK) return fail_as_library(s);
        if (cinterruption_after(s->limits->interruption, width)) {
            return fail(s, CGIF_INTERRUPTED, "");
        }
        if (canvas != NULL) put_row(s, canvas, row_at(number, height, frame->Interlace));
    }
    s->transparent = -1;
    return CGIF_OK;
}

static cgif_status read_extension(session *s) {
    int code = 0;
    GifByteType *block = NULL;
    if (DGifGetExtension(s->file, &code, &block) != GIF_OK) return fail_as_library(s);
    while (block != NULL) {
        GraphicsControlBlock control;
        // A block begins with its length.
        if (code == GRAPHICS_EXT_FUNC_CODE
            && DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
            s->transparent = control.TransparentColor;
        }
        if (cinterruption_after(s->limits->interruption, 256)) {
            return fail(s, CGIF_INTERRUPTED, "");
        }
        if (DGifGetExtensionNext(s->file, &block) != GIF_OK) return fail_as_library(s);
    }
    return CGIF_OK;
}

static cgif_status read_records(session *s, const cgif_canvas *canvas) {
    for (;;) {
        GifRecordType type = UNDEFINED_RECORD_TYPE;
        if (DGifGetRecordType(s->file, &type) != GIF_OK) return fail_as_library(s);
        cgif_status status = CGIF_OK;
        switch (type) {
        case IMAGE_DESC_RECORD_TYPE:
            status = read_frame(s, s->frames == 0 ? canvas : NULL);
            break;
        case EXTENSION_RECORD_TYPE: status = read_extension(s); break;
        case TERMINATE_RECORD_TYPE:
            return s->frames > 0 ? CGIF_OK : fail(s, CGIF_CORRUPT, "no frames");
        default: return fail(s, CGIF_CORRUPT, "a block of an unknown kind");
        }
        if (status != CGIF_OK) return status;
        if (cinterruption_after(s->limits->interruption, 256)) {
            return fail(s, CGIF_INTERRUPTED, "");
        }
    }
}

cgif_status cgif_decode(
    const uint8_t *bytes, size_t length, const cgif_limits *limits, const cgif_canvas *canvas,
    char message[CGIF_MESSAGE_BYTES]) {
    session s;
    memset(&s, 0, sizeof s);
    s.bytes = bytes;
    s.length = length;
    s.limits = limits;
    s.message = message;
    s.transparent = -1;
    message[0] = 0;
    int error = 0;
    s.file = DGifOpen(&s, on_read, &error);
    if (s.file == NULL) {
        if (error == D_GIF_ERR_NOT_ENOUGH_MEM) {
            return fail(&s, CGIF_OUT_OF_MEMORY, "no memory for the decoder");
        }
        return fail(&s, CGIF_CORRUPT, "a damaged header");
    }
    cgif_status status = read_records(&s, canvas);
    DGifCloseFile(s.file, &error);
    free(s.row);
    if (status == CGIF_OK && limits->interruption != NULL
        && cinterruption_look(limits->interruption)) {
        return CGIF_INTERRUPTED;
    }
    return status;
}

const char *cgif_library_version(void) {
    return TEXT(GIFLIB_MAJOR) "." TEXT(GIFLIB_MINOR) "." TEXT(GIFLIB_RELEASE);
}
