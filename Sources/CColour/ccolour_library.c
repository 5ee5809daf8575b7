#include "ccolour_library.h"

#include "cloader.h"

struct ccolour_functions ccolour_functions;

CLOADER_LOAD(ccolour_load, CCOLOUR_LIBRARY, "cms", CCOLOUR_FUNCTIONS, ccolour_functions)

int ccolour_library_version(void) {
    return ccolour_load() ? 0 : ccolour_functions.GetEncodedCMMversion();
}
