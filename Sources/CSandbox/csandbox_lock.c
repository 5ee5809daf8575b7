#define _GNU_SOURCE
#include "csandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

typedef enum rule {
    ANY, ON_SOCKET, ON_OUTPUT, ON_ERRORS, ON_IMAGE, MAPPING, OWN_CLOCK, OWN_PROCESS
} rule;

static const char *const rule_texts[] = {
    [ANY] = "",
    [ON_SOCKET] = "on the socket",
    [ON_OUTPUT] = "on the socket, and standard error, which is /dev/null",
    [ON_ERRORS] = "on standard error, which is /dev/null",
    [ON_IMAGE] = "of a received image",
    [MAPPING] = "anonymous, not executable; a received image, only readable",
    [OWN_CLOCK] = "the system's and its own",
    [OWN_PROCESS] = "to this process",
};

#ifdef ARCHITECTURE
static const struct {
    csandbox_call call;
    rule rule;
} calls[] = {
#define CALL(name, rule, reason) {{#name, SYS_##name, "", reason}, rule},
#include "csandbox_calls.h"
#undef CALL
};
enum { CALLS = sizeof calls / sizeof *calls };
#else
enum { CALLS = 0 };
#endif

uint32_t csandbox_call_count(void) { return CALLS; }

csandbox_call csandbox_call_at(uint32_t index) {
#ifdef ARCHITECTURE
    csandbox_call call = calls[index].call;
    call.arguments = rule_texts[calls[index].rule];
    return call;
#else
    (void)index;
    return (csandbox_call){"", -1, rule_texts[ANY], ""};
#endif
}

// MARK: - seccomp

#ifdef ARCHITECTURE
enum { MOST_INSTRUCTIONS = 8 + 16 * CALLS };

typedef struct program {
    struct sock_filter instructions[MOST_INSTRUCTIONS];
    unsigned short count;
} program;

static void put(program *program, uint16_t code, uint32_t value, uint8_t if_true, uint8_t if_false) {
    program->instructions[program->count++] = (struct sock_filter)BPF_JUMP(
        code, value, if_true, if_false);
}

static void put_return(program *program, uint32_t action) {
    put(program, BPF_RET | BPF_K, action, 0, 0);
}

/// Loads the lower or the upper half of an argument; the processors are little-endian.
static void put_load(program *program, int argument, bool is_upper) {
    uint32_t offset = (uint32_t)offsetof(struct seccomp_data, args)
        + (uint32_t)argument * sizeof(uint64_t) + (is_upper ? sizeof(uint32_t) : 0);
    put(program, BPF_LD | BPF_W | BPF_ABS, offset, 0, 0);
}

/// Ends the process unless an argument, of 32 bits, has this value.
static void put_equal(program *program, int argument, uint32_t value) {
    put_load(program, argument, false);
    put(program, BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0);
    put_return(program, SECCOMP_RET_KILL_PROCESS);
}

/// Ends the process if an argument has any of these bits.
static void put_without(program *program, int argument, uint32_t bits) {
    put_load(program, argument, false);
    put(program, BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
    put_return(program, SECCOMP_RET_KILL_PROCESS);
}

static void put_rule(program *program, rule rule) {
    switch (rule) {
    case ANY: break;
    case ON_SOCKET: put_equal(program, 0, CSANDBOX_SOCKET); break;
    case ON_OUTPUT:
        put_load(program, 0, false);
        put(program, BPF_JMP | BPF_JEQ | BPF_K, STDERR_FILENO, 2, 0);
        put(program, BPF_JMP | BPF_JEQ | BPF_K, CSANDBOX_SOCKET, 1, 0);
        put_return(program, SECCOMP_RET_KILL_PROCESS);
        break;
    case ON_ERRORS: put_equal(program, 0, STDERR_FILENO); break;
    case ON_IMAGE: put_equal(program, 0, CSANDBOX_IMAGE); break;
    case MAPPING:
        // The descriptor is -1 with MAP_ANONYMOUS.
        put_load(program, 4, false);
        put(program, BPF_JMP | BPF_JEQ | BPF_K, UINT32_MAX, 0, 4);
        put_without(program, 2, PROT_EXEC);
        put_return(program, SECCOMP_RET_ALLOW);
        put_equal(program, 4, CSANDBOX_IMAGE);
        put_equal(program, 2, PROT_READ);
        put_equal(program, 3, MAP_SHARED);
        break;
    case OWN_CLOCK:
        // Clocks of other processes have numbers above, as unsigned ones.
        put_load(program, 0, false);
        put(program, BPF_JMP | BPF_JGT | BPF_K, CLOCK_BOOTTIME, 0, 1);
        put_return(program, SECCOMP_RET_KILL_PROCESS);
        break;
    case OWN_PROCESS: put_equal(program, 0, (uint32_t)getpid()); break;
    }
    put_return(program, SECCOMP_RET_ALLOW);
}

static int filter(int32_t left_out) {
    program program = {.count = 0};
    put(&program, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
    put(&program, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    put_return(&program, SECCOMP_RET_KILL_PROCESS);
    for (int index = 0; index < CALLS; index++) {
        if (index == left_out) continue;
        put(&program, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
        unsigned short jump = program.count;
        put(&program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[index].call.number, 0, 0);
        put_rule(&program, calls[index].rule);
        program.instructions[jump].jf = (uint8_t)(program.count - jump - 1);
    }
    put_return(&program, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog whole = {program.count, program.instructions};
    // Before Linux 5.16, a filter otherwise slows the processor down, to keep code that the process
    // interprets from reading its memory by speculation. A worker interprets none.
    int result = (int)syscall(
        SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &whole);
    if (result == 0 || errno != EINVAL) return result;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &whole);
}
#else
static int filter(int32_t left_out) {
    (void)left_out;
    errno = ENOSYS;
    return -1;
}
#endif

// MARK: - landlock

/// Takes all rights that the running kernel knows. The numbers are part of its interface
/// (linux/landlock.h), which older headers lack.
static int restrict_files(void) {
    enum { CREATE_RULESET = 444, RESTRICT_SELF = 446, GET_VERSION = 1 };
    // By version of the interface, from 1: rights on files; on TCP from 4; scopes from 6.
    static const uint64_t files[] = {
        (1ull << 13) - 1, (1ull << 14) - 1, (1ull << 15) - 1, (1ull << 15) - 1, (1ull << 16) - 1,
    };
    struct { uint64_t files, network, scopes; } taken = {0, 0, 0};
    int version = (int)syscall(CREATE_RULESET, NULL, 0, GET_VERSION);
    if (version < 1) return -1;
    taken.files = files[version > 5 ? 4 : version - 1];
    size_t size = sizeof taken.files;
    if (version >= 4) {
        taken.network = 3;
        size += sizeof taken.network;
    }
    if (version >= 6) {
        taken.scopes = 3;
        size += sizeof taken.scopes;
    }
    int rules = (int)syscall(CREATE_RULESET, &taken, size, 0);
    if (rules < 0) return -1;
    int result = (int)syscall(RESTRICT_SELF, rules, 0);
    int error = errno;
    close(rules);
    errno = error;
    return result;
}

// MARK: - limits

/// The bytes of the address space in use, 0 if unknown.
static uint64_t mapped_bytes(void) {
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file) return 0;
    if (fscanf(file, "%llu", &pages) != 1) pages = 0;
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int limit(uint64_t mapped, uint64_t memory) {
    static const int zeros[] = {
        RLIMIT_CORE, RLIMIT_FSIZE, RLIMIT_NPROC, RLIMIT_MEMLOCK, RLIMIT_MSGQUEUE};
    for (size_t index = 0; index < sizeof zeros / sizeof *zeros; index++) {
        struct rlimit none = {0, 0};
        if (setrlimit(zeros[index], &none) != 0) return -1;
    }
    struct rlimit files = {CSANDBOX_IMAGE + 1, CSANDBOX_IMAGE + 1};
    if (setrlimit(RLIMIT_NOFILE, &files) != 0) return -1;
    if (mapped == 0 || memory > UINT64_MAX - mapped) {
        errno = ENOTSUP;
        return -1;
    }
    struct rlimit most = {mapped + memory, mapped + memory};
    return setrlimit(RLIMIT_AS, &most);
}

// MARK: - all

csandbox_walls csandbox_lock(uint64_t memory, int32_t left_out) {
    csandbox_walls walls;
    memset(&walls, 0, sizeof walls);
    // Landlock lets no file be read.
    uint64_t mapped = mapped_bytes();
    // The filter is last: it allows none of the calls of the others.
    for (csandbox_wall wall = 0; wall < CSANDBOX_WALLS; wall++) {
        int result = -1;
        switch (wall) {
        case CSANDBOX_NO_NEW_PRIVILEGES: result = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); break;
        case CSANDBOX_NOT_DUMPABLE: result = prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); break;
        case CSANDBOX_LIMITS: result = limit(mapped, memory); break;
        case CSANDBOX_LANDLOCK: result = restrict_files(); break;
        case CSANDBOX_SECCOMP: result = filter(left_out); break;
        case CSANDBOX_WALLS: break;
        }
        if (result == 0) walls.holding |= 1u << wall;
        else walls.errors[wall] = errno;
    }
    return walls;
}

bool csandbox_follow_parent(int32_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    return getppid() == parent;
}

// MARK: - messages

typedef union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
} control;

bool csandbox_send(int socket, const void *bytes, size_t count, int descriptor) {
    control control;
    memset(&control, 0, sizeof control);
    struct iovec part = {(void *)bytes, count};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
        .msg_controllen = sizeof control.bytes};
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof descriptor);
    memcpy(CMSG_DATA(&control.header), &descriptor, sizeof descriptor);
    ssize_t sent;
    do sent = sendmsg(socket, &message, MSG_NOSIGNAL); while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)count;
}

bool csandbox_receive(int socket, void *bytes, size_t count, int *descriptor) {
    control control;
    memset(&control, 0, sizeof control);
    struct iovec part = {bytes, count};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
        .msg_controllen = sizeof control.bytes};
    ssize_t received;
    do received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (received < 0 && errno == EINTR);
    *descriptor = -1;
    if (received >= 0 && message.msg_controllen >= CMSG_LEN(sizeof *descriptor)
        && control.header.cmsg_type == SCM_RIGHTS) {
        memcpy(descriptor, CMSG_DATA(&control.header), sizeof *descriptor);
    }
    return received == (ssize_t)count;
}

// MARK: - availability

extern void __asan_init(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));

static bool is_available;

void csandbox_set_available(void) { is_available = true; }

bool csandbox_is_available(void) { return is_available && !__asan_init && !__tsan_init; }
