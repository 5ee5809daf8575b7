#include "cdeflate_huffman.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    uint32_t count;
    uint16_t symbol;
} weight;

static int by_count(const void *left, const void *right) {
    const weight *a = left, *b = right;
    if (a->count != b->count) return a->count < b->count ? -1 : 1;
    return (int)a->symbol - (int)b->symbol;
}

/// Minimum redundancy in place: ascending counts become descending lengths (A. Moffat, J.
/// Katajainen: In-Place Calculation of Minimum-Redundancy Codes, 1995).
static void make_lengths(weight *weights, int count) {
    weights[0].count += weights[1].count;
    int leaf = 2, root = 0;
    for (int next = 1; next < count - 1; next++) {
        if (leaf >= count || weights[root].count < weights[leaf].count) {
            weights[next].count = weights[root].count;
            weights[root++].count = (uint32_t)next;
        } else {
            weights[next].count = weights[leaf++].count;
        }
        if (leaf >= count || (root < next && weights[root].count < weights[leaf].count)) {
            weights[next].count += weights[root].count;
            weights[root++].count = (uint32_t)next;
        } else {
            weights[next].count += weights[leaf++].count;
        }
    }
    weights[count - 2].count = 0;
    for (int next = count - 3; next >= 0; next--) {
        weights[next].count = weights[weights[next].count].count + 1;
    }
    int available = 1, used = 0, next = count - 1;
    uint32_t depth = 0;
    for (root = count - 2; available > 0; depth++) {
        for (; root >= 0 && weights[root].count == depth; root--) used++;
        for (; available > used; available--) weights[next--].count = depth;
        available = 2 * used;
        used = 0;
    }
}

void cdeflate_make_codes(
    const uint32_t *counts, int symbols, unsigned longest, cdeflate_huffman_code *codes) {
    weight weights[CDEFLATE_MOST_SYMBOLS];
    int used = 0;
    memset(codes, 0, (size_t)symbols * sizeof *codes);
    for (int symbol = 0; symbol < symbols; symbol++) {
        if (counts[symbol] > 0) weights[used++] = (weight){counts[symbol], (uint16_t)symbol};
    }
    qsort(weights, (size_t)used, sizeof *weights, by_count);
    make_lengths(weights, used);
    // Lengths beyond the longest are cut. The excess is taken back from the codes that lose least
    // by growing, until the code is complete again.
    uint32_t lengths[33] = {0};
    for (int index = 0; index < used; index++) {
        lengths[weights[index].count < longest ? weights[index].count : longest]++;
    }
    uint32_t total = 0;
    for (unsigned length = 1; length <= longest; length++) {
        total += lengths[length] << (longest - length);
    }
    for (; total > 1u << longest; total--) {
        unsigned length = longest - 1;
        while (lengths[length] == 0) length--;
        lengths[longest]--;
        lengths[length]--;
        lengths[length + 1] += 2;
    }
    int index = 0;
    for (unsigned length = longest; length > 0; length--) {
        for (uint32_t number = 0; number < lengths[length]; number++) {
            codes[weights[index++].symbol].length = (uint8_t)length;
        }
    }
    // RFC 1951 section 3.2.2.
    uint32_t next[CDEFLATE_LONGEST_CODE + 2] = {0};
    for (unsigned length = 1; length <= longest; length++) {
        next[length + 1] = (next[length] + lengths[length]) << 1;
    }
    for (int symbol = 0; symbol < symbols; symbol++) {
        unsigned length = codes[symbol].length;
        if (length == 0) continue;
        uint32_t code = next[length]++, reversed = 0;
        for (unsigned bit = 0; bit < length; bit++) {
            reversed |= (code >> bit & 1) << (length - 1 - bit);
        }
        codes[symbol].code = (uint16_t)reversed;
    }
}
