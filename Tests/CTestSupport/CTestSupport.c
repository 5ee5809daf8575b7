#define _GNU_SOURCE
#include "CTestSupport.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

int ctest_pipe(int ends[2]) {
    return pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno;
}

int ctest_terminal(int columns, int ends[2]) {
    char name[64];
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0) {
        return errno;
    }
    if (grantpt(master) == 0 && unlockpt(master) == 0
        && ptsname_r(master, name, sizeof name) == 0) {
        ends[1] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (ends[1] >= 0) {
            ends[0] = master;
            return ioctl(ends[1], TIOCSWINSZ, &size) == 0 ? 0 : errno;
        }
    }
    int status = errno;
    close(master);
    return status;
}

int ctest_spawn(
    const char *path, const char *folder, char *const *arguments, char *const *environment,
    int input, int output, int error, pid_t *process) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int status = posix_spawn_file_actions_init(&actions);
    if (status != 0) {
        return status;
    }
    status = posix_spawnattr_init(&attributes);
    if (status != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return status;
    }
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    status = posix_spawn_file_actions_addchdir_np(&actions, folder);
    if (status == 0) {
        status = posix_spawn_file_actions_adddup2(&actions, input, 0);
    }
    if (status == 0) {
        status = posix_spawn_file_actions_adddup2(&actions, output, 1);
    }
    if (status == 0) {
        status = posix_spawn_file_actions_adddup2(&actions, error, 2);
    }
    if (status == 0) {
        /* The origins' sockets are not closed on exec. Otherwise a program would keep a port open
           that its test closes, and could connect to itself. */
        status = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    }
    if (status == 0) {
        status = posix_spawn(process, path, &actions, &attributes, arguments, environment);
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return status;
}
