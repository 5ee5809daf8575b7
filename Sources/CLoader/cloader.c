#include "cloader.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

void cloader_open(
    const char *library, const char *prefix, const char *const *names, void *functions,
    char *failure) {
    // Resolves all symbols now, so that an outdated or broken library fails here instead of in the
    // middle of a run.
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *reason = dlerror();
        snprintf(failure, CLOADER_MESSAGE_BYTES, "%s", reason ? reason : "unknown error");
        return;
    }
    for (size_t index = 0; names[index]; index++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", prefix, names[index]);
        void *function = dlsym(handle, name);
        if (!function) {
            memset(functions, 0, index * sizeof function);
            snprintf(failure, CLOADER_MESSAGE_BYTES, "%s: has no function %s", library, name);
            return;
        }
        memcpy((char *)functions + index * sizeof function, &function, sizeof function);
    }
}
