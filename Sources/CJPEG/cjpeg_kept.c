#include "cjpeg_kept.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    /// Of what; and whether it is made.
    JHUFF_TBL table;
    bool is_made, has_values, has_steps;
    cjpeg_codes codes;
} kept_codes;

typedef struct {
    JQUANT_TBL from, wanted;
    bool is_made;
    cjpeg_requantisation requantisation;
} kept_requantisation;

struct cjpeg_kept {
    kept_codes dc[NUM_HUFF_TBLS], ac[NUM_HUFF_TBLS];
    cjpeg_values values[NUM_HUFF_TBLS];
    cjpeg_steps steps[NUM_HUFF_TBLS];
    kept_requantisation to_wanted[NUM_QUANT_TBLS];
};

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

static void make_key(void) { has_key = pthread_key_create(&key, free) == 0; }

bool cjpeg_take_kept(cjpeg_session *s) {
    if (s->kept != NULL) return true;
    pthread_once(&once, make_key);
    cjpeg_kept *kept = has_key ? pthread_getspecific(key) : NULL;
    if (kept == NULL) {
        kept = calloc(1, sizeof *kept);
    } else {
        pthread_setspecific(key, NULL);
    }
    s->kept = kept;
    return kept != NULL;
}

void cjpeg_give_back_kept(cjpeg_session *s) {
    if (s->kept == NULL) return;
    if (!has_key || pthread_getspecific(key) != NULL || pthread_setspecific(key, s->kept) != 0) free(s->kept);
    s->kept = NULL;
}

const cjpeg_codes *cjpeg_kept_codes(cjpeg_kept *kept, const JHUFF_TBL *table, bool is_dc, int slot) {
    kept_codes *codes = is_dc ? &kept->dc[slot] : &kept->ac[slot];
    bool is_same = memcmp(codes->table.bits, table->bits, sizeof table->bits) == 0
        && memcmp(codes->table.huffval, table->huffval, sizeof table->huffval) == 0;
    if (codes->is_made && is_same) return &codes->codes;
    codes->table = *table;
    codes->has_values = codes->has_steps = false;
    codes->is_made = cjpeg_make_codes(table, is_dc, &codes->codes);
    return codes->is_made ? &codes->codes : NULL;
}

const cjpeg_values *cjpeg_kept_values(cjpeg_kept *kept, int slot) {
    kept_codes *codes = &kept->ac[slot];
    if (!codes->has_values) cjpeg_make_values(&codes->codes, &kept->values[slot]);
    codes->has_values = true;
    return &kept->values[slot];
}

const cjpeg_steps *cjpeg_kept_steps(cjpeg_kept *kept, int slot) {
    kept_codes *codes = &kept->ac[slot];
    if (!codes->has_steps) cjpeg_make_steps(&codes->codes, &kept->steps[slot]);
    codes->has_steps = true;
    return &kept->steps[slot];
}

static bool is_same_table(const JQUANT_TBL *one, const JQUANT_TBL *other) {
    return memcmp(one->quantval, other->quantval, sizeof one->quantval) == 0;
}

const cjpeg_requantisation *cjpeg_kept_requantisation(
    cjpeg_kept *kept, const JQUANT_TBL *from, const JQUANT_TBL *wanted, int slot) {
    kept_requantisation *to = &kept->to_wanted[slot];
    if (to->is_made && is_same_table(&to->from, from) && is_same_table(&to->wanted, wanted)) return &to->requantisation;
    to->from = *from;
    to->wanted = *wanted;
    to->is_made = true;
    cjpeg_make_requantisation(from, wanted, &to->requantisation);
    return &to->requantisation;
}
