#include "StopAtStart.h"

#include <signal.h>

// Preloaded by Scripts/torture: the program stops when its libraries are loaded and before its own
// code runs, so that a tracer which is attached then does not count what the loader calls.
__attribute__((constructor)) static void stop(void) { raise(SIGSTOP); }
