#include "cstart.h"

static int count;
static char **arguments;

/// Keeps the arguments before `main`. Swift's runtime looks for them next to `environ`, in a range
/// of addresses that it reads from /proc/self/maps. It finds none once a preloaded library has set
/// an environment variable, nor without /proc. glibc passes them to every initialiser.
__attribute__((constructor)) static void keep(int argc, char **argv) {
    count = argc;
    arguments = argv;
}

int cstart_argument_count(void) { return count; }

const char *cstart_argument(int index) { return arguments[index]; }
