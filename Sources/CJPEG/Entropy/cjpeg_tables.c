#include "cjpeg_tables.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// MARK: - Codes

/// Returns false for an invalid table.
static bool make_codes(const JHUFF_TBL *table, bool is_dc, cjpeg_codes *codes) {
    memset(codes, 0, sizeof *codes);
    uint32_t code = 0, place = 0;
    for (unsigned length = 1; length <= 16; length++) {
        codes->offset[length] = (int32_t)place - (int32_t)code;
        for (unsigned each = 0; each < table->bits[length]; each++, place++, code++) {
            unsigned symbol = table->huffval[place & 255];
            // Too many codes, a code of all ones, or a difference of more than 15 bits.
            if (place > 255 || code + 1 >= 1u << length || (is_dc && symbol > 15)) return false;
            codes->symbols[place] = (uint8_t)symbol;
            if (length > CJPEG_LOOK) continue;
            unsigned run = is_dc ? 0 : symbol >> 4, category = is_dc ? symbol : symbol & 15;
            unsigned others = CJPEG_LOOK - length, most = is_dc ? others : CJPEG_SMALL_BITS;
            bool is_known = symbol == 0 || (category > 0 && category <= others && category <= most);
            for (uint32_t rest = 0; rest < 1u << others; rest++) {
                uint32_t bits = code << others | rest;
                codes->symbol[bits] = (uint16_t)(symbol | length << 8);
                if (!is_known) continue;
                uint32_t magnitude = cjpeg_magnitude((uint64_t)bits << (64 - CJPEG_LOOK + length - 1) << 1, category);
                int value = cjpeg_extend(magnitude, category);
                uint32_t meaning = is_dc ? (uint16_t)value : (run + 1) * CJPEG_SMALL_MAGNITUDES + magnitude;
                codes->known[bits] = (symbol == 0 ? 0 : meaning << 16) | (length + category);
            }
        }
        codes->limit[length] = code << (16 - length);
        code <<= 1;
    }
    return true;
}

/// The most places that one step advances.
enum { MOST_STEPS = DCTSIZE2 };

static void make_magnitudes(const cjpeg_codes *codes, cjpeg_magnitudes *magnitudes) {
    for (size_t bits = 0; bits < 1 << CJPEG_LOOK; bits++) {
        uint32_t known = codes->known[bits], meaning = known >> 16;
        magnitudes->known[bits] = known;
        if (meaning == 0) continue;
        uint32_t magnitude = meaning % CJPEG_SMALL_MAGNITUDES, distance = meaning / CJPEG_SMALL_MAGNITUDES;
        int value = cjpeg_extend(magnitude, 31 - (unsigned)__builtin_clz(magnitude));
        magnitudes->known[bits] = (uint32_t)(uint16_t)value << 16 | distance << 8 | (known & 255);
    }
}

static void make_steps(const cjpeg_codes *codes, cjpeg_steps *steps) {
    for (unsigned bits = 0; bits < 1 << CJPEG_LOOK; bits++) {
        unsigned taken = 0, distance = 0, end = 0;
        while (taken < CJPEG_LOOK && distance < MOST_STEPS && end == 0) {
            // Unknown bits count as zero.
            unsigned found = codes->symbol[bits << taken & ((1 << CJPEG_LOOK) - 1)];
            unsigned length = found >> 8, symbol = found & 255, category = symbol & 15;
            if (length == 0 || length > CJPEG_LOOK - taken) break;
            // A symbol that no baseline file has is not skipped.
            if (category > 10 || (category == 0 && symbol != 0 && symbol != 0xF0)) break;
            taken += length + category;
            if (symbol == 0) {
                end = CJPEG_END;
            } else {
                distance += (symbol >> 4) + 1;
            }
        }
        if (distance > MOST_STEPS) distance = MOST_STEPS;
        steps->known[bits] =
            (uint16_t)(taken == 0 ? CJPEG_UNKNOWN * CJPEG_STEP : taken + (distance + end) * CJPEG_STEP);
    }
}

// MARK: - Requantisation

static void make_requantisation(
    const JQUANT_TBL *from, const JQUANT_TBL *wanted, cjpeg_requantisation *to
) {
    memset(to, 0, sizeof *to);
    for (int place = 0; place < DCTSIZE2; place++) {
        int natural = cjpeg_natural_place[place];
        float ratio = (float)from->quantval[natural] / (float)wanted->quantval[natural];
        to->ratio[place] = ratio;
        uint32_t *small = to->small + place * CJPEG_SMALL_MAGNITUDES;
        for (int value = (1 << CJPEG_SMALL_BITS) - 1; value > 0; value--) {
            int result = cjpeg_requantised(value, ratio);
            // Then all smaller values become zero, too.
            if (result == 0) break;
            // A leading 1, then the bits of a positive value, or their inverse for the negative
            // one.
            int least = 1 << cjpeg_category(value);
            uint32_t symbol = cjpeg_symbol_of(result);
            small[least + value] = symbol;
            small[2 * least - 1 - value] = symbol ^ ((1u << (symbol >> 16)) - 1);
        }
    }
}

// MARK: - Tables of a thread

typedef struct {
    /// The source of the tables, and which of them are built.
    JHUFF_TBL table;
    bool is_made, has_magnitudes, has_steps;
    cjpeg_codes codes;
} cached_codes;

typedef struct {
    JQUANT_TBL from, wanted;
    bool is_made;
    cjpeg_requantisation requantisation;
} cached_requantisation;

struct cjpeg_table_cache {
    cached_codes dc[NUM_HUFF_TBLS], ac[NUM_HUFF_TBLS];
    cjpeg_magnitudes magnitudes[NUM_HUFF_TBLS];
    cjpeg_steps steps[NUM_HUFF_TBLS];
    cached_requantisation to_wanted[NUM_QUANT_TBLS];
};

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

static void make_key(void) { has_key = pthread_key_create(&key, free) == 0; }

static void return_tables(cjpeg_session *s) {
    if (!has_key || pthread_getspecific(key) != NULL || pthread_setspecific(key, s->tables) != 0) free(s->tables);
    s->tables = NULL;
}

bool cjpeg_take_tables(cjpeg_session *s) {
    if (s->tables != NULL) return true;
    pthread_once(&once, make_key);
    cjpeg_table_cache *cache = has_key ? pthread_getspecific(key) : NULL;
    if (cache == NULL) {
        cache = calloc(1, sizeof *cache);
    } else {
        pthread_setspecific(key, NULL);
    }
    s->tables = cache;
    s->return_tables = return_tables;
    return cache != NULL;
}

const cjpeg_codes *cjpeg_cached_codes(cjpeg_table_cache *cache, const JHUFF_TBL *table, bool is_dc, int slot) {
    cached_codes *codes = is_dc ? &cache->dc[slot] : &cache->ac[slot];
    bool is_same = memcmp(codes->table.bits, table->bits, sizeof table->bits) == 0
        && memcmp(codes->table.huffval, table->huffval, sizeof table->huffval) == 0;
    if (codes->is_made && is_same) return &codes->codes;
    codes->table = *table;
    codes->has_magnitudes = codes->has_steps = false;
    codes->is_made = make_codes(table, is_dc, &codes->codes);
    return codes->is_made ? &codes->codes : NULL;
}

const cjpeg_magnitudes *cjpeg_cached_magnitudes(cjpeg_table_cache *cache, int slot) {
    cached_codes *codes = &cache->ac[slot];
    if (!codes->has_magnitudes) make_magnitudes(&codes->codes, &cache->magnitudes[slot]);
    codes->has_magnitudes = true;
    return &cache->magnitudes[slot];
}

const cjpeg_steps *cjpeg_cached_steps(cjpeg_table_cache *cache, int slot) {
    cached_codes *codes = &cache->ac[slot];
    if (!codes->has_steps) make_steps(&codes->codes, &cache->steps[slot]);
    codes->has_steps = true;
    return &cache->steps[slot];
}

static bool is_same_table(const JQUANT_TBL *one, const JQUANT_TBL *other) {
    return memcmp(one->quantval, other->quantval, sizeof one->quantval) == 0;
}

const cjpeg_requantisation *cjpeg_cached_requantisation(
    cjpeg_table_cache *cache, const JQUANT_TBL *from, const JQUANT_TBL *wanted, int slot) {
    cached_requantisation *to = &cache->to_wanted[slot];
    if (to->is_made && is_same_table(&to->from, from) && is_same_table(&to->wanted, wanted)) return &to->requantisation;
    to->from = *from;
    to->wanted = *wanted;
    to->is_made = true;
    make_requantisation(from, wanted, &to->requantisation);
    return &to->requantisation;
}
