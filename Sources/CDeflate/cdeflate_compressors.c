#include "cdeflate_compressors.h"

#include <pthread.h>
#include <stddef.h>

enum { MOST_KEPT = 6 };

/// Indexed by level; NULL while in use, and before the first use.
static _Thread_local struct libdeflate_compressor *kept[MOST_KEPT + 1];

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int has_key;

static void free_kept(void *all) {
    struct libdeflate_compressor **compressors = all;
    for (int level = 0; level <= MOST_KEPT; level++) {
        libdeflate_free_compressor(compressors[level]);
        compressors[level] = NULL;
    }
}

static void make_key(void) { has_key = pthread_key_create(&key, free_kept) == 0; }

struct libdeflate_compressor *cdeflate_take_compressor(int level) {
    if (level > MOST_KEPT || kept[level] == NULL) return libdeflate_alloc_compressor(level);
    struct libdeflate_compressor *compressor = kept[level];
    kept[level] = NULL;
    return compressor;
}

void cdeflate_return_compressor(struct libdeflate_compressor *compressor, int level) {
    if (compressor == NULL) return;
    pthread_once(&once, make_key);
    // The key's destructor frees the cache with the thread; without a key nothing is cached.
    if (level <= MOST_KEPT && kept[level] == NULL && has_key
        && pthread_setspecific(key, kept) == 0) {
        kept[level] = compressor;
    } else {
        libdeflate_free_compressor(compressor);
    }
}
