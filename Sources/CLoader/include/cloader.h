/// Loads a system's library on first use instead of linking it.
#pragma once

#include <pthread.h>
#include <stddef.h>

/// Enough for a path and a reason.
#define CLOADER_MESSAGE_BYTES 512

/// Loads a library, which is never unloaded, and finds all of its named functions, or none.
///
/// - `names`: without the prefix; NULL ends the list.
/// - `functions`: receives one pointer for each name, in their order; all NULL after a failure.
/// - `failure`: has `CLOADER_MESSAGE_BYTES`, and stays empty on success.
void cloader_open(
    const char *library, const char *prefix, const char *const *names, void *functions,
    char *failure);

#define CLOADER_NAME(name) #name,

/// Defines `load`. Its first call sets the struct `functions`, with the members of `list` in order.
/// It returns NULL, or the reason for the failure. Any thread may call it.
#define CLOADER_LOAD(load, library, prefix, list, functions) \
    static char load##_failure[CLOADER_MESSAGE_BYTES]; \
    static void load##_once(void) { \
        static const char *const names[] = {list(CLOADER_NAME) NULL}; \
        cloader_open(library, prefix, names, &functions, load##_failure); \
    } \
    const char *load(void) { \
        static pthread_once_t once = PTHREAD_ONCE_INIT; \
        pthread_once(&once, load##_once); \
        return load##_failure[0] ? load##_failure : NULL; \
    }
