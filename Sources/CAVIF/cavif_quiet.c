#include "cavif_library.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <dav1d/dav1d.h>

/// Replaces dav1d's function, which libavif calls before creating a decoder. It keeps the settings
/// but removes the logger, which would write about damaged images to standard error. libavif has no
/// setting for it.
///
/// The dynamic linker searches the program before libavif's dependencies. The package manifest
/// exports this one symbol from the program. The original is looked up through libavif's handle.
DAV1D_API void dav1d_default_settings(Dav1dSettings *settings) {
    void (*original)(Dav1dSettings *) = NULL;
    void *libavif = dlopen(CAVIF_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    // POSIX's idiom, since C has no cast from an object to a function pointer.
    if (libavif) *(void **)&original = dlsym(libavif, "dav1d_default_settings");
    // Only libavif calls this, and only to create a dav1d decoder.
    if (original == NULL) abort();
    original(settings);
    settings->logger.callback = NULL;
}
