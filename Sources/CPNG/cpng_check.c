#include "cpng.h"
#include "cpng_whole.h"

#include <stdlib.h>
#include <string.h>

#include <libdeflate.h>
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
    bool has_surplus;
    /// The checksum of the unpacked bytes.
    uint32_t sum;
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

/// Returns whether rows begin with a known filter type. Bytes behind the last row are surplus.
static bool take(row_walk *walk, const uint8_t *bytes, size_t count) {
    while (count > 0) {
        if (walk->rows_left == 0) {
            walk->has_surplus = true;
            return true;
        }
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

uint64_t cpng_bytes_of_rows(const cpng_form *form) {
    uint64_t total = 0;
    row_walk walk = {.form = form};
    for (enter_pass(&walk, 0); walk.rows_left > 0; enter_pass(&walk, walk.pass + 1)) {
        uint64_t bytes;
        if (__builtin_mul_overflow(walk.row_bytes + 1, (uint64_t)walk.rows_left, &bytes)
            || __builtin_add_overflow(total, bytes, &total)) {
            return UINT64_MAX;
        }
    }
    return total;
}

/// The same; 0 if too many to check in one piece.
static size_t bytes_at_once(const cpng_form *form) {
    uint64_t total = cpng_bytes_of_rows(form);
    return total > CPNG_MOST_BYTES_AT_ONCE ? 0 : (size_t)total;
}

/// Checks by libdeflate, in memory; false without enough of it, too. `rows` is from
/// `bytes_at_once`.
static bool check_at_once(
    const cpng_part *parts, size_t count, const cpng_form *form, size_t rows, size_t most_memory) {
    uint64_t length = 0;
    for (size_t index = 0; index < count; index++) length += parts[index].length;
    if (rows == 0 || rows > most_memory || !cpng_is_unpacked_at_once(rows, length)) return false;
    size_t joined = count > 1 ? (size_t)length : 0;
    if (joined > most_memory - rows) return false;
    uint8_t *memory = malloc(rows + joined);
    if (memory == NULL) return false;
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

/// Unpacks data by zlib up to its end, or the end of the rows. `result` is zlib's last one.
static ccodec_status walk_rows(
    z_stream *stream, uint8_t *buffer, size_t size, const cpng_part *parts, size_t count,
    row_walk *walk, cinterruption *interruption, int *result) {
    size_t part = 0;
    *result = Z_OK;
    // A full buffer may leave bytes behind.
    stream->avail_out = 1;
    while (*result == Z_OK && !walk->has_surplus) {
        if (stream->avail_in == 0 && stream->avail_out > 0) {
            if (part == count) break;
            // The pointer type is not const, but zlib only reads.
            stream->next_in = (Bytef *)(uintptr_t)parts[part].bytes;
            stream->avail_in = (uInt)parts[part].length;
            part++;
            if (stream->avail_in == 0) continue;
        }
        stream->next_out = buffer;
        stream->avail_out = (uInt)size;
        *result = inflate(stream, Z_NO_FLUSH);
        size_t made = size - stream->avail_out;
        walk->sum = libdeflate_adler32(walk->sum, buffer, made);
        if (!take(walk, buffer, made)) *result = Z_DATA_ERROR;
        if (cinterruption_after(interruption, made)) return CCODEC_INTERRUPTED;
        // Nothing was left behind a full buffer.
        if (*result == Z_BUF_ERROR) *result = Z_OK;
    }
    return CCODEC_OK;
}

/// Whether the last bytes of all parts are this checksum.
static bool ends_with(const cpng_part *parts, size_t count, uint32_t sum) {
    int left = 4;
    for (size_t part = count; part-- > 0 && left > 0;) {
        for (size_t each = parts[part].length; each-- > 0 && left > 0; left--) {
            if (parts[part].bytes[each] != (uint8_t)sum) return false;
            sum >>= 8;
        }
    }
    return left == 0;
}

ccodec_status cpng_check_rows(
    const cpng_part *parts, size_t count, const cpng_form *form, size_t most_memory,
    cinterruption *interruption, cpng_data *data) {
    size_t rows = bytes_at_once(form), first = 0;
    *data = CPNG_DATA_OTHER;
    while (first < count && parts[first].length == 0) first++;
    if (first == count || !cpng_has_whole_window(parts[first].bytes[0], rows)) return CCODEC_OK;
    if (check_at_once(parts, count, form, rows, most_memory)) {
        *data = CPNG_DATA_WHOLE;
        return cinterruption_after(interruption, rows) ? CCODEC_INTERRUPTED : CCODEC_OK;
    }
    // Fits the processor's caches with the window.
    enum { BUFFER = 1 << 16 };
    row_walk walk = {.form = form, .sum = 1};
    enter_pass(&walk, 0);
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    uint8_t *buffer = malloc(BUFFER);
    if (buffer == NULL || inflateInit(&stream) != Z_OK) {
        free(buffer);
        return CCODEC_OUT_OF_MEMORY;
    }
    int result;
    ccodec_status status =
        walk_rows(&stream, buffer, BUFFER, parts, count, &walk, interruption, &result);
    bool has_rows = status == CCODEC_OK && walk.rows_left == 0;
    // The stream ends after its checksum.
    if (has_rows && result == Z_STREAM_END && !walk.has_surplus) *data = CPNG_DATA_WHOLE;
    // Behind a block that is not marked as the last, the checksum is taken for another.
    bool is_unmarked = result == Z_DATA_ERROR && ends_with(parts, count, walk.sum);
    if (has_rows && (result == Z_OK || walk.has_surplus || is_unmarked)) *data = CPNG_DATA_UNENDED;
    inflateEnd(&stream);
    free(buffer);
    return status;
}

const char *cpng_library_version(void) { return png_get_libpng_ver(NULL); }
