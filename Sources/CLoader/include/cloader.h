/// Loads a library on first use instead of linking it: the system's, or else the
/// carried one, as in the tarball.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/// Enough for a path and a reason.
#define CLOADER_MESSAGE_BYTES 512

#pragma clang assume_nonnull begin

typedef struct {
    /// `libcurl.so.4`
    const char *file;
    const char *prefix;
    /// Without the prefix; NULL ends the list.
    const char *_Nullable const *_Nonnull names;
    /// Returns the reason why the functions, which are set, cannot be used; NULL if they can. May
    /// be NULL.
    const char *_Nullable (*_Nullable refusal)(void);
} cloader_library;

/// Loads a library, which is never unloaded, and finds all of its named functions, or none.
///
/// The carried library is in `../libexec/prefetch` from the program, and is loaded
/// if the system has none, or refuses it. All files there and both folders must belong to root or
/// the program's owner, and no other user may be able to write them.
///
/// - `functions`: receives one pointer for each name, in their order; all NULL after a failure.
/// - `failure`: has `CLOADER_MESSAGE_BYTES`, and is empty after success.
void cloader_open(const cloader_library *library, void *functions, char *failure);

/// Loads the first of several versions of a library that can be loaded, as ``cloader_open``.
///
/// - `files`: the preferred one first; its failure is told. NULL ends them.
/// - `library`: without a file.
void cloader_open_first(
    const char *_Nullable const *_Nonnull files, cloader_library library, void *functions,
    char *failure);

/// Finds a library by its file name where the dynamic linker usually looks, and among the carried
/// ones, without loading it. Finds no library of other folders that /etc/ld.so.conf names.
///
/// - `path`: has `PATH_MAX`, and receives the file's path without links; empty without one.
bool cloader_find(const char *file, char *path);

/// Returns the paths of the loaded libraries, in their order; NULL ends them. Any thread may call
/// it.
const char *_Nullable cloader_path(size_t index);

#pragma clang assume_nonnull end

#define CLOADER_NAME(name) #name,

/// Defines `load`. Its first call sets the struct `functions`, with the members of `list` in order.
/// It returns NULL, or the reason for the failure. Any thread may call it.
#define CLOADER_LOAD_UNLESS(load, library, prefix, list, functions, refusal) \
    static char load##_failure[CLOADER_MESSAGE_BYTES]; \
    static void load##_once(void) { \
        static const char *const names[] = {list(CLOADER_NAME) NULL}; \
        cloader_open( \
            &(cloader_library){library, prefix, names, refusal}, &functions, load##_failure); \
    } \
    const char *load(void) { \
        static pthread_once_t once = PTHREAD_ONCE_INIT; \
        pthread_once(&once, load##_once); \
        return load##_failure[0] ? load##_failure : NULL; \
    }

#define CLOADER_LOAD(load, library, prefix, list, functions) \
    CLOADER_LOAD_UNLESS(load, library, prefix, list, functions, NULL)
