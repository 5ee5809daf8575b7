#include "ccurl.h"

#include "cloader.h"

struct ccurl_functions ccurl_functions;

CLOADER_LOAD(ccurl_load, CCURL_LIBRARY, "curl_", CCURL_FUNCTIONS, ccurl_functions)
