#include "StopAtStart.h"

#include <signal.h>
#include <stdlib.h>

// Preloaded by Scripts/torture/run. Stops the program after its libraries are loaded and before its
// own code runs. So a tracer attached then does not count the loader's system calls. Other
// processes that the program starts do not stop.
__attribute__((constructor)) static void stop(void) {
    unsetenv("LD_PRELOAD");
    raise(SIGSTOP);
}
