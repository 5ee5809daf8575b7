#include "ccurl.h"

#include "cloader.h"

struct ccurl_functions ccurl_functions;

/// Refuses versions before 7.88.
static const char *refusal(void) {
    return ccurl_functions.version_info(CURLVERSION_NOW)->version_num < 0x075800
        ? "older than libcurl 7.88" : NULL;
}

CLOADER_LOAD_UNLESS(ccurl_load, CCURL_LIBRARY, "curl_", CCURL_FUNCTIONS, ccurl_functions, refusal)
