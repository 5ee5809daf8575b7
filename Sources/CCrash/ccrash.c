#include "ccrash.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DIGEST_BYTES = 32, MOST_NAME = 64 };

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
enum { FAULTS = sizeof faults / sizeof *faults };

static struct sigaction previous[FAULTS];
static int folder = -1;
static char file[MOST_NAME];

static _Thread_local uint8_t digest[DIGEST_BYTES];
static _Thread_local volatile sig_atomic_t is_decoding;

/// Writes a number's decimal digits without terminator; returns their count.
static size_t put_number(char *text, uint64_t number) {
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    for (size_t index = 0; index < count; index++) text[index] = digits[count - 1 - index];
    return count;
}

static void note(int signal) {
    char line[2 * DIGEST_BYTES + 48];
    size_t length = 0;
    for (size_t index = 0; index < DIGEST_BYTES; index++) {
        line[length++] = "0123456789abcdef"[digest[index] >> 4];
        line[length++] = "0123456789abcdef"[digest[index] & 15];
    }
    line[length++] = ' ';
    time_t now = time(NULL);
    length += put_number(line + length, now > 0 ? (uint64_t)now : 0);
    line[length++] = ' ';
    length += put_number(line + length, (uint64_t)signal);
    line[length++] = '\n';
    int descriptor = openat(
        folder, file, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (descriptor < 0) return;
    // A failed write cannot be reported; the next run will not know of the fault.
    ssize_t written = write(descriptor, line, length);
    (void)written;
    close(descriptor);
}

static void handle(int signal, siginfo_t *info, void *context) {
    // A signal from another process is no fault of this thread, and arrives only once.
    if (info->si_code == SI_USER || info->si_code == SI_QUEUE) {
        struct sigaction usual;
        memset(&usual, 0, sizeof usual);
        usual.sa_handler = SIG_DFL;
        sigaction(signal, &usual, NULL);
        raise(signal);
        return;
    }
    if (is_decoding && folder >= 0) {
        is_decoding = 0;
        int error = errno;
        note(signal);
        errno = error;
    }
    // The faulting instruction faults again, and `abort` raises its signal again.
    for (int index = 0; index < FAULTS; index++) {
        if (faults[index] == signal) sigaction(signal, &previous[index], NULL);
    }
}

void ccrash_install(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (int index = 0; index < FAULTS; index++) {
        sigaction(faults[index], &action, &previous[index]);
        // Respects signals that were ignored when the program started.
        if (previous[index].sa_handler == SIG_IGN) sigaction(faults[index], &previous[index], NULL);
    }
}

void ccrash_set_file(int directory, const char *name) {
    size_t length = strnlen(name, MOST_NAME - 1);
    memcpy(file, name, length);
    file[length] = 0;
    folder = directory;
}

void ccrash_enter(const uint8_t *bytes) {
    memcpy(digest, bytes, sizeof digest);
    is_decoding = 1;
}

void ccrash_leave(void) { is_decoding = 0; }

// MARK: - The end

// Present only in builds with coverage or the leak sanitizer.
extern int __llvm_profile_write_file(void) __attribute__((weak));
extern void __lsan_do_leak_check(void) __attribute__((weak));

void ccrash_save_coverage(void) {
    if (__llvm_profile_write_file) __llvm_profile_write_file();
}

void ccrash_end(int status) {
    ccrash_save_coverage();
    // Exits with its own status if it finds a leak.
    if (__lsan_do_leak_check) __lsan_do_leak_check();
    _exit(status);
}
