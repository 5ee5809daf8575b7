/// Program termination: fault handlers that record the image being decoded, and a safe exit.
///
/// A fault (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT) runs its handler on the faulting
/// thread. The handler calls only async-signal-safe functions (POSIX.1-2017 section 2.4.3) and then
/// restores the previous handler, so that the program still dies of the signal.
#pragma once

#include <stdint.h>

#pragma clang assume_nonnull begin

/// Installs the handlers; call once, before other threads exist.
void ccrash_install(void);

/// Sets the file for fault records: `name`, at most 63 bytes, in the open folder; created when
/// needed. The name is copied; -1 stops recording. Call while no thread is between ``ccrash_enter``
/// and ``ccrash_leave``.
void ccrash_set_file(int directory, const char *name);

/// Marks the start of decoding, on this thread, of the bytes with this SHA-256 (32 bytes, copied).
///
/// A fault before ``ccrash_leave`` appends the line `SHA-256 SECONDS SIGNAL`: hexadecimal digits,
/// seconds since 1970 UTC, and the signal's number.
void ccrash_enter(const uint8_t *digest);
void ccrash_leave(void);

/// Exits at once, whatever other threads do, without running destructors. Libraries' destructors
/// free memory that other threads still use. For example, libcurl resolves names on threads that
/// are never joined, and such a thread would crash.
///
/// Still writes coverage and checks for leaks, as `exit` would. Does not flush the C library's
/// streams, which hold no data of ours. A thread waiting in a read, such as libcurl with a pipe as
/// cookie file, holds the lock that flushing needs.
_Noreturn void ccrash_end(int status);
/// The coverage part of ``ccrash_end``, for a program that is about to die of a signal.
void ccrash_save_coverage(void);

#pragma clang assume_nonnull end
