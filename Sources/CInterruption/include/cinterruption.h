/// Ends the work on an image early: a flag that another thread sets, or a limit of processor time.
/// The codecs' C targets check it in every loop as long as the image is large, and return a
/// status.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/// How a call of a codec's C target ended; each target returns those that apply to it.
typedef enum {
    CCODEC_OK = 0,
    /// The data is damaged: an error, or a warning that means lost data.
    CCODEC_CORRUPT,
    /// The data ends before the image is complete.
    CCODEC_TRUNCATED,
    /// A legal file of a kind that the library does not decode.
    CCODEC_UNSUPPORTED,
    /// A limit of the caller, such as the most bytes of output, or of the library was exceeded.
    CCODEC_LIMIT,
    CCODEC_OUT_OF_MEMORY,
    /// The picture was read, but cannot be written in the requested form.
    CCODEC_FAILED,
    /// Interrupted; the interruption says why. The output is undefined.
    CCODEC_INTERRUPTED,
    /// The library cannot be loaded; the message says why.
    CCODEC_NO_LIBRARY,
} ccodec_status;

/// For a text of one line, empty if there is nothing to say.
#define CCODEC_MESSAGE_BYTES 256

/// Rows from the top, 8-bit samples in the order grey · grey, alpha · red, green, blue · red,
/// green, blue, alpha. Alpha is straight.
typedef struct {
    /// The first sample of the first row.
    uint8_t *pixels;
    /// Distance between rows, in bytes.
    size_t stride;
    /// In pixels, 1 or more, like the height.
    uint32_t width;
    uint32_t height;
    /// 1 to 4 samples a pixel.
    int channels;
} ccodec_picture;

typedef enum {
    CINTERRUPTION_NONE = 0,
    /// The flag was set.
    CINTERRUPTION_CANCELLED,
    /// The time is up.
    CINTERRUPTION_LATE,
} cinterruption_cause;

/// Any number of interruptions may share a flag; it starts as zero.
typedef struct {
    uint32_t is_set;
} cinterruption_flag;

/// The interruption of one image, for the one thread that works on it.
typedef struct {
    /// NULL if it cannot be cancelled.
    const cinterruption_flag *_Nullable flag;
    /// By the thread's processor-time clock; 0 for none.
    uint64_t deadline_nanoseconds;
    /// By the monotonic clock, the earliest time at which the deadline can be reached: processor
    /// time never exceeds elapsed time. Reading it takes 30 ns and no system call, which was 2 % of
    /// a run's processor time.
    uint64_t earliest_nanoseconds;
    /// Bytes processed since the last check.
    uint64_t unseen_bytes;
    /// Once set it stays, so that all later work ends at its first check.
    cinterruption_cause cause;
} cinterruption;

/// Sets the flag. Any thread may call it at any time.
void cinterruption_set(cinterruption_flag *flag);

/* Whether the flag is set. */
bool cinterruption_is_set(const cinterruption_flag *flag);

/// Starts the calling thread's time: the deadline is after that many nanoseconds of its processor
/// time; 0 for never.
void cinterruption_begin(cinterruption *interruption, uint64_t nanoseconds);

/// Processor time of the calling thread, in nanoseconds.
uint64_t cinterruption_processor_time(void);

/// Checks flag and clocks, and returns whether to stop.
bool cinterruption_look(cinterruption *interruption);

/// Adds processed bytes, and returns whether to stop. Checks nothing before 64 KiB. NULL is never
/// interrupted.
static inline bool cinterruption_after(
    cinterruption *_Nullable interruption, uint64_t bytes) {
    if (interruption == NULL) return false;
    interruption->unseen_bytes += bytes;
    if (interruption->unseen_bytes < 65536) return interruption->cause != CINTERRUPTION_NONE;
    return cinterruption_look(interruption);
}

#pragma clang assume_nonnull end
