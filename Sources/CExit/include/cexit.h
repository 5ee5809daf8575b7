/// The end of the program.
#pragma once

/// Exits at once, whatever other threads do, without running destructors. Libraries' destructors
/// free memory that other threads still use. For example, libcurl resolves names on threads that
/// are never joined, and such a thread would crash.
///
/// Still writes coverage and checks for leaks, as `exit` would. Does not flush the C library's
/// streams, which hold no data of ours. A thread waiting in a read, such as libcurl with a pipe as
/// cookie file, holds the lock that flushing needs.
_Noreturn void cexit_end(int status);

/// The coverage part of ``cexit_end``, for a program that is about to die of a signal.
void cexit_save_coverage(void);
