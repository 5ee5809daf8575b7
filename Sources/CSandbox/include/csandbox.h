/// Walls around a process that decodes images: it can only compute and send results.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/// The descriptors of a worker; it has no others but the standard ones, which are /dev/null.
enum {
    /// A sealed memfd with the bytes of images.
    CSANDBOX_INPUT = 3,
    /// A sealed memfd for results.
    CSANDBOX_OUTPUT = 4,
    /// A socket of the type SEQPACKET to the parent.
    CSANDBOX_SOCKET = 5,
    /// A sealed memfd with a large image: the lowest free number, once a worker has closed the
    /// memory above.
    CSANDBOX_IMAGE = CSANDBOX_INPUT,
};

/// The walls around a worker, as bits of the mask below.
typedef enum csandbox_wall {
    /// No process gains rights by starting a program (prctl(2), PR_SET_NO_NEW_PRIVS).
    CSANDBOX_NO_NEW_PRIVILEGES,
    /// No other process of the user may read the memory, and there are no core dumps.
    CSANDBOX_NOT_DUMPABLE,
    /// No file can be opened (landlock(7)).
    CSANDBOX_LANDLOCK,
    /// No new files, processes and descriptors, and limited memory (setrlimit(2)).
    CSANDBOX_LIMITS,
    /// System calls outside the allow list end the process (seccomp(2)).
    CSANDBOX_SECCOMP,
    CSANDBOX_WALLS,
} csandbox_wall;

typedef struct csandbox_walls {
    /// A bit for each wall that holds.
    uint32_t holding;
    /// The `errno` of each other wall.
    int32_t errors[CSANDBOX_WALLS];
} csandbox_walls;

/// A system call of the allow list.
typedef struct csandbox_call {
    const char *name;
    int32_t number;
    /// The arguments that it is allowed with, in words; empty for all.
    const char *arguments;
    /// Why decoders need it.
    const char *reason;
} csandbox_call;

/// The allow list; nothing for processors without one.
uint32_t csandbox_call_count(void);
csandbox_call csandbox_call_at(uint32_t index);

/// Builds all walls around this process until it ends. `memory` limits the growth of its address
/// space in bytes. `left_out` is the index of a call that is not allowed, for tests; or -1.
csandbox_walls csandbox_lock(uint64_t memory, int32_t left_out);

/// Makes this process end with its parent, which has the given identifier. Returns false if the
/// parent has ended already.
bool csandbox_follow_parent(int32_t parent);

/// Sends a message and a descriptor. Returns false with `errno`.
bool csandbox_send(int socket, const void *bytes, size_t count, int descriptor);

/// Waits for a message of this size. Sets its descriptor, or -1. Returns false
/// at the end, and for other messages.
bool csandbox_receive(int socket, void *bytes, size_t count, int *descriptor);

/// Notes that the program is its own worker, unlike tests and benchmarks.
void csandbox_set_available(void);

/// Whether workers can be started: not before the note above, and not with a sanitizer of memory or
/// threads, which needs more calls.
bool csandbox_is_available(void);

#pragma clang assume_nonnull end
