#include "cwebp.h"

#include <string.h>

enum {
    CODES = 5,
    LITERALS = 256,
    LENGTHS = 24,
    DISTANCES = 40,
    MOST_CACHE_BITS = 11,
    MOST_SYMBOLS = LITERALS + LENGTHS + (1 << MOST_CACHE_BITS),
    MOST_BITS = 15,
    MOST_GROUPS = 1 << 16,
    /// Up to this many groups the library allocates up to the highest number, used or not.
    GROUPS_AS_NUMBERED = 1000,
    /// The library's memory for a group without its tables.
    GROUP_BYTES = 640,
    ENTRY_BYTES = 4,
    /// Extra bytes for a pixel of alpha without a palette, as measured.
    ALPHA_BYTES = 5,
};

/// Entries of a group's five tables for each size of the colour cache, as the library allocates
/// them.
static const uint32_t entries_of_group[MOST_CACHE_BITS + 1] = {
    2954, 2956, 2958, 2962, 2970, 2986, 3018, 3082, 3212, 3468, 3980, 5004};

typedef enum { RUNS, DAMAGED, TOO_LONG } state;

/// A bit reader, lowest bit of each byte first.
typedef struct {
    const uint8_t *at;
    const uint8_t *end;
    uint64_t window;
    int count;
    state state;
    uint64_t *effort;
} reader;

static uint32_t take(reader *from, int bits) {
    while (from->count <= 56 && from->at < from->end) {
        from->window |= (uint64_t)*from->at++ << from->count;
        from->count += 8;
    }
    if (bits > from->count) {
        from->state = DAMAGED;
        return 0;
    }
    uint32_t value = (uint32_t)(from->window & ((UINT64_C(1) << bits) - 1));
    from->window >>= bits;
    from->count -= bits;
    return value;
}

/// Uses up part of the effort.
static void spend(reader *from, uint64_t steps) {
    if (*from->effort < steps) {
        *from->effort = 0;
        from->state = TOO_LONG;
    } else {
        *from->effort -= steps;
    }
}

/// A canonical prefix code: the count of symbols of each length, and the symbols in code order.
typedef struct {
    uint16_t count[MOST_BITS + 1];
    uint16_t symbols[MOST_SYMBOLS];
    /// The only symbol, which takes no bits; -1 for several.
    int single;
} code;

/// Applies the library's conditions: a single symbol, or a complete code.
static void make_code(reader *from, code *made, const uint8_t *lengths, int symbols) {
    memset(made->count, 0, sizeof made->count);
    for (int symbol = 0; symbol < symbols; symbol++) made->count[lengths[symbol]]++;
    int used = symbols - made->count[0];
    made->count[0] = 0;
    made->single = -1;
    int open = 1;
    uint16_t places[MOST_BITS + 2] = {0};
    for (int length = 1; length <= MOST_BITS; length++) {
        open = 2 * open - made->count[length];
        if (open < 0) break;
        places[length + 1] = (uint16_t)(places[length] + made->count[length]);
    }
    if (used != 1 && open != 0) {
        from->state = DAMAGED;
        return;
    }
    for (int symbol = 0; symbol < symbols; symbol++) {
        if (lengths[symbol] == 0) continue;
        if (used == 1) made->single = symbol;
        made->symbols[places[lengths[symbol]]++] = (uint16_t)symbol;
    }
}

static int symbol_of(reader *from, const code *by) {
    if (by->single >= 0) return by->single;
    int value = 0, first = 0, place = 0;
    for (int length = 1; length <= MOST_BITS; length++) {
        value |= (int)take(from, 1);
        if (from->state != RUNS) return 0;
        int count = by->count[length];
        if (value - first < count) {
            spend(from, (uint64_t)length);
            return by->symbols[place + value - first];
        }
        place += count;
        first = (first + count) << 1;
        value <<= 1;
    }
    from->state = DAMAGED;
    return 0;
}

/// RFC 9649, section 3.7.2.1.
static void read_code(reader *from, code *made, int symbols) {
    uint8_t lengths[MOST_SYMBOLS] = {0};
    if (take(from, 1)) {
        int count = (int)take(from, 1) + 1;
        int bits = take(from, 1) ? 8 : 1;
        for (int index = 0; index < count; index++, bits = 8) {
            uint32_t symbol = take(from, bits);
            if ((int)symbol < symbols) lengths[symbol] = 1;
        }
    } else {
        static const uint8_t order[] = {
            17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
        uint8_t own[sizeof order] = {0};
        int count = 4 + (int)take(from, 4);
        for (int index = 0; index < count; index++) own[order[index]] = (uint8_t)take(from, 3);
        code by;
        make_code(from, &by, own, sizeof order);
        int rest = symbols;
        if (take(from, 1)) {
            int bits = 2 + 2 * (int)take(from, 3);
            rest = 2 + (int)take(from, bits);
            if (rest > symbols) from->state = DAMAGED;
        }
        uint8_t before = 8;
        for (int symbol = 0; symbol < symbols && rest-- > 0 && from->state == RUNS;) {
            int length = symbol_of(from, &by);
            if (length < 16) {
                lengths[symbol++] = (uint8_t)length;
                if (length != 0) before = (uint8_t)length;
                continue;
            }
            int repeats = length == 16 ? 3 + (int)take(from, 2)
                : length == 17         ? 3 + (int)take(from, 3)
                                       : 11 + (int)take(from, 7);
            if (repeats > symbols - symbol) {
                from->state = DAMAGED;
                return;
            }
            memset(lengths + symbol, length == 16 ? before : 0, (size_t)repeats);
            symbol += repeats;
        }
    }
    if (from->state == RUNS) make_code(from, made, lengths, symbols);
    spend(from, (uint64_t)symbols);
}

static uint64_t copied(reader *from, int symbol) {
    if (symbol < 4) return (uint64_t)symbol + 1;
    int bits = (symbol - 2) >> 1;
    return ((uint64_t)(2 + (symbol & 1)) << bits) + take(from, bits) + 1;
}

/// The groups of codes that the parts of an image use.
typedef struct {
    uint32_t highest;
    /// The most distinct ones.
    uint32_t count;
    uint64_t seen[MOST_GROUPS / 64];
} numbers;

static void note(numbers *noted, uint32_t number) {
    if (number > noted->highest) noted->highest = number;
    uint64_t bit = UINT64_C(1) << (number % 64);
    if (noted->seen[number / 64] & bit) return;
    noted->seen[number / 64] |= bit;
    noted->count++;
}

static int cache_bits(reader *from) {
    if (!take(from, 1)) return 0;
    int bits = (int)take(from, 4);
    if (bits < 1 || bits > MOST_CACHE_BITS) from->state = DAMAGED;
    return from->state == RUNS ? bits : 0;
}

/// Follows a picture with one group of codes to its end. A copy, or a value from the cache, repeats
/// an earlier value, or 0.
static void follow(reader *from, uint64_t pixels, numbers *noted) {
    int cached = cache_bits(from);
    code codes[CODES];
    for (int index = 0; index < CODES && from->state == RUNS; index++) {
        int symbols = index == 0 ? LITERALS + LENGTHS + (cached == 0 ? 0 : 1 << cached)
            : index < 4          ? LITERALS
                                 : DISTANCES;
        read_code(from, &codes[index], symbols);
    }
    if (from->state != RUNS) return;
    if (noted != NULL && cached != 0) note(noted, 0);
    bool is_free = codes[1].single >= 0 && codes[2].single >= 0 && codes[3].single >= 0;
    while (pixels > 0 && from->state == RUNS) {
        spend(from, 1);
        int green = symbol_of(from, &codes[0]);
        uint64_t length = 1;
        if (green < LITERALS) {
            int red = symbol_of(from, &codes[1]);
            symbol_of(from, &codes[2]);
            symbol_of(from, &codes[3]);
            if (noted != NULL && from->state == RUNS) note(noted, (uint32_t)(red << 8 | green));
            // All are the same, and take no bits.
            if (is_free && codes[0].single >= 0) return;
        } else if (green < LITERALS + LENGTHS) {
            length = copied(from, green - LITERALS);
            copied(from, symbol_of(from, &codes[4]));
        } else if (codes[0].single >= 0) {
            return;
        }
        if (length > pixels) from->state = DAMAGED;
        pixels -= length < pixels ? length : pixels;
    }
}

static uint64_t parts(uint64_t side, int bits) { return (side + (UINT64_C(1) << bits) - 1) >> bits; }

/// Whether the codes of all groups hold only green.
static bool are_green(reader *from, uint32_t groups) {
    code made;
    for (uint32_t group = 0; group < groups && from->state == RUNS; group++) {
        for (int index = 0; index < CODES; index++) {
            int symbols = index == 0 ? LITERALS + LENGTHS : index < 4 ? LITERALS : DISTANCES;
            read_code(from, &made, symbols);
            if (from->state != RUNS || (index > 0 && index < 4 && made.single < 0)) return false;
        }
    }
    return from->state == RUNS;
}

/// Reads an image stream from its first transform (RFC 9649, section 3.8) up to the groups of
/// codes.
///
/// - `is_indexed`: receives whether it uses a palette, by green alone; NULL to skip the check.
static uint64_t table_bytes(reader *from, uint64_t width, uint64_t height, bool *is_indexed) {
    unsigned seen = 0;
    numbers noted = {0};
    while (from->state == RUNS && take(from, 1)) {
        unsigned type = take(from, 2);
        if (seen & 1u << type) from->state = DAMAGED;
        seen |= 1u << type;
        if (type == 0 || type == 1) {
            int bits = 2 + (int)take(from, 3);
            follow(from, parts(width, bits) * parts(height, bits), NULL);
        } else if (type == 3) {
            int colours = 1 + (int)take(from, 8);
            follow(from, (uint64_t)colours, NULL);
            width = parts(width, colours > 16 ? 0 : colours > 4 ? 1 : colours > 2 ? 2 : 3);
        }
    }
    int cached = cache_bits(from);
    uint64_t groups = 1;
    if (from->state == RUNS && take(from, 1)) {
        int bits = 2 + (int)take(from, 3);
        follow(from, parts(width, bits) * parts(height, bits), &noted);
        bool is_as_numbered =
            noted.highest < GROUPS_AS_NUMBERED && noted.highest < width * height;
        groups = is_as_numbered ? noted.highest + 1 : noted.count;
    }
    if (from->state == DAMAGED) return 0;
    if (from->state == TOO_LONG) {
        groups = parts(width, 2) * parts(height, 2);
        if (groups > MOST_GROUPS) groups = MOST_GROUPS;
        cached = MOST_CACHE_BITS;
    }
    if (is_indexed != NULL) {
        bool is_plain = from->state == RUNS && seen == 1u << 3 && cached == 0;
        *is_indexed = is_plain && are_green(from, noted.highest + 1);
    }
    // Beyond a thousand, used numbers are mapped to consecutive ones.
    uint64_t mapping = groups > GROUPS_AS_NUMBERED ? MOST_GROUPS * sizeof(int) : 0;
    return groups * (entries_of_group[cached] * ENTRY_BYTES + GROUP_BYTES) + mapping;
}

static uint32_t little_endian(const uint8_t *bytes) {
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

uint64_t cwebp_table_bytes(
    const uint8_t *chunks, size_t length, uint32_t width, uint32_t height, uint64_t *effort) {
    uint64_t most = 0;
    for (size_t offset = 0; length - offset >= 8;) {
        const uint8_t *data = chunks + offset + 8;
        size_t room = length - offset - 8, size = little_endian(chunks + offset + 4);
        if (size > room) size = room;
        uint64_t own = 0;
        reader from = {.at = data, .end = data + size, .effort = effort};
        if (memcmp(chunks + offset, "VP8L", 4) == 0 && size >= 5) {
            // Signature, sides, alpha and version.
            take(&from, 8);
            width = take(&from, 14) + 1;
            height = take(&from, 14) + 1;
            take(&from, 4);
            own = table_bytes(&from, width, height, NULL);
        } else if (memcmp(chunks + offset, "ALPH", 4) == 0 && size >= 1 && (data[0] & 3) == 1) {
            take(&from, 8);
            bool is_indexed = false;
            own = table_bytes(&from, width, height, &is_indexed);
            // libwebp holds alpha from its own encoder with a byte a pixel, any other with four and
            // more.
            if (!is_indexed) own += ALPHA_BYTES * (uint64_t)width * height;
        }
        if (own > most) most = own;
        size_t filled = size + (size & 1);
        offset += 8 + (filled > room ? room : filled);
    }
    return most;
}
