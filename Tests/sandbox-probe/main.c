// For tests of workers: the system calls that the walls let through, and a hostile worker.
//
// Usage: sandbox-probe calls      prints each number of a call, and the signal that ended a process
//                                 behind the walls that made it, or 0
//        sandbox-probe list       prints the allow list: number, name, arguments, reason
//        sandbox-probe walls      exits with 0 if all walls hold here
//        sandbox-probe arguments  prints calls with arguments that are not allowed, and the signal
//        sandbox-probe --decoding-worker PARENT TESTS AVIF SEED
//                                 is a worker that sends nonsense
#define _GNU_SOURCE
#include "csandbox.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLS = 512 };

/// Makes a call behind the walls, in another process. Returns the signal that ended it.
static int signal_of(long number, const long *arguments) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        // Standard streams are no way out, either.
        dup2(open("/dev/null", O_RDWR), CSANDBOX_SOCKET);
        csandbox_walls walls = csandbox_lock(1ull << 30, -1);
        if (walls.holding != (1u << CSANDBOX_WALLS) - 1) _exit(1);
        syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], 0L);
        syscall(SYS_exit_group, 0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return -1;
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) == 0 ? 0 : -1;
}

// MARK: - A hostile worker

enum { NUMBERS = 8, READY = 7, NEEDS = 8, DONE = 9, KINDS = 12, IMAGE = 65536 };
static uint64_t state;
static atomic_int changes;

static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static int64_t extreme(void) {
    static const int64_t numbers[] = {
        0, 1, -1, INT64_MAX, INT64_MIN, 1ll << 31, 1ll << 32, 4096, (1 << 20) - 1, 1 << 20};
    return numbers[next() % (sizeof numbers / sizeof *numbers)];
}

static void say(int64_t kind, int64_t first) {
    int64_t message[NUMBERS] = {kind, first};
    ssize_t written = write(CSANDBOX_SOCKET, message, sizeof message);
    (void)written;
}

/// Changes the first numbers of the output all the time, in some rounds.
static void *change(void *output) {
    for (uint64_t round = 1;; round++) {
        if (changes) ((volatile uint8_t *)output)[round * 7919 % 1024] ^= (uint8_t)round;
        else usleep(1000);
    }
    return NULL;
}

static int misbehave(uint64_t seed) {
    struct stat input_status, output_status;
    if (fstat(CSANDBOX_INPUT, &input_status) || fstat(CSANDBOX_OUTPUT, &output_status)) return 1;
    uint8_t *input = mmap(
        NULL, (size_t)input_status.st_size, PROT_READ, MAP_SHARED, CSANDBOX_INPUT, 0);
    uint8_t *output = mmap(
        NULL, (size_t)output_status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, CSANDBOX_OUTPUT, 0);
    if (input == MAP_FAILED || output == MAP_FAILED) return 1;
    state = seed * 0x9E3779B97F4A7C15u | 1;
    for (int round = 0; round < 8; round++) next();
    pthread_t thread;
    if (pthread_create(&thread, NULL, change, output)) return 1;
    int64_t message[NUMBERS];
    while (read(CSANDBOX_SOCKET, message, sizeof message) == sizeof message) {
        if (message[0] == 1) {
            say(next() % 16 ? READY : (int64_t)(next() % KINDS), next() % 8 ? 31 : extreme());
            continue;
        }
        // Recipes, and reserved memory.
        if (message[0] == 2 || message[0] == 6) continue;
        changes = 0;
        // The result to send is behind the image; its length is the number of the recipes.
        memcpy(output, input + message[1] + IMAGE, (size_t)message[2] - IMAGE);
        int64_t length = message[3];
        for (uint64_t left = next() % 3; left > 0; left--) {
            size_t place = next() % (size_t)length;
            int64_t number = extreme();
            if (next() % 2) output[place] = (uint8_t)next();
            else memcpy(output + place, &number, sizeof number);
        }
        for (uint64_t left = next() % 3; left > 0; left--) say(NEEDS, extreme());
        switch (next() % 24) {
        case 0: return 3;
        case 1: raise((int)(next() % 2 ? SIGSEGV : SIGKILL)); break;
        case 2: say((int64_t)(next() % KINDS), extreme()); return 0;
        case 3: write(CSANDBOX_SOCKET, message, next() % sizeof message) < 0 ? abort() : (void)0; break;
        case 4: csandbox_send(CSANDBOX_SOCKET, message, sizeof message, CSANDBOX_INPUT); break;
        case 5: shutdown(CSANDBOX_SOCKET, SHUT_RDWR); break;
        case 6: say(DONE, extreme()); break;
        case 7: changes = 1; say(DONE, length); break;
        default: say(next() % 8 ? DONE : DONE + 1, length); break;
        }
    }
    return 0;
}

int main(int count, char **arguments) {
    if (count == 6) return misbehave((uint64_t)atoll(arguments[5]) + 1);
    if (count != 2) return 64;
    if (strcmp(arguments[1], "list") == 0) {
        for (uint32_t index = 0; index < csandbox_call_count(); index++) {
            csandbox_call call = csandbox_call_at(index);
            printf("%d\t%s\t%s\t%s\n", call.number, call.name, call.arguments, call.reason);
        }
    } else if (strcmp(arguments[1], "calls") == 0) {
        for (long number = 0; number < CALLS; number++) {
            // As an anonymous mapping, and on the right descriptors.
            long values[5] = {0};
            if (number == SYS_mmap) values[4] = -1;
            if (number == SYS_recvmsg || number == SYS_write) values[0] = CSANDBOX_SOCKET;
            if (number == SYS_writev) values[0] = STDERR_FILENO;
            if (number == SYS_close) values[0] = CSANDBOX_IMAGE;
            // Its own process has another number than this one's, which tgkill would need.
            if (number == SYS_tgkill) continue;
            printf("%ld %d\n", number, signal_of(number, values));
        }
    } else if (strcmp(arguments[1], "walls") == 0) {
        csandbox_walls walls = csandbox_lock(1ull << 30, -1);
        syscall(SYS_exit_group, walls.holding != (1u << CSANDBOX_WALLS) - 1);
    } else if (strcmp(arguments[1], "arguments") == 0) {
        static char byte[1];
        const struct { const char *name; long number, values[5]; } calls[] = {
            {"recvmsg", SYS_recvmsg, {CSANDBOX_IMAGE, (long)byte, 0}},
            {"close", SYS_close, {CSANDBOX_SOCKET}},
            {"write", SYS_write, {1, (long)byte, 1}},
            {"writev", SYS_writev, {CSANDBOX_SOCKET, (long)byte, 0}},
            {"mmap", SYS_mmap, {0, 4096, PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1}},
            {"mmap", SYS_mmap, {0, 4096, PROT_READ, MAP_SHARED, CSANDBOX_SOCKET}},
            {"mmap", SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE, CSANDBOX_IMAGE}},
            {"mmap", SYS_mmap, {0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, CSANDBOX_IMAGE}},
            {"mmap", SYS_mmap, {0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, CSANDBOX_IMAGE}},
            {"clock_gettime", SYS_clock_gettime, {-16 | 2, 0}},
            {"tgkill", SYS_tgkill, {getpid(), getpid(), 0}},
        };
        for (size_t index = 0; index < sizeof calls / sizeof *calls; index++) {
            printf("%s %d\n", calls[index].name, signal_of(calls[index].number, calls[index].values));
        }
    } else {
        return 64;
    }
    return 0;
}
