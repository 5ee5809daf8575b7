#include "cgif.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <gif_lib.h>

// MARK: - Palettes

/// The pixels of a cell, or those nearest to a colour.
typedef struct {
    uint64_t count, red, green, blue;
} pixel_sum;

enum { mostColors = 256, cells = 1 << 15, rounds = 3 };

/// A palette as numbers. Entries beyond its colours are far from every colour.
typedef struct {
    float red[mostColors], green[mostColors], blue[mostColors];
} color_table;

static color_table table_of(const GifColorType *colors, int count) {
    color_table t;
    for (int i = 0; i < mostColors; i++) {
        t.red[i] = i < count ? colors[i].Red : 1000;
        t.green[i] = i < count ? colors[i].Green : 1000;
        t.blue[i] = i < count ? colors[i].Blue : 1000;
    }
    return t;
}

/// Returns the first of the nearest colours. Distances are whole numbers below 2²⁴, so floats
/// hold them exactly.
static int nearest(const color_table *t, float red, float green, float blue) {
    float distances[mostColors];
    for (int i = 0; i < mostColors; i++) {
        float r = t->red[i] - red, g = t->green[i] - green, b = t->blue[i] - blue;
        distances[i] = r * r + g * g + b * b;
    }
    // Several minima, since one would wait for each comparison.
    float least[8];
    for (int k = 0; k < 8; k++) least[k] = distances[k];
    for (int i = 8; i < mostColors; i += 8) {
        for (int k = 0; k < 8; k++) {
            least[k] = distances[i + k] < least[k] ? distances[i + k] : least[k];
        }
    }
    float minimum = least[0];
    for (int k = 1; k < 8; k++) minimum = least[k] < minimum ? least[k] : minimum;
    int place = 0;
    while (distances[place] != minimum) place++;
    return place;
}

static uint8_t mean(uint64_t sum, uint64_t count) { return (uint8_t)((sum + count / 2) / count); }

/// Returns whether a colour has moved.
static bool move(GifColorType *colors, int count, const pixel_sum *filled, size_t filled_count) {
    color_table t = table_of(colors, count);
    pixel_sum sums[mostColors] = {0};
    for (size_t i = 0; i < filled_count; i++) {
        const pixel_sum *cell = &filled[i];
        int place = nearest(
            &t, mean(cell->red, cell->count), mean(cell->green, cell->count),
            mean(cell->blue, cell->count));
        sums[place].count += cell->count;
        sums[place].red += cell->red;
        sums[place].green += cell->green;
        sums[place].blue += cell->blue;
    }
    bool has_moved = false;
    for (int i = 0; i < count; i++) {
        const pixel_sum *s = &sums[i];
        if (s->count == 0) continue;
        GifColorType color = {
            mean(s->red, s->count), mean(s->green, s->count), mean(s->blue, s->count)};
        has_moved |= color.Red != colors[i].Red || color.Green != colors[i].Green
            || color.Blue != colors[i].Blue;
        colors[i] = color;
    }
    return has_moved;
}

/// Moves each colour of a palette to the mean of the pixels that are nearest to it, three times
/// (Lloyd's algorithm, over cells of 8 × 8 × 8 colours), and gives every pixel the nearest colour.
///
/// - `red`, `green`, `blue`: `count` samples each.
/// - `colors`: 1 to 256 colours.
/// - `to`: `count` indices.
static ccodec_status refine(
    const uint8_t *red, const uint8_t *green, const uint8_t *blue, size_t count,
    GifColorType *colors, int colors_count, uint8_t *to, cinterruption *interruption) {
    pixel_sum *sums = calloc(cells, sizeof *sums);
    if (sums == NULL) return CCODEC_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        pixel_sum *cell = &sums[(red[i] >> 3) << 10 | (green[i] >> 3) << 5 | blue[i] >> 3];
        cell->count++;
        cell->red += red[i];
        cell->green += green[i];
        cell->blue += blue[i];
    }
    size_t filled = 0;
    for (size_t i = 0; i < cells; i++) {
        if (sums[i].count > 0) sums[filled++] = sums[i];
    }
    bool is_interrupted = false;
    for (int round = 0; round < rounds && !is_interrupted; round++) {
        is_interrupted = cinterruption_after(interruption, filled * mostColors);
        if (!is_interrupted && !move(colors, colors_count, sums, filled)) break;
    }
    free(sums);
    color_table t = table_of(colors, colors_count);
    for (size_t i = 0; i < count && !is_interrupted; i++) {
        bool is_same =
            i > 0 && red[i] == red[i - 1] && green[i] == green[i - 1] && blue[i] == blue[i - 1];
        to[i] = is_same ? to[i - 1] : (uint8_t)nearest(&t, red[i], green[i], blue[i]);
        is_interrupted = !is_same && cinterruption_after(interruption, mostColors);
    }
    return is_interrupted ? CCODEC_INTERRUPTED : CCODEC_OK;
}

// MARK: - Frames

/// A part of a canvas, in pixels; the ends are exclusive.
typedef struct {
    uint32_t left, top, right, bottom;
} rectangle;

typedef struct {
    uint8_t *bytes;
    size_t count;
    size_t capacity;
    size_t maximum;
    /// Whether bytes are missing, which the library may not report.
    bool has_failed;
    bool is_too_large;
} output;

struct cgif_writer {
    GifFileType *file;
    output output;
    uint32_t width;
    uint32_t height;
    cinterruption *interruption;
    /// Red, green, blue and alpha: the canvas before the last frame, and the last frame, which
    /// waits for the next one. Its disposal depends on that.
    uint8_t *shown;
    uint8_t *last;
    bool has_last;
    bool is_first;
    bool has_alpha;
    uint32_t last_delay;
    /// One byte a pixel.
    uint8_t *indices;
    /// Planes of red, green and blue, and the indices of pixels that are reduced; NULL until a
    /// frame has too many colours.
    uint8_t *planes;
};

/// The colours of a frame.
typedef struct {
    GifColorType colors[256];
    int count;
    /// Places of colours, plus 1; 0 for none.
    uint16_t places[1024];
} palette;

static int on_write(GifFileType *file, const GifByteType *bytes, int count) {
    output *o = &((cgif_writer *)file->UserData)->output;
    size_t size = (size_t)count;
    if (size > o->maximum - o->count) {
        o->is_too_large = true;
        o->has_failed = true;
        return 0;
    }
    if (size > o->capacity - o->count) {
        size_t capacity = 2 * o->capacity > o->count + size ? 2 * o->capacity : o->count + size;
        uint8_t *grown = realloc(o->bytes, capacity);
        if (grown == NULL) {
            o->has_failed = true;
            return 0;
        }
        o->bytes = grown;
        o->capacity = capacity;
    }
    memcpy(o->bytes + o->count, bytes, size);
    o->count += size;
    return count;
}

static const uint8_t transparent[4];

/// Whether a pixel of the last frame differs from the canvas.
static bool is_drawn(const cgif_writer *w, size_t at) {
    return memcmp(w->last + 4 * at, w->shown + 4 * at, 4) != 0;
}

static bool is_empty(const rectangle *r) { return r->left >= r->right; }

static void include(rectangle *r, uint32_t x, uint32_t y) {
    if (is_empty(r)) {
        *r = (rectangle){x, y, x + 1, y + 1};
        return;
    }
    if (x < r->left) r->left = x;
    if (x >= r->right) r->right = x + 1;
    if (y < r->top) r->top = y;
    if (y >= r->bottom) r->bottom = y + 1;
}

/// Returns the place of a colour, which is added if it is new; -1 if there are `most` others.
static int place_of(palette *p, const uint8_t *pixel, int most) {
    uint32_t hash =
        (((uint32_t)pixel[0] << 16 | (uint32_t)pixel[1] << 8 | pixel[2]) * 2654435761u) >> 22;
    for (;; hash = (hash + 1) & 1023) {
        int place = p->places[hash] - 1;
        if (place < 0) {
            if (p->count == most) return -1;
            p->colors[p->count] = (GifColorType){pixel[0], pixel[1], pixel[2]};
            p->places[hash] = (uint16_t)++p->count;
            return p->count - 1;
        }
        const GifColorType *color = &p->colors[place];
        if (color->Red == pixel[0] && color->Green == pixel[1] && color->Blue == pixel[2]) {
            return place;
        }
    }
}

/// Gives every drawn pixel the nearest of at most `most` colours.
static ccodec_status reduce(cgif_writer *w, const rectangle *part, int most, palette *p) {
    size_t pixels = (size_t)w->width * w->height;
    if (w->planes == NULL) w->planes = malloc(4 * pixels);
    if (w->planes == NULL) return CCODEC_OUT_OF_MEMORY;
    uint8_t *red = w->planes, *green = red + pixels, *blue = green + pixels, *to = blue + pixels;
    size_t count = 0;
    for (uint32_t y = part->top; y < part->bottom; y++) {
        for (uint32_t x = part->left; x < part->right; x++) {
            size_t at = (size_t)y * w->width + x;
            if (!is_drawn(w, at)) continue;
            red[count] = w->last[4 * at];
            green[count] = w->last[4 * at + 1];
            blue[count] = w->last[4 * at + 2];
            count++;
        }
    }
    int size = most;
    // The library sorts by an axis that all threads share.
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    int is_reduced =
        GifQuantizeBuffer((unsigned)count, 1, &size, red, green, blue, to, p->colors);
    pthread_mutex_unlock(&mutex);
    if (is_reduced != GIF_OK) return CCODEC_OUT_OF_MEMORY;
    p->count = size;
    ccodec_status status =
        refine(red, green, blue, count, p->colors, size, to, w->interruption);
    if (status != CCODEC_OK) return status;
    for (uint32_t y = part->top; y < part->bottom; y++) {
        for (uint32_t x = part->left; x < part->right; x++) {
            size_t at = (size_t)y * w->width + x;
            if (is_drawn(w, at)) w->indices[at] = *to++;
        }
    }
    return CCODEC_OK;
}

/// Gives every pixel of the part an index. Pixels that are shown already become transparent.
///
/// - `needs_index`: whether there must be a transparent index.
/// - `transparent_index`: -1 if there is none.
static ccodec_status make_indices(
    cgif_writer *w, const rectangle *part, bool needs_index, palette *p, int *transparent_index) {
    bool draws_all = !needs_index;
    for (uint32_t y = part->top; y < part->bottom && draws_all; y++) {
        for (uint32_t x = part->left; x < part->right && draws_all; x++) {
            size_t at = (size_t)y * w->width + x;
            draws_all = is_drawn(w, at);
        }
    }
    int most = draws_all ? 256 : 255;
    memset(p, 0, sizeof *p);
    bool fits = true;
    for (uint32_t y = part->top; y < part->bottom && fits; y++) {
        if (cinterruption_after(w->interruption, 4 * (size_t)w->width)) return CCODEC_INTERRUPTED;
        for (uint32_t x = part->left; x < part->right && fits; x++) {
            size_t at = (size_t)y * w->width + x;
            if (!is_drawn(w, at)) continue;
            int place = place_of(p, w->last + 4 * at, most);
            fits = place >= 0;
            w->indices[at] = (uint8_t)place;
        }
    }
    if (!fits) {
        ccodec_status status = reduce(w, part, most, p);
        if (status != CCODEC_OK) return status;
    }
    *transparent_index = draws_all ? -1 : p->count;
    if (draws_all) return CCODEC_OK;
    for (uint32_t y = part->top; y < part->bottom; y++) {
        for (uint32_t x = part->left; x < part->right; x++) {
            size_t at = (size_t)y * w->width + x;
            if (!is_drawn(w, at)) {
                w->indices[at] = (uint8_t)p->count;
            }
        }
    }
    p->count++;
    return CCODEC_OK;
}

/// The reason for which giflib could not write.
static ccodec_status failure(const cgif_writer *w) {
    return w->output.is_too_large ? CCODEC_LIMIT : CCODEC_OUT_OF_MEMORY;
}

static ccodec_status put(
    cgif_writer *w, const rectangle *part, const palette *p, int transparent_index,
    bool is_cleared) {
    GraphicsControlBlock control = {
        .DisposalMode = is_cleared ? DISPOSE_BACKGROUND : DISPOSE_DO_NOT,
        .DelayTime = (int)w->last_delay,
        .TransparentColor = transparent_index};
    GifByteType block[4];
    EGifGCBToExtension(&control, block);
    int bits = 1;
    while (1 << bits < p->count) bits++;
    ColorMapObject *map = GifMakeMapObject(1 << bits, p->colors);
    if (map == NULL) return CCODEC_OUT_OF_MEMORY;
    uint32_t width = part->right - part->left;
    bool is_written =
        EGifPutExtension(w->file, GRAPHICS_EXT_FUNC_CODE, sizeof block, block) == GIF_OK
        && EGifPutImageDesc(
               w->file, (int)part->left, (int)part->top, (int)width,
               (int)(part->bottom - part->top), false, map)
            == GIF_OK;
    GifFreeMapObject(map);
    for (uint32_t y = part->top; y < part->bottom && is_written; y++) {
        if (cinterruption_after(w->interruption, width)) return CCODEC_INTERRUPTED;
        uint8_t *row = w->indices + (size_t)y * w->width + part->left;
        is_written = EGifPutLine(w->file, row, (int)width) == GIF_OK;
    }
    return is_written && !w->output.has_failed ? CCODEC_OK : failure(w);
}

/// Writes the last frame. `next` is the canvas after it; NULL at the end.
static ccodec_status put_last(cgif_writer *w, const uint8_t *next) {
    // The pixels that the next frame makes transparent have to be cleared after this one.
    rectangle cleared = {0, 0, 0, 0}, part = {0, 0, 0, 0};
    for (uint32_t y = 0; y < w->height; y++) {
        if (cinterruption_after(w->interruption, 8 * (size_t)w->width)) return CCODEC_INTERRUPTED;
        for (uint32_t x = 0; x < w->width; x++) {
            size_t at = (size_t)y * w->width + x;
            if (next != NULL && w->last[4 * at + 3] != 0 && next[4 * at + 3] == 0) {
                include(&cleared, x, y);
                include(&part, x, y);
            } else if (is_drawn(w, at)) {
                include(&part, x, y);
            }
        }
    }
    // Some readers take the size of the first frame for that of the canvas.
    if (w->is_first) part = (rectangle){0, 0, w->width, w->height};
    if (is_empty(&part)) part = (rectangle){0, 0, 1, 1};
    palette p;
    int transparent_index = -1;
    bool is_cleared = !is_empty(&cleared);
    // Pillow and libvips clear a frame to a colour unless it has a transparent index; Pillow also
    // unless the first frame has one.
    bool needs_index = is_cleared || (w->is_first && w->has_alpha);
    ccodec_status status = make_indices(w, &part, needs_index, &p, &transparent_index);
    if (status == CCODEC_OK) status = put(w, &part, &p, transparent_index, is_cleared);
    if (status != CCODEC_OK) return status;
    memcpy(w->shown, w->last, 4 * (size_t)w->width * w->height);
    for (uint32_t y = part.top; is_cleared && y < part.bottom; y++) {
        memset(
            w->shown + 4 * ((size_t)y * w->width + part.left), 0,
            4 * (size_t)(part.right - part.left));
    }
    w->is_first = false;
    return CCODEC_OK;
}

ccodec_status cgif_begin(
    uint32_t width, uint32_t height, uint32_t plays, size_t maximum,
    cinterruption *interruption, cgif_writer **writer) {
    *writer = NULL;
    cgif_writer *w = calloc(1, sizeof *w);
    if (w == NULL) return CCODEC_OUT_OF_MEMORY;
    size_t pixels = (size_t)width * height;
    w->width = width;
    w->height = height;
    w->output.maximum = maximum < SIZE_MAX / 4 ? maximum : SIZE_MAX / 4;
    w->interruption = interruption;
    w->is_first = true;
    w->shown = calloc(pixels, 4);
    w->last = malloc(4 * pixels);
    w->indices = malloc(pixels);
    int error = 0;
    w->file = EGifOpen(w, on_write, &error);
    bool is_begun = w->shown != NULL && w->last != NULL && w->indices != NULL && w->file != NULL;
    if (is_begun) {
        EGifSetGifVersion(w->file, true);
        is_begun = EGifPutScreenDesc(w->file, (int)width, (int)height, 8, 0, NULL) == GIF_OK;
    }
    if (is_begun && plays != 1) {
        // The number of repetitions, not of plays.
        uint32_t repetitions = plays == 0 || plays > 65536 ? 0 : plays - 1;
        uint8_t loop[3] = {1, (uint8_t)repetitions, (uint8_t)(repetitions >> 8)};
        is_begun = EGifPutExtensionLeader(w->file, APPLICATION_EXT_FUNC_CODE) == GIF_OK
            && EGifPutExtensionBlock(w->file, 11, "NETSCAPE2.0") == GIF_OK
            && EGifPutExtensionBlock(w->file, sizeof loop, loop) == GIF_OK
            && EGifPutExtensionTrailer(w->file) == GIF_OK;
    }
    if (!is_begun) {
        ccodec_status status = failure(w);
        cgif_discard(w);
        return status;
    }
    *writer = w;
    return CCODEC_OK;
}

ccodec_status cgif_add(
    cgif_writer *w, const uint8_t *pixels, size_t stride, int channels,
    uint32_t delay_centiseconds) {
    size_t count = 4 * (size_t)w->width * w->height;
    uint8_t *next = malloc(count);
    if (next == NULL) return CCODEC_OUT_OF_MEMORY;
    for (uint32_t y = 0; y < w->height; y++) {
        const uint8_t *from = pixels + y * stride;
        uint8_t *to = next + 4 * (size_t)y * w->width;
        for (uint32_t x = 0; x < w->width; x++, from += channels, to += 4) {
            if (channels == 4 && from[3] < 128) {
                memcpy(to, transparent, 4);
            } else {
                memcpy(to, from, 3);
                to[3] = 255;
            }
        }
    }
    w->has_alpha = channels == 4;
    ccodec_status status = w->has_last ? put_last(w, next) : CCODEC_OK;
    free(w->last);
    w->last = next;
    w->last_delay = delay_centiseconds;
    w->has_last = true;
    return status;
}

ccodec_status cgif_end(cgif_writer *w, uint8_t **bytes, size_t *length) {
    *bytes = NULL;
    *length = 0;
    ccodec_status status = w->has_last ? put_last(w, NULL) : CCODEC_OK;
    if (status != CCODEC_OK) return status;
    int error = 0;
    int is_closed = EGifCloseFile(w->file, &error);
    w->file = NULL;
    if (is_closed != GIF_OK || w->output.has_failed) return failure(w);
    *bytes = w->output.bytes;
    *length = w->output.count;
    w->output.bytes = NULL;
    return CCODEC_OK;
}

void cgif_discard(cgif_writer *w) {
    int error = 0;
    if (w->file != NULL) EGifCloseFile(w->file, &error);
    free(w->output.bytes);
    free(w->shown);
    free(w->last);
    free(w->indices);
    free(w->planes);
    free(w);
}
