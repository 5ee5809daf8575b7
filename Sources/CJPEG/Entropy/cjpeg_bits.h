#ifndef CJPEG_BITS_H
#define CJPEG_BITS_H

// Entropy-coded data as a row of bits, and Huffman codes in it (ITU-T T.81, F.2.2).

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

// MARK: - Bits

/// No block takes more: a code of 16 bits and 11 more for its DC coefficient, 16 and 10 for each other one, and 16 for
/// the end of the block, where a symbol says something. With what is read ahead that is 219 bytes.
#define CJPEG_BLOCK_BYTES 256

/// What is read at once. A block is begun with all its bytes in the window, so none of its symbols looks for the end.
#define CJPEG_WINDOW_BYTES 16384

/// A part of the source's entropy-coded data without the zeros that are stuffed behind each 0xFF (T.81, B.1.1.5).
///
/// Taking them out beforehand, by `memchr`, leaves eight bytes a load and no look at each.
typedef struct {
    /// What has not come into the window.
    const uint8_t *source, *source_end;
    /// Just behind the window's last byte; as many zeros as a block may take follow at the end of a segment.
    const uint8_t *end;
    /// From here on there may be too little for a block.
    const uint8_t *limit;
    /// Whether a marker is next in the source.
    bool is_last;
    uint8_t bytes[CJPEG_WINDOW_BYTES + 2 * CJPEG_BLOCK_BYTES];
} cjpeg_window;

/// The next bits, in the upper end of `bits`. At least `count` of them are there; what is below may be, too. Of the count
/// only its lower six bits mean something.
typedef struct {
    uint64_t bits;
    uint32_t count;
    const uint8_t *next;
} cjpeg_bits;

/// Begins with the data of the segment that starts at the window's `source`. Returns false for one that no marker ends.
bool cjpeg_begin_segment(cjpeg_window *window, cjpeg_bits *bits);

/// Makes room for a block. Returns false where the data is over.
bool cjpeg_move_window(cjpeg_window *window, cjpeg_bits *bits);

/// Whether nothing is left of the segment but less than a byte, which fills up the last one (T.81, F.1.2.3).
bool cjpeg_is_at_end(const cjpeg_window *window, const cjpeg_bits *bits);

/// Makes 56 bits or more of it. Overlapping loads, of which the upper bits are the same as those that are there, need no
/// branch.
///
/// What a symbol leads to is looked up before the bits are filled that the next one may need, and what was looked up is taken
/// afterwards. So a load, two shifts and three sums are not in the way from symbol to symbol but beside it, which made
/// reading an eighth faster. The next ten bits have to be there for that, wherever a symbol begins: two symbols that ten bits
/// say, or steps of 20, leave that of 56. What takes more is filled for before, and again behind it.
static inline __attribute__((always_inline)) void cjpeg_fill(cjpeg_bits *bits) {
    uint64_t eight;
    __builtin_memcpy(&eight, bits->next, sizeof eight);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    eight = __builtin_bswap64(eight);
#endif
    // The processor shifts by the lower bits alone, so that nothing waits for the mask.
    bits->bits |= eight >> (bits->count & 63);
    bits->next += (~bits->count >> 3) & 7;
    bits->count |= 56;
}

/// Takes as many as the lower six bits say.
static inline __attribute__((always_inline)) void cjpeg_take(cjpeg_bits *bits, uint32_t count) {
    bits->bits <<= count & 63;
    bits->count -= count;
}

// MARK: - Codes

/// Codes of up to so many bits are found at once. With 9, 11 and 12 the whole is slower: more that is not in the table, or
/// a table that leaves the first cache.
#define CJPEG_LOOK 10

/// Magnitudes of up to five bits are small: see `cjpeg_magnitude`. With 4 large pictures are 5 % slower, with 6 small ones
/// 10 %.
enum { CJPEG_SMALL_BITS = 5, CJPEG_SMALL_MAGNITUDES = 2 << CJPEG_SMALL_BITS };

typedef struct {
    /// By the next ten bits, what they say in full, as most do:
    ///
    /// - in bits 0…7 how many of them are taken, by the code and a magnitude behind it;
    /// - in bits 16…31, of an AC coefficient, how far it is from the one before it times 64, plus its magnitude, which
    ///   is small; 0 for the end of the block;
    /// - in bits 16…31, of a DC difference, itself.
    ///
    /// 0 where more bits are needed, or the symbol is another.
    uint32_t known[1 << CJPEG_LOOK];
    /// By the next ten bits, the symbol in bits 0…7 and its code's length in 8…15; 0 for a longer code.
    uint16_t symbol[1 << CJPEG_LOOK];
    /// Behind the last code of each length, at the upper end of 16 bits.
    uint32_t limit[17];
    /// What makes a code of each length the place of its symbol.
    int32_t offset[17];
    uint8_t symbols[256];
} cjpeg_codes;

/// Returns false for a table that is not one by T.81, annex C, which libjpeg refuses: 16 bits cannot hold its codes, or one
/// of them is all ones.
bool cjpeg_make_codes(const JHUFF_TBL *table, bool is_dc, cjpeg_codes *codes);

/// The next symbol, of which the length goes to `length`; -1 where the bits are no code.
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

/// A magnitude of `category` bits with a 1 in front of them: 1 for none, 2…3 for one, 4…7 for two and so on. `bits` are
/// those behind the code.
static inline __attribute__((always_inline)) uint32_t cjpeg_magnitude(uint64_t bits, unsigned category) {
    return (uint32_t)((bits >> 1 | (uint64_t)1 << 63) >> (63 - category));
}

/// The value that a magnitude stands for (T.81, figure F.12): a first bit of 0 is a negative value's.
static inline __attribute__((always_inline)) int cjpeg_extend(uint32_t magnitude, unsigned category) {
    int value = (int)magnitude, least = 1 << category;
    return value >= least + (least >> 1) ? value - least : value - 2 * least + 1;
}

/// Takes a DC coefficient's difference to the block before (T.81, F.2.2.1). Returns false on doubt.
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

#endif
