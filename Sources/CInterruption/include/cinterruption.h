/// What ends the work on an image before it is done: a flag that another thread sets, or a limit of
/// processor time. The codecs' C targets look at it in every loop whose length follows from the
/// image.
#ifndef CINTERRUPTION_H
#define CINTERRUPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

typedef enum {
    CINTERRUPTION_NONE = 0,
    /// The flag was set.
    CINTERRUPTION_CANCELLED,
    /// The time is over.
    CINTERRUPTION_LATE,
} cinterruption_cause;

/// Any number of interruptions may look at the same flag; it begins as zero.
typedef struct {
    uint32_t is_set;
} cinterruption_flag;

/// Of one image, for the one thread that works on it.
typedef struct {
    /// NULL where nobody can cancel.
    const cinterruption_flag *_Nullable flag;
    /// Of the thread's processor time, by its own clock; 0 for none.
    uint64_t deadline_nanoseconds;
    /// By the monotonic clock, before which that cannot be: no thread takes more processor time than there is time.
    /// To ask it takes 30 ns in place of a system call, which was 2 % of a run's processor time.
    uint64_t earliest_nanoseconds;
    /// Bytes worked on since the last look.
    uint64_t unseen_bytes;
    /// Once there is one it stays, so that all work that follows ends at its first look.
    cinterruption_cause cause;
} cinterruption;

/// Sets the flag. Any thread may call it at any time.
void cinterruption_set(cinterruption_flag *flag);

/// Begins the time of the calling thread: the deadline is reached after so many nanoseconds of its processor time; 0 for
/// never.
void cinterruption_begin(cinterruption *interruption, uint64_t nanoseconds);

/// Looks at flag and clocks, and answers whether there is a cause to stop.
bool cinterruption_look(cinterruption *interruption);

/// Answers whether there is a cause to stop, after so many more bytes. Nothing is looked at for less than 64 KiB.
/// NULL is never interrupted.
static inline bool cinterruption_after(
    cinterruption *_Nullable interruption, uint64_t bytes) {
    if (interruption == NULL) return false;
    interruption->unseen_bytes += bytes;
    if (interruption->unseen_bytes < 65536) return interruption->cause != CINTERRUPTION_NONE;
    return cinterruption_look(interruption);
}

#pragma clang assume_nonnull end

#endif
