#include "cavif_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

struct cavif_functions cavif_functions;
void *cavif_library;

/// The reason why libavif cannot be loaded; empty on success.
static char failure[CCODEC_MESSAGE_BYTES];

static void load(void) {
    // Resolves all symbols now, so a broken library fails here. Never unloaded.
    cavif_library = dlopen(CAVIF_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!cavif_library) {
        const char *reason = dlerror();
        snprintf(failure, sizeof failure, "%s", reason ? reason : CAVIF_LIBRARY ": unknown error");
        return;
    }
    struct cavif_functions found;
#define FIND(name) \
    found.name = (__typeof__(avif##name) *)dlsym(cavif_library, "avif" #name); \
    if (!found.name) { \
        snprintf(failure, sizeof failure, "%s: has no function avif%s", CAVIF_LIBRARY, #name); \
        return; \
    }
    CAVIF_FUNCTIONS(FIND)
#undef FIND
    cavif_functions = found;
}

const char *cavif_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return failure[0] ? failure : NULL;
}

ccodec_status cavif_require(char message[CCODEC_MESSAGE_BYTES]) {
    const char *missing = cavif_load();
    snprintf(message, CCODEC_MESSAGE_BYTES, "%s", missing ? missing : "");
    return missing ? CCODEC_NO_LIBRARY : CCODEC_OK;
}
