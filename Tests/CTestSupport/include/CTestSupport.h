/* What starting a program needs of the C library and Swift's `Glibc` module does not show, since these
   are GNU and XSI extensions. Each returns 0 or an errno. */
#ifndef CTESTSUPPORT_H
#define CTESTSUPPORT_H

#include <sys/types.h>

/* Two ends of a pipe, reading one first; both closed on exec. */
int ctest_pipe(int ends[_Nonnull 2]);

/* A pseudo-terminal of 24 lines, both ends closed on exec and neither the caller's controlling
   terminal: ends[0] is the master, ends[1] the terminal. */
int ctest_terminal(int columns, int ends[_Nonnull 2]);

/* Starts `path` in `folder` with these three descriptors and no other, no signal blocked or ignored. */
int ctest_spawn(
    const char *_Nonnull path, const char *_Nonnull folder, char *_Nullable const *_Nonnull arguments,
    char *_Nullable const *_Nonnull environment, int input, int output, int error,
    pid_t *_Nonnull process);

#endif
