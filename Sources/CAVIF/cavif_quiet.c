#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdlib.h>

#include <dav1d/dav1d.h>

/// In the place of dav1d's own, which libavif calls before each decoder that it makes: the same settings, without the
/// logger that writes to standard error what it thinks of a stranger's image. libavif has no setting for that.
///
/// The dynamic linker finds the program's symbol before the library's, and `RTLD_NEXT` the library's behind it.
DAV1D_API void dav1d_default_settings(Dav1dSettings *settings) {
    void (*original)(Dav1dSettings *) = NULL;
    // As POSIX has it, since C has no cast from an object to a function.
    *(void **)&original = dlsym(RTLD_NEXT, "dav1d_default_settings");
    // Without dav1d there is nobody to call this.
    if (original == NULL) abort();
    original(settings);
    settings->logger.callback = NULL;
}
