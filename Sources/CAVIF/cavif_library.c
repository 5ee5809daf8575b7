#include "cavif_library.h"

#include "cloader.h"

#include <stdio.h>

struct cavif_functions cavif_functions;

CLOADER_LOAD(cavif_load, CAVIF_LIBRARY, "avif", CAVIF_FUNCTIONS, cavif_functions)

ccodec_status cavif_require(char message[CCODEC_MESSAGE_BYTES]) {
    const char *missing = cavif_load();
    snprintf(message, CCODEC_MESSAGE_BYTES, "%s", missing ? missing : "");
    return missing ? CCODEC_NO_LIBRARY : CCODEC_OK;
}
