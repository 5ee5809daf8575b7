#include "cjpeg_table_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

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
    codes->is_made = cjpeg_make_codes(table, is_dc, &codes->codes);
    return codes->is_made ? &codes->codes : NULL;
}

const cjpeg_magnitudes *cjpeg_cached_magnitudes(cjpeg_table_cache *cache, int slot) {
    cached_codes *codes = &cache->ac[slot];
    if (!codes->has_magnitudes) cjpeg_make_magnitudes(&codes->codes, &cache->magnitudes[slot]);
    codes->has_magnitudes = true;
    return &cache->magnitudes[slot];
}

const cjpeg_steps *cjpeg_cached_steps(cjpeg_table_cache *cache, int slot) {
    cached_codes *codes = &cache->ac[slot];
    if (!codes->has_steps) cjpeg_make_steps(&codes->codes, &cache->steps[slot]);
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
    cjpeg_make_requantisation(from, wanted, &to->requantisation);
    return &to->requantisation;
}
