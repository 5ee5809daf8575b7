#include "ccurl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

struct ccurl_functions ccurl_functions;

/// The reason why libcurl cannot be loaded; empty otherwise. Large enough for a path and a reason.
static char failure[512];

static void load(void) {
    // RTLD_NOW, so that an outdated or broken library fails here instead of in the middle of a run.
    // Never unloaded.
    void *library = dlopen(CCURL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror();
        snprintf(failure, sizeof failure, "%s", reason ? reason : CCURL_LIBRARY ": unknown error");
        return;
    }
    struct ccurl_functions found;
#define FIND(name) \
    found.name = (__typeof__(curl_##name) *)dlsym(library, "curl_" #name); \
    if (!found.name) { \
        snprintf(failure, sizeof failure, "%s: has no function curl_%s", CCURL_LIBRARY, #name); \
        return; \
    }
    CCURL_FUNCTIONS(FIND)
#undef FIND
    ccurl_functions = found;
}

const char *ccurl_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return failure[0] ? failure : NULL;
}
