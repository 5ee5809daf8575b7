#include "cavif_library.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <dav1d/dav1d.h>

/// In the place of dav1d's own, which libavif calls before each decoder that it makes: the same settings, without the
/// logger that writes to standard error what it thinks of a stranger's image. libavif has no setting for that.
///
/// The dynamic linker looks in the program before it looks in what libavif has brought along; that the program shows
/// this one symbol is a setting of its linking, in the package's manifest. The library's own is what libavif has.
DAV1D_API void dav1d_default_settings(Dav1dSettings *settings) {
    void (*original)(Dav1dSettings *) = NULL;
    // As POSIX has it, since C has no cast from an object to a function.
    *(void **)&original = dlsym(cavif_library, "dav1d_default_settings");
    // Only libavif calls this, and only to make a decoder of dav1d's.
    if (original == NULL) abort();
    original(settings);
    settings->logger.callback = NULL;
}
