#include "ctiff_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/// The samples of a run of pixels, as libtiff decodes them: packed from the high bits, or whole
/// numbers of 16 and 32 bits in the machine's order.
typedef struct {
    const uint8_t *bytes;
    uint16_t bits;
    /// Bits that have been read.
    uint64_t position;
} sample_reader;

static uint32_t next_sample(sample_reader *reader) {
    uint64_t place = reader->position;
    reader->position += reader->bits;
    const uint8_t *bytes = reader->bytes + place / 8;
    switch (reader->bits) {
    case 8: return *bytes;
    case 16: {
        uint16_t value;
        memcpy(&value, bytes, sizeof value);
        return value;
    }
    case 24: {
        // Three bytes in the machine's order, which is little-endian.
        return (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
    }
    case 32: {
        uint32_t value;
        memcpy(&value, bytes, sizeof value);
        return value;
    }
    default: {
        uint64_t value = 0;
        for (uint16_t bit = 0; bit < reader->bits; bit++, place++) {
            value = value << 1 | (reader->bytes[place / 8] >> (7 - place % 8) & 1);
        }
        return (uint32_t)value;
    }
    }
}

/// Brings a sample to the depth of the rows.
static uint32_t scaled(uint32_t sample, uint16_t bits, int depth) {
    if (bits == depth) return sample;
    if (bits > depth) return sample >> (bits - depth);
    uint64_t most = ((uint64_t)1 << bits) - 1, wanted = ((uint64_t)1 << depth) - 1;
    return (uint32_t)((sample * wanted + most / 2) / most);
}

typedef struct {
    ctiff_file *file;
    const ccodec_header *header;
    uint8_t *rows;
    /// The layout of the rows while they are made.
    size_t stride;
    int channels;
    /// Red, green and blue of each index, of 8 bits.
    uint8_t (*palette)[3];
} page;

/// The place in the rows' pixels of a sample of the file; negative for none.
static int channel_of(const ctiff_file *file, uint32_t sample, int channels) {
    if (file->alpha && sample == file->alpha) return channels - 1;
    int colours = file->alpha ? channels - 1 : channels;
    return (int)sample < colours ? (int)sample : -1;
}

/// Puts a run of pixels into a row. `plane` is the only sample in it, or negative for all.
static void put_run(
    page *page, const uint8_t *bytes, uint32_t x, uint32_t y, uint32_t count, int plane) {
    ctiff_file *file = page->file;
    int depth = page->header->depth, size = depth / 8;
    sample_reader reader = {bytes, file->bits, 0};
    uint8_t *pixel = page->rows + y * page->stride + 1 + (size_t)x * (size_t)(page->channels * size);
    uint32_t first = plane < 0 ? 0 : (uint32_t)plane;
    uint32_t last = plane < 0 ? file->samples : first + 1;
    bool is_inverted = file->kind == CTIFF_INVERTED_GREY || file->kind == CTIFF_INKS;
    for (uint32_t index = 0; index < count; index++, pixel += page->channels * size) {
        for (uint32_t sample = first; sample < last; sample++) {
            uint32_t value = next_sample(&reader);
            if (file->kind == CTIFF_PALETTE) {
                if (sample == 0) memcpy(pixel, page->palette[value], 3);
                if (sample > 0 && sample == file->alpha) {
                    pixel[3] = (uint8_t)scaled(value, file->bits, depth);
                }
                continue;
            }
            int channel = channel_of(file, sample, page->channels);
            if (channel < 0) continue;
            value = scaled(value, file->bits, depth);
            if (is_inverted && !(file->alpha && sample == file->alpha)) {
                value = ((1u << depth) - 1) - value;
            }
            if (size == 1) pixel[channel] = (uint8_t)value;
            else ccodec_put16(pixel + 2 * channel, value);
        }
    }
}

static ccodec_status fail(const ctiff_file *file, char *message) {
    static const char *const refusals[] = {"Sorry, can not handle", "Unsupported JPEG process"};
    snprintf(
        message, CCODEC_MESSAGE_BYTES, "%s", file->error[0] ? file->error : "damaged data");
    for (size_t index = 0; index < sizeof refusals / sizeof *refusals; index++) {
        if (strncmp(message, refusals[index], strlen(refusals[index])) == 0) {
            return CCODEC_UNSUPPORTED;
        }
    }
    return CCODEC_CORRUPT;
}

static ccodec_status read_strips(page *page, cinterruption *interruption, char *message) {
    ctiff_file *file = page->file;
    uint64_t size = lib.ScanlineSize64(file->tiff);
    uint64_t samples = file->is_planar ? 1 : file->samples;
    // Fewer bytes than pixels would need mean subsampled data, which is not read here.
    if (size == 0 || size > SIZE_MAX / 2
        || size < (page->header->width * samples * file->bits + 7) / 8) {
        return fail(file, message);
    }
    uint8_t *line = calloc(1, size + 8);
    if (line == NULL) return CCODEC_OUT_OF_MEMORY;
    ccodec_status status = CCODEC_OK;
    for (uint16_t plane = 0; plane < (file->is_planar ? file->samples : 1); plane++) {
        if (file->is_planar && channel_of(file, plane, page->channels) < 0
            && file->kind != CTIFF_PALETTE) {
            continue;
        }
        for (uint32_t y = 0; y < page->header->height && status == CCODEC_OK; y++) {
            if (cinterruption_after(interruption, size)) status = CCODEC_INTERRUPTED;
            else if (lib.ReadScanline(file->tiff, line, y, plane) != 1 || file->error[0]) {
                status = fail(file, message);
            } else {
                put_run(page, line, 0, y, page->header->width, file->is_planar ? plane : -1);
            }
        }
    }
    free(line);
    return status;
}

static ccodec_status read_tiles(page *page, cinterruption *interruption, char *message) {
    ctiff_file *file = page->file;
    uint32_t width = 0, height = 0;
    lib.GetField(file->tiff, LIB_TILE_WIDTH, &width);
    lib.GetField(file->tiff, LIB_TILE_LENGTH, &height);
    uint64_t size = lib.TileSize64(file->tiff), row = lib.TileRowSize64(file->tiff);
    uint64_t samples = file->is_planar ? 1 : file->samples;
    if (width == 0 || height == 0 || size > SIZE_MAX / 2 || row > size / height
        || row < (width * samples * file->bits + 7) / 8) {
        return fail(file, message);
    }
    uint8_t *tile = calloc(1, size + 8);
    if (tile == NULL) return CCODEC_OUT_OF_MEMORY;
    const ccodec_header *header = page->header;
    ccodec_status status = CCODEC_OK;
    for (uint16_t plane = 0; plane < (file->is_planar ? file->samples : 1); plane++) {
        for (uint64_t y = 0; y < header->height; y += height) {
            for (uint64_t x = 0; x < header->width && status == CCODEC_OK; x += width) {
                if (cinterruption_after(interruption, size)) status = CCODEC_INTERRUPTED;
                else if (
                    lib.ReadTile(file->tiff, tile, (uint32_t)x, (uint32_t)y, 0, plane) < 0
                    || file->error[0]) {
                    status = fail(file, message);
                }
                uint64_t columns = header->width - x < width ? header->width - x : width;
                uint64_t lines = header->height - y < height ? header->height - y : height;
                for (uint64_t line = 0; line < lines && status == CCODEC_OK; line++) {
                    put_run(
                        page, tile + line * row, (uint32_t)x, (uint32_t)(y + line),
                        (uint32_t)columns, file->is_planar ? plane : -1);
                }
            }
        }
    }
    free(tile);
    return status;
}

/// Reads the palette. Its values have 16 bits, but some writers fill only 8.
static ccodec_status read_palette(page *page, char *message) {
    uint16_t *parts[3] = {NULL, NULL, NULL};
    if (!lib.GetField(page->file->tiff, LIB_COLOUR_MAP, &parts[0], &parts[1], &parts[2])) {
        return fail(page->file, message);
    }
    size_t count = (size_t)1 << page->file->bits;
    uint8_t(*palette)[3] = malloc(count * sizeof *palette);
    if (palette == NULL) return CCODEC_OUT_OF_MEMORY;
    uint16_t most = 0;
    for (int part = 0; part < 3; part++) {
        for (size_t index = 0; index < count; index++) {
            if (parts[part][index] > most) most = parts[part][index];
        }
    }
    for (int part = 0; part < 3; part++) {
        for (size_t index = 0; index < count; index++) {
            uint16_t value = parts[part][index];
            palette[index][part] = (uint8_t)(most > 255 ? value >> 8 : value);
        }
    }
    page->palette = palette;
    return CCODEC_OK;
}

/// Reads the pages that libtiff converts, in one call. It multiplies colours by alpha.
static ccodec_status read_converted(page *page, char *message) {
    const ccodec_header *header = page->header;
    size_t pixels = (size_t)header->width * header->height;
    uint32_t *raster = calloc(pixels, sizeof *raster);
    if (raster == NULL) return CCODEC_OUT_OF_MEMORY;
    // Asked for the page's own orientation, it turns nothing.
    int is_read = lib.ReadRGBAImageOriented(
        page->file->tiff, header->width, header->height, raster, header->orientation, 1);
    ccodec_status status = !is_read || page->file->error[0] ? fail(page->file, message) : CCODEC_OK;
    for (uint32_t y = 0; y < header->height && status == CCODEC_OK; y++) {
        uint8_t *samples = page->rows + y * page->stride + 1;
        // Red is in the low bits of a number.
        memcpy(samples, raster + (size_t)y * header->width, (size_t)header->width * 4);
        ccodec_unmultiply(samples, header);
    }
    free(raster);
    return status;
}

static double light(double value) {
    return value > 6.0 / 29 ? value * value * value : 108.0 / 841 * (value - 4.0 / 29);
}

static uint8_t encoded(double light) {
    if (light <= 0) return 0;
    if (light >= 1) return 255;
    double value = light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055;
    return (uint8_t)(value * 255 + 0.5);
}

/// Converts L*a*b* of D50 to sRGB. Bradford's method adapts the white.
static void convert_lab(uint8_t *pixel, ctiff_kind kind) {
    double a = kind == CTIFF_LAB ? (int8_t)pixel[1] : pixel[1] - 128;
    double b = kind == CTIFF_LAB ? (int8_t)pixel[2] : pixel[2] - 128;
    double y = (pixel[0] / 2.55 + 16) / 116;
    double X = 0.96422 * light(y + a / 500), Y = light(y), Z = 0.82521 * light(y - b / 200);
    pixel[0] = encoded(3.1338561 * X - 1.6168667 * Y - 0.4906146 * Z);
    pixel[1] = encoded(-0.9787684 * X + 1.9161415 * Y + 0.0334540 * Z);
    pixel[2] = encoded(0.0719453 * X - 0.2289914 * Y + 1.4052427 * Z);
}

/// Converts rows of inks to rows of colours, which are shorter, from the first one on.
static ccodec_status convert_inks(
    page *page, const ccodec_inks *inks, cinterruption *interruption) {
    size_t width = page->header->width, stride = ccodec_stride(page->header);
    uint8_t *line = malloc(width * 4);
    if (line == NULL) return CCODEC_OUT_OF_MEMORY;
    bool is_interrupted = false;
    for (uint32_t y = 0; y < page->header->height && !is_interrupted; y++) {
        is_interrupted = cinterruption_after(interruption, stride);
        memcpy(line, page->rows + y * page->stride + 1, width * 4);
        ccodec_convert_inks(line, page->rows + y * stride + 1, width, inks);
    }
    free(line);
    return is_interrupted ? CCODEC_INTERRUPTED : CCODEC_OK;
}

ccodec_status ctiff_decode_page(
    ctiff_file *file, const ccodec_header *header, const ccodec_inks *inks,
    cinterruption *interruption, uint8_t *rows, char *message) {
    page page = {.file = file, .header = header, .rows = rows};
    page.channels = header->has_inks ? 4 : header->channels;
    page.stride = 1 + (size_t)header->width * (size_t)page.channels * (size_t)header->depth / 8;
    if (file->kind == CTIFF_CONVERTED) return read_converted(&page, message);
    ccodec_status status =
        file->kind == CTIFF_PALETTE ? read_palette(&page, message) : CCODEC_OK;
    if (status == CCODEC_OK) {
        status = lib.IsTiled(file->tiff) ? read_tiles(&page, interruption, message)
                                         : read_strips(&page, interruption, message);
    }
    free(page.palette);
    if (status != CCODEC_OK) return status;
    if (header->has_inks) return convert_inks(&page, inks, interruption);
    bool is_lab = file->kind == CTIFF_LAB || file->kind == CTIFF_ICC_LAB;
    for (uint32_t y = 0; (is_lab || file->is_multiplied) && y < header->height; y++) {
        if (cinterruption_after(interruption, page.stride)) return CCODEC_INTERRUPTED;
        uint8_t *samples = rows + y * page.stride + 1;
        for (uint32_t x = 0; is_lab && x < header->width; x++) {
            convert_lab(samples + (size_t)x * 3, file->kind);
        }
        if (file->is_multiplied) ccodec_unmultiply(samples, header);
    }
    return CCODEC_OK;
}
