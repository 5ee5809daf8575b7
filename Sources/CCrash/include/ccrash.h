/// How the program ends: by a fault, with a note of which bytes were being decoded, or by itself.
///
/// A fault (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT) runs its handler on the thread that
/// made it. The handler calls only what may be called there (POSIX.1-2017 section 2.4.3) and leaves
/// the rest to what was set before: the program dies of the signal as it would without it.
#ifndef CCRASH_H
#define CCRASH_H

#include <stdint.h>

#pragma clang assume_nonnull begin

/// Installs the handlers; called once, before there are other threads.
void ccrash_install(void);

/// Where faults are noted from now on: in the file `name` of the open folder, which it makes when
/// it has to. The name, of at most 63 bytes, is copied; -1 ends it. Called while no thread is
/// between ``ccrash_enter`` and ``ccrash_leave``.
void ccrash_set_file(int directory, const char *name);

/// This thread begins to decode the bytes with that SHA-256 (32 bytes, copied).
///
/// A fault before ``ccrash_leave`` adds the line `SHA-256 SECONDS SIGNAL`: in hexadecimal digits,
/// since 1970 UTC, and by its number.
void ccrash_enter(const uint8_t *digest);
void ccrash_leave(void);

/// Ends the program with a status, whatever its threads do, and runs no destructors: those of
/// libraries free what other threads use, their own included (libcurl resolves names on threads
/// that nobody waits for), and a thread that ends meanwhile finds its heap in ruins.
///
/// What else an `exit` does is done: coverage is written, leaks are looked for. The C library's
/// streams are left alone: nothing of ours is in them, and a thread that blocks while it reads one
/// (libcurl with a cookie file that is a pipe) holds a lock that flushing waits for.
_Noreturn void ccrash_end(int status);
/// The first of these, for a program that is about to die of a signal.
void ccrash_save_coverage(void);

#pragma clang assume_nonnull end

#endif
