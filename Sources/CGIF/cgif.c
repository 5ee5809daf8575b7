#include "cgif.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gif_lib.h>

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

// MARK: - Pixels
//
// The codes of frames (GIF89a, appendix F). giflib's own decoder accepts codes that its table does
// not have, and shows other pixels for them.

enum { CGIF_LZW_BITS = 12, CGIF_LZW_CODES = 1 << CGIF_LZW_BITS };

typedef enum {
    CGIF_LZW_OK = 0,
    /// The file ends before the frame's data does.
    CGIF_LZW_CUT,
    /// The frame's data ends before its last pixel.
    CGIF_LZW_SHORT,
    /// A code that stands for nothing.
    CGIF_LZW_INVALID,
} cgif_lzw_status;

/// The state of one frame; constant in size.
typedef struct {
    const uint8_t *bytes;
    size_t length;
    /// The next byte of the file.
    size_t offset;
    /// The bytes that are left of the current sub-block.
    size_t block;
    uint32_t bit_buffer;
    unsigned bit_count;
    unsigned minimum_bits;
    unsigned bits;
    /// The code that the table gets next.
    unsigned next;
    /// The code before; -1 after a clear code.
    int previous;
    uint8_t first_of_previous;
    /// Pixels of the last code that did not fit into the row, the next one last.
    unsigned waiting;
    uint8_t stack[CGIF_LZW_CODES];
    uint16_t prefixes[CGIF_LZW_CODES];
    uint8_t suffixes[CGIF_LZW_CODES];
} cgif_lzw;

static void clear(cgif_lzw *lzw) {
    lzw->bits = lzw->minimum_bits + 1;
    lzw->next = (1u << lzw->minimum_bits) + 2;
    lzw->previous = -1;
}

/// Begins a frame at its first sub-block. `minimum_bits` is at most 8.
static void cgif_lzw_begin(
    cgif_lzw *lzw, const uint8_t *bytes, size_t length, size_t offset, unsigned minimum_bits) {
    lzw->bytes = bytes;
    lzw->length = length;
    lzw->offset = offset;
    lzw->block = 0;
    lzw->bit_buffer = 0;
    lzw->bit_count = 0;
    lzw->minimum_bits = minimum_bits;
    lzw->first_of_previous = 0;
    lzw->waiting = 0;
    clear(lzw);
}

/// Enters the next sub-block.
static cgif_lzw_status next_block(cgif_lzw *lzw) {
    if (lzw->offset >= lzw->length) return CGIF_LZW_CUT;
    size_t count = lzw->bytes[lzw->offset];
    // An empty one ends the list, and stays the next.
    if (count == 0) return CGIF_LZW_SHORT;
    if (count > lzw->length - lzw->offset - 1) return CGIF_LZW_CUT;
    lzw->offset += 1;
    lzw->block = count;
    return CGIF_LZW_OK;
}

static cgif_lzw_status next_code(cgif_lzw *lzw, unsigned *code) {
    while (lzw->bit_count < lzw->bits) {
        if (lzw->block == 0) {
            cgif_lzw_status status = next_block(lzw);
            if (status != CGIF_LZW_OK) return status;
        }
        lzw->bit_buffer |= (uint32_t)lzw->bytes[lzw->offset] << lzw->bit_count;
        lzw->bit_count += 8;
        lzw->offset += 1;
        lzw->block -= 1;
    }
    *code = lzw->bit_buffer & ((1u << lzw->bits) - 1);
    lzw->bit_buffer >>= lzw->bits;
    lzw->bit_count -= lzw->bits;
    return CGIF_LZW_OK;
}

/// Puts the pixels of a code on the stack, the first on top, and completes the table's next entry.
static cgif_lzw_status expand(cgif_lzw *lzw, unsigned code) {
    unsigned clear_code = 1u << lzw->minimum_bits;
    // The entry that this code completes is known but for its last pixel.
    bool is_next = code == lzw->next && lzw->next < CGIF_LZW_CODES && lzw->previous >= 0;
    if (code >= lzw->next && !is_next) return CGIF_LZW_INVALID;
    unsigned count = 0, rest = is_next ? (unsigned)lzw->previous : code;
    if (is_next) lzw->stack[count++] = lzw->first_of_previous;
    // Prefixes are smaller than their codes, so this ends.
    for (; rest > clear_code; rest = lzw->prefixes[rest]) {
        lzw->stack[count++] = lzw->suffixes[rest];
    }
    lzw->stack[count++] = (uint8_t)rest;
    lzw->waiting = count;
    if (lzw->previous >= 0 && lzw->next < CGIF_LZW_CODES) {
        lzw->prefixes[lzw->next] = (uint16_t)lzw->previous;
        lzw->suffixes[lzw->next] = (uint8_t)rest;
        lzw->next += 1;
    }
    lzw->first_of_previous = (uint8_t)rest;
    return CGIF_LZW_OK;
}

/// Decodes the next pixels.
static cgif_lzw_status cgif_lzw_read(cgif_lzw *lzw, uint8_t *row, size_t count) {
    unsigned clear_code = 1u << lzw->minimum_bits;
    for (size_t done = 0;;) {
        while (lzw->waiting > 0 && done < count) row[done++] = lzw->stack[--lzw->waiting];
        if (done == count) return CGIF_LZW_OK;
        unsigned code;
        cgif_lzw_status status = next_code(lzw, &code);
        if (status != CGIF_LZW_OK) return status;
        if (code == clear_code) {
            clear(lzw);
            continue;
        }
        if (code == clear_code + 1) return CGIF_LZW_SHORT;
        status = expand(lzw, code);
        if (status != CGIF_LZW_OK) return status;
        lzw->previous = (int)code;
        if (lzw->next >= 1u << lzw->bits && lzw->bits < CGIF_LZW_BITS) lzw->bits += 1;
    }
}

/// Skips the rest of the frame's sub-blocks; `offset` is then after them.
static cgif_lzw_status cgif_lzw_end(cgif_lzw *lzw) {
    lzw->offset += lzw->block;
    lzw->block = 0;
    cgif_lzw_status status;
    while ((status = next_block(lzw)) == CGIF_LZW_OK) {
        lzw->offset += lzw->block;
        lzw->block = 0;
    }
    if (status == CGIF_LZW_CUT) return status;
    lzw->offset += 1;
    return CGIF_LZW_OK;
}

// MARK: - Records

typedef struct cgif_reader session;

struct cgif_reader {
    const uint8_t *bytes;
    size_t length;
    size_t offset;
    /// Whether a read passed the end.
    bool is_at_end;
    cgif_limits limits;
    GifFileType *file;
    GifPixelType *row;
    size_t row_length;
    /// The control block of the next frame.
    GraphicsControlBlock control;
    uint32_t frames;
    cgif_lzw lzw;
    /// The canvas to which `cgif_next` cuts frames.
    uint32_t canvas_width;
    uint32_t canvas_height;
    /// The current call's.
    char *message;
};

static const GraphicsControlBlock no_control = {
    .DisposalMode = DISPOSAL_UNSPECIFIED, .TransparentColor = NO_TRANSPARENT_COLOR};

static int on_read(GifFileType *file, GifByteType *target, int count) {
    session *s = file->UserData;
    size_t rest = s->length - s->offset;
    size_t taken = count < 0 ? 0 : (size_t)count < rest ? (size_t)count : rest;
    if (taken < (size_t)count) s->is_at_end = true;
    memcpy(target, s->bytes + s->offset, taken);
    s->offset += taken;
    return (int)taken;
}

static ccodec_status fail(session *s, ccodec_status status, const char *text) {
    if (s->is_at_end) {
        status = CCODEC_TRUNCATED;
        text = "the data ends before the image does";
    }
    if (s->frames > 1 && status == CCODEC_CORRUPT) {
        snprintf(s->message, CCODEC_MESSAGE_BYTES, "frame %u: %s", (unsigned)s->frames, text);
    } else {
        snprintf(s->message, CCODEC_MESSAGE_BYTES, "%s", text);
    }
    return status;
}

static ccodec_status fail_as_library(session *s) {
    if (s->file->Error == D_GIF_ERR_NOT_ENOUGH_MEM) {
        return fail(s, CCODEC_OUT_OF_MEMORY, "no memory for the decoder");
    }
    switch (s->file->Error) {
    case D_GIF_ERR_NO_COLOR_MAP: return fail(s, CCODEC_CORRUPT, "a palette is missing");
    case D_GIF_ERR_WRONG_RECORD: return fail(s, CCODEC_CORRUPT, "a block of an unknown kind");
    default: return fail(s, CCODEC_CORRUPT, "a damaged block");
    }
}

static ccodec_status fail_in_pixels(session *s, cgif_lzw_status status) {
    s->is_at_end = status == CGIF_LZW_CUT;
    return fail(
        s, CCODEC_CORRUPT,
        status == CGIF_LZW_INVALID ? "an LZW code that stands for nothing"
                                   : "the data ends before the last pixel");
}

/// Returns the picture's row for a number in the order of an interlaced frame: every eighth row
/// first, then the rows halfway between, and so on (GIF89a, appendix E).
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

/// Puts a row of the frame on the canvas. The frame's corner is at `left` and `top`.
static void put_row(
    const session *s, const ccodec_picture *canvas, uint32_t left, uint32_t top, uint32_t y) {
    const GifImageDesc *frame = &s->file->Image;
    const ColorMapObject *map = frame->ColorMap != NULL ? frame->ColorMap : s->file->SColorMap;
    if (top + y >= canvas->height) return;
    uint8_t *target = canvas->pixels + (size_t)(top + y) * canvas->stride;
    for (uint32_t x = 0; x < (uint32_t)frame->Width && left + x < canvas->width; x++) {
        int index = s->row[x];
        uint8_t *pixel = target + (size_t)(left + x) * (size_t)canvas->channels;
        if (canvas->channels == 4) {
            if (index == s->control.TransparentColor) continue;
            pixel[3] = 255;
        }
        // Indices beyond the palette are black.
        if (map == NULL || index >= map->ColorCount) continue;
        pixel[0] = map->Colors[index].Red;
        pixel[1] = map->Colors[index].Green;
        pixel[2] = map->Colors[index].Blue;
    }
}

/// The part of a side that lies within the canvas.
static uint32_t shown(uint32_t start, uint32_t length, uint32_t limit) {
    if (start >= limit) return 0;
    return length < limit - start ? length : limit - start;
}

/// Reads a frame. Its pixels are put on the canvas, or into new rows of `kept`.
static ccodec_status read_frame(session *s, const ccodec_picture *canvas, cgif_frame *kept) {
    s->frames += 1;
    if (s->frames > s->limits.maximum_frames) return fail(s, CCODEC_LIMIT, "too many frames");
    if (DGifGetImageHeader(s->file) != GIF_OK) return fail_as_library(s);
    const GifImageDesc *frame = &s->file->Image;
    uint32_t width = (uint32_t)frame->Width, height = (uint32_t)frame->Height;
    if (width == 0 || height == 0) return fail(s, CCODEC_CORRUPT, "a frame without pixels");
    uint32_t left = (uint32_t)frame->Left, top = (uint32_t)frame->Top;
    ccodec_picture own;
    if (kept != NULL) {
        // Only the visible part, since a frame may be far larger than the canvas. A frame beyond
        // the canvas becomes one transparent pixel.
        uint32_t shown_width = shown(left, width, s->canvas_width);
        uint32_t shown_height = shown(top, height, s->canvas_height);
        bool is_shown = shown_width > 0 && shown_height > 0;
        kept->x = left;
        kept->y = top;
        kept->width = is_shown ? shown_width : 1;
        kept->height = is_shown ? shown_height : 1;
        size_t stride = (size_t)kept->width * 4 + 1;
        kept->rows = calloc(kept->height, stride);
        if (kept->rows == NULL) return fail(s, CCODEC_OUT_OF_MEMORY, "no memory for a frame");
        kept->delay_centiseconds = (uint32_t)s->control.DelayTime;
        kept->disposal = s->control.DisposalMode;
        own = (ccodec_picture){kept->rows + 1, stride, kept->width, kept->height, 4};
        canvas = is_shown ? &own : NULL;
        left = top = 0;
    }
    if (width > s->row_length) {
        free(s->row);
        s->row_length = 0;
        s->row = malloc(width);
        if (s->row == NULL) return fail(s, CCODEC_OUT_OF_MEMORY, "no memory for a row");
        s->row_length = width;
    }
    // The last byte that the library has read is the minimum code size.
    cgif_lzw_begin(&s->lzw, s->bytes, s->length, s->offset, s->bytes[s->offset - 1]);
    cgif_lzw_status status;
    for (uint32_t number = 0; number < height; number++) {
        status = cgif_lzw_read(&s->lzw, s->row, width);
        if (status != CGIF_LZW_OK) return fail_in_pixels(s, status);
        if (cinterruption_after(s->limits.interruption, width)) {
            return fail(s, CCODEC_INTERRUPTED, "");
        }
        if (canvas != NULL) {
            put_row(s, canvas, left, top, row_at(number, height, frame->Interlace));
        }
    }
    status = cgif_lzw_end(&s->lzw);
    if (status != CGIF_LZW_OK) return fail_in_pixels(s, status);
    s->offset = s->lzw.offset;
    s->control = no_control;
    return CCODEC_OK;
}

static ccodec_status read_extension(session *s) {
    int code = 0;
    GifByteType *block = NULL;
    if (DGifGetExtension(s->file, &code, &block) != GIF_OK) return fail_as_library(s);
    while (block != NULL) {
        // A block begins with its length.
        GraphicsControlBlock control;
        if (code == GRAPHICS_EXT_FUNC_CODE
            && DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
            s->control = control;
        }
        if (cinterruption_after(s->limits.interruption, 256)) {
            return fail(s, CCODEC_INTERRUPTED, "");
        }
        if (DGifGetExtensionNext(s->file, &block) != GIF_OK) return fail_as_library(s);
    }
    return CCODEC_OK;
}

/// Reads on to the end of the next frame, or of the file.
static ccodec_status read_records(
    session *s, const ccodec_picture *canvas, cgif_frame *kept, bool *is_end) {
    for (*is_end = false;;) {
        // Only the trailer is missing. The caller decides, since it knows the blocks.
        if (s->frames > 0 && s->offset == s->length) {
            *is_end = true;
            return CCODEC_OK;
        }
        GifRecordType type = UNDEFINED_RECORD_TYPE;
        if (DGifGetRecordType(s->file, &type) != GIF_OK) return fail_as_library(s);
        ccodec_status status = CCODEC_OK;
        switch (type) {
        case IMAGE_DESC_RECORD_TYPE: status = read_frame(s, canvas, kept); break;
        case EXTENSION_RECORD_TYPE: status = read_extension(s); break;
        case TERMINATE_RECORD_TYPE:
            *is_end = true;
            return s->frames > 0 ? CCODEC_OK : fail(s, CCODEC_CORRUPT, "no frames");
        default: return fail(s, CCODEC_CORRUPT, "a block of an unknown kind");
        }
        if (status != CCODEC_OK) return status;
        if (cinterruption_after(s->limits.interruption, 256)) {
            return fail(s, CCODEC_INTERRUPTED, "");
        }
        if (type == IMAGE_DESC_RECORD_TYPE) return CCODEC_OK;
    }
}

static ccodec_status begin(
    session *s, const uint8_t *bytes, size_t length, const cgif_limits *limits, char *message) {
    memset(s, 0, sizeof *s);
    s->bytes = bytes;
    s->length = length;
    s->limits = *limits;
    s->message = message;
    s->control = no_control;
    message[0] = 0;
    int error = 0;
    s->file = DGifOpen(s, on_read, &error);
    if (s->file != NULL) return CCODEC_OK;
    return error == D_GIF_ERR_NOT_ENOUGH_MEM
        ? fail(s, CCODEC_OUT_OF_MEMORY, "no memory for the decoder")
        : fail(s, CCODEC_CORRUPT, "a damaged header");
}

static void end(session *s) {
    int error = 0;
    DGifCloseFile(s->file, &error);
    free(s->row);
}

ccodec_status cgif_decode(
    const uint8_t *bytes, size_t length, const cgif_limits *limits, const ccodec_picture *canvas,
    char message[CCODEC_MESSAGE_BYTES]) {
    session s;
    ccodec_status status = begin(&s, bytes, length, limits, message);
    if (status != CCODEC_OK) return status;
    bool is_end = false;
    while (status == CCODEC_OK && !is_end) {
        status = read_records(&s, s.frames == 0 ? canvas : NULL, NULL, &is_end);
    }
    end(&s);
    if (status == CCODEC_OK && limits->interruption != NULL
        && cinterruption_look(limits->interruption)) {
        return CCODEC_INTERRUPTED;
    }
    return status;
}

ccodec_status cgif_open(
    const uint8_t *bytes, size_t length, uint32_t width, uint32_t height,
    const cgif_limits *limits, char message[CCODEC_MESSAGE_BYTES], cgif_reader **reader) {
    *reader = NULL;
    cgif_reader *made = malloc(sizeof *made);
    if (made == NULL) return CCODEC_OUT_OF_MEMORY;
    ccodec_status status = begin(made, bytes, length, limits, message);
    made->canvas_width = width;
    made->canvas_height = height;
    if (status == CCODEC_OK) {
        *reader = made;
    } else {
        free(made);
    }
    return status;
}

ccodec_status cgif_next(
    cgif_reader *reader, cgif_frame *frame, char message[CCODEC_MESSAGE_BYTES]) {
    memset(frame, 0, sizeof *frame);
    reader->message = message;
    bool is_end = false;
    ccodec_status status = read_records(reader, NULL, frame, &is_end);
    if (status == CCODEC_OK) return CCODEC_OK;
    free(frame->rows);
    frame->rows = NULL;
    return status;
}

void cgif_close(cgif_reader *reader) {
    end(reader);
    free(reader);
}

const char *cgif_library_version(void) {
    return TEXT(GIFLIB_MAJOR) "." TEXT(GIFLIB_MINOR) "." TEXT(GIFLIB_RELEASE);
}
