/// One of two ways to libavif, for the binary interfaces 15 (0.11) and 16 (1.x). Their structs have
/// other layouts, so each is compiled from the same code with the declarations of its own.
///
/// libavif is not linked, but loaded for the first AVIF. It depends on 22 libraries, encoders among
/// them. Loading them took a quarter of the time of a command that decodes nothing.
#pragma once

#include "cavif.h"

/// The functions of cavif.h. `load` comes first, and all others after it has succeeded.
typedef struct {
    const char *(*load)(void);
    const char *(*library_version)(void);
    /// For `dlsym`; NULL if the linker does not tell.
    void *(*handle)(void);
    void (*codec_versions)(char text[256]);
    __typeof__(cavif_read_header) *read_header;
    __typeof__(cavif_open) *open;
    __typeof__(cavif_next) *next;
    __typeof__(cavif_close) *close;
    __typeof__(cavif_copy_profile) *copy_profile;
    __typeof__(cavif_encode) *encode;
} cavif_shim;

extern const cavif_shim cavif_shim_15 __attribute__((visibility("hidden")));
extern const cavif_shim cavif_shim_16 __attribute__((visibility("hidden")));

/// The loaded one; NULL without a library.
const cavif_shim *cavif_loaded_shim(void) __attribute__((visibility("hidden")));
