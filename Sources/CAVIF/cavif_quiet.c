#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cavif_shim.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <dav1d/dav1d.h>

/// Replaces dav1d's function, which libavif calls before creating a decoder. It keeps the settings
/// but removes the logger, which would write about damaged images to standard error. libavif has no
/// setting for it.
///
/// The dynamic linker searches the program before libavif's dependencies. The package manifest
/// exports this one symbol from the program. The original is looked up through libavif's handle.
///
/// The logger has the same place in versions 6 and 7 of dav1d's interface; 6 does not tell its
/// number.
DAV1D_API void dav1d_default_settings(Dav1dSettings *settings) {
    void (*original)(Dav1dSettings *) = NULL;
    unsigned (*interface)(void) = NULL;
    const cavif_shim *shim = cavif_loaded_shim();
    void *libavif = shim != NULL ? shim->handle() : NULL;
    // POSIX's idiom, since C has no cast from an object to a function pointer.
    if (libavif) *(void **)&original = dlsym(libavif, "dav1d_default_settings");
    if (libavif) *(void **)&interface = dlsym(libavif, "dav1d_version_api");
    // Only libavif calls this, and only to create a dav1d decoder.
    if (original == NULL) abort();
    original(settings);
    if (interface == NULL || interface() >> 16 <= 7) settings->logger.callback = NULL;
}
