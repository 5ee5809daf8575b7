#include "ccolour_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

struct ccolour_functions ccolour_functions;

/// The reason why Little CMS cannot be loaded; empty on success.
static char failure[256];

static void load(void) {
    // Resolves all symbols now, so a broken library fails here. Never unloaded.
    void *library = dlopen(CCOLOUR_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror();
        snprintf(failure, sizeof failure, "%s", reason ? reason : CCOLOUR_LIBRARY ": unknown error");
        return;
    }
    struct ccolour_functions found;
#define FIND(name) \
    found.name = (__typeof__(cms##name) *)dlsym(library, "cms" #name); \
    if (!found.name) { \
        snprintf(failure, sizeof failure, "%s: has no function cms%s", CCOLOUR_LIBRARY, #name); \
        return; \
    }
    CCOLOUR_FUNCTIONS(FIND)
#undef FIND
    ccolour_functions = found;
}

const char *ccolour_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return failure[0] ? failure : NULL;
}

int ccolour_library_version(void) {
    return ccolour_load() ? 0 : ccolour_functions.GetEncodedCMMversion();
}
