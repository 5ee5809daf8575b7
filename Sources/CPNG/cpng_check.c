#include "cpng.h"
#include "cpng_whole.h"

#include <stdlib.h>
#include <string.h>

#include <png.h>
#include <zlib.h>

/// Follows rows through inflated image data: a byte of filter type, then the row.
typedef struct {
    const cpng_form *form;
    /// The Adam7 pass; 0 without interlacing.
    int pass;
    /// Rows left in the pass or image; 0 after the last.
    uint32_t rows_left;
    uint64_t row_bytes;
    /// Bytes left in the current row.
    uint64_t bytes_left;
} row_walk;

/// Advances to the first pass from `pass` on that has pixels; small images have none in some.
static void enter_pass(row_walk *walk, int pass) {
    const cpng_form *form = walk->form;
    uint64_t columns = form->width;
    walk->rows_left = pass == 0 ? form->height : 0;
    if (form->is_interlaced) {
        walk->rows_left = 0;
        for (; pass < PNG_INTERLACE_ADAM7_PASSES && walk->rows_left == 0; pass++) {
            columns = PNG_PASS_COLS((uint64_t)form->width, pass);
            if (columns > 0) {
                walk->rows_left = (uint32_t)PNG_PASS_ROWS((uint64_t)form->height, pass);
            }
        }
        pass--;
    }
    walk->pass = pass;
    walk->row_bytes = (columns * form->bits_a_pixel + 7) / 8;
}

/// Returns whether the image has room for that many more bytes, and rows begin with a known filter
/// type.
static bool take(row_walk *walk, const uint8_t *bytes, size_t count) {
    while (count > 0) {
        if (walk->rows_left == 0) return false;
        if (walk->bytes_left == 0) {
            if (*bytes > PNG_FILTER_VALUE_PAETH) return false;
            bytes++;
            count--;
            walk->bytes_left = walk->row_bytes;
        }
        size_t part = walk->bytes_left < count ? (size_t)walk->bytes_left : count;
        walk->bytes_left -= part;
        bytes += part;
        count -= part;
        if (walk->bytes_left > 0) continue;
        if (--walk->rows_left == 0) enter_pass(walk, walk->pass + 1);
    }
    return true;
}

/// The bytes of all rows with their filter types; 0 if too many to check in one piece.
static size_t bytes_of_rows(const cpng_form *form) {
    uint64_t total = 0;
    row_walk walk = {.form = form};
    for (enter_pass(&walk, 0); walk.rows_left > 0; enter_pass(&walk, walk.pass + 1)) {
        uint64_t bytes;
        if (__builtin_mul_overflow(walk.row_bytes + 1, (uint64_t)walk.rows_left, &bytes)
            || bytes > CPNG_MOST_BYTES_AT_ONCE) {
            return 0;
        }
        total += bytes;
    }
    return total > CPNG_MOST_BYTES_AT_ONCE ? 0 : (size_t)total;
}

/// Checks by libdeflate, in memory; `*is_possible` is false without enough of it. `rows` is from
/// `bytes_of_rows`.
static bool check_at_once(
    const cpng_part *parts, size_t count, const cpng_form *form, size_t rows, size_t most_memory,
    bool *is_possible) {
    uint64_t length = 0;
    for (size_t index = 0; index < count; index++) length += parts[index].length;
    *is_possible = false;
    if (rows == 0 || rows > most_memory || !cpng_is_unpacked_at_once(rows, length)) return false;
    size_t joined = count > 1 ? (size_t)length : 0;
    if (joined > most_memory - rows) return false;
    uint8_t *memory = malloc(rows + joined);
    if (memory == NULL) return false;
    *is_possible = true;
    const uint8_t *stream = parts[0].bytes;
    if (joined > 0) {
        uint8_t *target = memory + rows;
        stream = target;
        for (size_t index = 0; index < count; index++) {
            memcpy(target, parts[index].bytes, parts[index].length);
            target += parts[index].length;
        }
    }
    size_t taken;
    row_walk walk = {.form = form};
    enter_pass(&walk, 0);
    bool is_whole = cpng_unpack(stream, (size_t)length, memory, rows, &taken)
        && take(&walk, memory, rows);
    free(memory);
    return is_whole;
}

ccodec_status cpng_check_rows(
    const cpng_part *parts, size_t count, const cpng_form *form, size_t most_memory,
    cinterruption *interruption, bool *is_whole) {
    size_t rows = bytes_of_rows(form), first = 0;
    bool is_possible;
    *is_whole = false;
    while (first < count && parts[first].length == 0) first++;
    if (first == count || !cpng_has_whole_window(parts[first].bytes[0], rows)) return CCODEC_OK;
    *is_whole = check_at_once(parts, count, form, rows, most_memory, &is_possible);
    if (is_possible) {
        return cinterruption_after(interruption, rows) ? CCODEC_INTERRUPTED : CCODEC_OK;
    }
    // Fits the processor's caches with the window.
    enum { BUFFER = 1 << 16 };
    row_walk walk = {.form = form};
    enter_pass(&walk, 0);
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    uint8_t *buffer = malloc(BUFFER);
    if (buffer == NULL || inflateInit(&stream) != Z_OK) {
        free(buffer);
        return CCODEC_OUT_OF_MEMORY;
    }
    ccodec_status status = CCODEC_OK;
    int result = Z_OK;
    size_t part = 0;
    bool fits = true;
    while (result == Z_OK && status == CCODEC_OK) {
        if (stream.avail_in == 0) {
            if (part == count) break;
            // The pointer type is not const, but zlib only reads.
            stream.next_in = (Bytef *)(uintptr_t)parts[part].bytes;
            stream.avail_in = (uInt)parts[part].length;
            part++;
            if (stream.avail_in == 0) continue;
        }
        stream.next_out = buffer;
        stream.avail_out = BUFFER;
        result = inflate(&stream, Z_NO_FLUSH);
        size_t made = BUFFER - stream.avail_out;
        fits = take(&walk, buffer, made);
        if (!fits) break;
        if (cinterruption_after(interruption, made)) status = CCODEC_INTERRUPTED;
    }
    // The stream ends after its checksum.
    *is_whole = status == CCODEC_OK && fits && result == Z_STREAM_END && walk.rows_left == 0;
    inflateEnd(&stream);
    free(buffer);
    return status;
}

const char *cpng_library_version(void) { return png_get_libpng_ver(NULL); }
