/* Process creation with GNU and XSI extensions that Swift's `Glibc` module lacks. All functions
   return 0 or an errno. */
#ifndef CTESTSUPPORT_H
#define CTESTSUPPORT_H

#include <sys/types.h>

/* Creates a pipe, reading end first; both ends are closed on exec. */
int ctest_pipe(int ends[_Nonnull 2]);

/* Creates a pseudo-terminal of 24 lines: ends[0] is the master, ends[1] the terminal. Both are
   closed on exec; the caller's controlling terminal does not change. */
int ctest_terminal(int columns, int ends[_Nonnull 2]);

/* Starts `path` in `folder` with only these three descriptors and with default signal handling. */
int ctest_spawn(
    const char *_Nonnull path, const char *_Nonnull folder, char *_Nullable const *_Nonnull arguments,
    char *_Nullable const *_Nonnull environment, int input, int output, int error,
    pid_t *_Nonnull process);

#endif
