#include "cgif_lzw.h"

static void clear(cgif_lzw *lzw) {
    lzw->bits = lzw->minimum_bits + 1;
    lzw->next = (1u << lzw->minimum_bits) + 2;
    lzw->previous = -1;
}

void cgif_lzw_begin(
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

cgif_lzw_status cgif_lzw_read(cgif_lzw *lzw, uint8_t *row, size_t count) {
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

cgif_lzw_status cgif_lzw_end(cgif_lzw *lzw) {
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
