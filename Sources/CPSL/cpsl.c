#include "cpsl.h"

#include "cloader.h"

#include <libpsl.h>

#define CPSL_LIBRARY "libpsl.so.5"

static struct {
    __typeof__(psl_builtin) *builtin;
    __typeof__(psl_registrable_domain) *registrable_domain;
} functions;

#define CPSL_FUNCTIONS(FUNCTION) FUNCTION(builtin) FUNCTION(registrable_domain)
static const char *load_functions(void);
CLOADER_LOAD(load_functions, CPSL_LIBRARY, "psl_", CPSL_FUNCTIONS, functions)

const char *cpsl_load(void) {
    const char *missing = load_functions();
    return missing || functions.builtin() ? missing : CPSL_LIBRARY " has no list";
}

const char *cpsl_registrable_domain(const char *host) {
    return functions.registrable_domain(functions.builtin(), host);
}
