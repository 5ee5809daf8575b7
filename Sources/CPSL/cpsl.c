#include "cpsl.h"

#include <dlfcn.h>
#include <libpsl.h>
#include <pthread.h>
#include <stdio.h>

#define CPSL_LIBRARY "libpsl.so.5"

static struct {
    __typeof__(psl_builtin) *builtin;
    __typeof__(psl_registrable_domain) *registrable_domain;
} functions;

static const psl_ctx_t *list;

/// The reason why libpsl cannot be loaded; empty on success.
static char failure[512];

static void load(void) {
    // Never unloaded.
    void *library = dlopen(CPSL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror();
        snprintf(failure, sizeof failure, "%s", reason ? reason : "unknown");
        return;
    }
    functions.builtin = (__typeof__(psl_builtin) *)dlsym(library, "psl_builtin");
    functions.registrable_domain =
        (__typeof__(psl_registrable_domain) *)dlsym(library, "psl_registrable_domain");
    if (!functions.builtin || !functions.registrable_domain) {
        snprintf(failure, sizeof failure, "%s lacks a function", CPSL_LIBRARY);
        return;
    }
    list = functions.builtin();
    if (!list) snprintf(failure, sizeof failure, "%s has no list", CPSL_LIBRARY);
}

const char *cpsl_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return failure[0] ? failure : NULL;
}

const char *cpsl_registrable_domain(const char *host) {
    return functions.registrable_domain(list, host);
}
