#pragma once

// Entropy-coded data as a bit stream, and its Huffman codes (ITU-T T.81, F.2.2).

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

// MARK: - Bits

/// The most bytes of a block. Its DC coefficient has a code of 16 bits and 11 more, each AC
/// coefficient 16 and 10, the end of the block 16. With read-ahead that is 219 bytes.
#define CJPEG_BLOCK_BYTES 256

/// Bytes read together. A block starts only when all its bytes are in the window, so its symbols
/// are not checked for the end.
#define CJPEG_WINDOW_BYTES 16384

/// A part of the source's entropy-coded data without the zeros stuffed behind each 0xFF (T.81,
/// B.1.1.5).
///
/// Removing them in advance, by `memchr`, allows loads of eight bytes without a check of each.
typedef struct {
    /// Source data not yet in the window.
    const uint8_t *source, *source_end;
    /// The end of the window's bytes. At the end of a segment, as many zeros follow as a block may
    /// take.
    const uint8_t *end;
    /// From here on the window may hold less than a block.
    const uint8_t *limit;
    /// Whether the next bytes in the source are a marker.
    bool is_last;
    uint8_t bytes[CJPEG_WINDOW_BYTES + 2 * CJPEG_BLOCK_BYTES];
} cjpeg_window;

/// The next bits, in the upper end of `bits`: at least `count` of them, sometimes more. Only the
/// lower six bits of `count` are meaningful.
typedef struct {
    uint64_t bits;
    uint32_t count;
    const uint8_t *next;
} cjpeg_bits;

/// Starts the segment at the window's `source`. Returns false if no marker ends it.
bool cjpeg_begin_segment(cjpeg_window *window, cjpeg_bits *bits);

/// Makes room for a block. Returns false at the end of the data.
bool cjpeg_move_window(cjpeg_window *window, cjpeg_bits *bits);

/// The whole bytes that are left of the window.
ptrdiff_t cjpeg_unread_bytes(const cjpeg_window *window, const cjpeg_bits *bits);

/// Whether the segment is used up but for less than a byte of padding (T.81, F.1.2.3).
bool cjpeg_is_at_end(const cjpeg_window *window, const cjpeg_bits *bits);

/// Fills up to 56 bits or more. Loads overlap; their upper bits equal those present, so no branch
/// is needed.
///
/// A symbol is looked up before the fill for the next one, and taken after it. So a load, two
/// shifts and three sums run parallel to the dependency from symbol to symbol, which made reading
/// an eighth faster. It needs the next ten bits present wherever a symbol begins. Two symbols of at
/// most ten bits, or steps of 20, leave that much of 56. Longer symbols fill before and after.
static inline __attribute__((always_inline)) void cjpeg_fill(cjpeg_bits *bits) {
    uint64_t eight;
    __builtin_memcpy(&eight, bits->next, sizeof eight);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    eight = __builtin_bswap64(eight);
#endif
    // The processor shifts by the lower bits only, so nothing waits for the mask.
    bits->bits |= eight >> (bits->count & 63);
    bits->next += (~bits->count >> 3) & 7;
    bits->count |= 56;
}

/// Takes as many bits as the lower six bits of `count` say.
static inline __attribute__((always_inline)) void cjpeg_take(cjpeg_bits *bits, uint32_t count) {
    bits->bits <<= count & 63;
    bits->count -= count;
}

// MARK: - Codes

/// The longest codes found by one look-up. Sizes 9, 11 and 12 are slower overall: more misses, or a
/// table that exceeds the L1 cache.
#define CJPEG_LOOK 10

/// Magnitudes of up to five bits are small: see `cjpeg_magnitude`. With 4, large pictures are 5 %
/// slower; with 6, small ones 10 %.
enum { CJPEG_SMALL_BITS = 5, CJPEG_SMALL_MAGNITUDES = 2 << CJPEG_SMALL_BITS };

typedef struct {
    /// Indexed by the next ten bits, if they hold a whole symbol with its magnitude, as most do:
    ///
    /// - bits 0…7: how many bits to take, code and magnitude together;
    /// - bits 16…31, of an AC coefficient: its distance to the previous one times 64, plus its
    ///   small magnitude; 0 for the end of the block;
    /// - bits 16…31, of a DC difference: the difference.
    ///
    /// 0 if more bits are needed or the symbol is unusual.
    uint32_t known[1 << CJPEG_LOOK];
    /// Indexed by the next ten bits: the symbol in bits 0…7, its code's length in 8…15; 0 for a
    /// longer code.
    uint16_t symbol[1 << CJPEG_LOOK];
    /// The first code that is longer than each length, at the upper end of 16 bits.
    uint32_t limit[17];
    /// Added to a code of each length, gives the index of its symbol.
    int32_t offset[17];
    uint8_t symbols[256];
} cjpeg_codes;

/// Returns the next symbol and writes its length to `length`; -1 if the bits are no code.
static inline __attribute__((always_inline)) int cjpeg_symbol(
    const cjpeg_codes *codes, uint64_t bits, unsigned *length) {
    unsigned found = codes->symbol[bits >> (64 - CJPEG_LOOK)];
    if (found != 0) {
        *length = found >> 8;
        return (int)(found & 255);
    }
    uint32_t next = (uint32_t)(bits >> 48);
    for (unsigned each = CJPEG_LOOK + 1; each <= 16; each++) {
        if (next >= codes->limit[each]) continue;
        *length = each;
        return codes->symbols[((int32_t)(next >> (16 - each)) + codes->offset[each]) & 255];
    }
    return -1;
}

/// A magnitude of `category` bits with a leading 1: 1 for no bits, 2…3 for one, 4…7 for two and so
/// on. `bits` are the bits after the code.
static inline __attribute__((always_inline)) uint32_t cjpeg_magnitude(uint64_t bits, unsigned category) {
    return (uint32_t)((bits >> 1 | (uint64_t)1 << 63) >> (63 - category));
}

/// The value of a magnitude (T.81, figure F.12, EXTEND): a first bit of 0 means a negative value.
static inline __attribute__((always_inline)) int cjpeg_extend(uint32_t magnitude, unsigned category) {
    int value = (int)magnitude, least = 1 << category;
    return value >= least + (least >> 1) ? value - least : value - 2 * least + 1;
}

/// Takes a DC coefficient's difference to the previous block (T.81, F.2.2.1). Returns false to fall
/// back to libjpeg.
static inline __attribute__((always_inline)) bool cjpeg_take_difference(
    cjpeg_bits *bits, const cjpeg_codes *codes, int *difference) {
    uint32_t known = codes->known[bits->bits >> (64 - CJPEG_LOOK)];
    cjpeg_fill(bits);
    *difference = (int32_t)known >> 16;
    cjpeg_take(bits, known);
    if (__builtin_expect(known != 0, 1)) return true;
    unsigned length;
    int symbol = cjpeg_symbol(codes, bits->bits, &length);
    if (symbol < 0 || symbol > 11) return false;
    cjpeg_take(bits, length);
    *difference = cjpeg_extend(cjpeg_magnitude(bits->bits, (unsigned)symbol), (unsigned)symbol);
    cjpeg_take(bits, (unsigned)symbol);
    cjpeg_fill(bits);
    return true;
}
