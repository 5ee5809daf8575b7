// Functions and constants of the C library that Swift's Glibc module lacks, because it omits
// feature macros or headers.
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

// errno.h, which Swift's Glibc module has
int *__errno_location(void);
// unistd.h, Linux
int syncfs(int descriptor);
int pipe2(int ends[2], int flags);
long syscall(long number, ...);
// pthread.h, Linux
int pthread_setname_np(pthread_t thread, const char *name);
// spawn.h, glibc 2.34
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from);
// fcntl.h, Linux; off_t has 64 bits on the supported platforms
int fallocate(int descriptor, int mode, off_t offset, off_t length);
// sys/mman.h, Linux
int memfd_create(const char *name, unsigned int flags);
void *mremap(void *old, size_t old_size, size_t new_size, int flags, ...);
// stdlib.h, Linux
int mkostemp(char *path, int flags);
// stdio.h, Linux
int renameat2(
    int old_folder, const char *old_name, int new_folder, const char *new_name,
    unsigned int flags);
// sched.h, Linux
int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set);

/// Whether an error means that a file system lacks a call, or lets no user set an attribute, like
/// CIFS and FUSE. Other errors are failures of a file system that has it.
static inline int clinux_is_refusal(int error) {
    switch (error) {
    case EPERM: case EACCES: case EINVAL: case ENOSYS: case ENOTTY: case EOPNOTSUPP: case EROFS:
    case ENOLCK:
        return 1;
    default: return 0;
    }
}

/// Gives a mapping of a memfd another size, perhaps at another address; MAP_FAILED with `errno`.
static inline void *clinux_resize_mapping(void *old, size_t old_size, size_t new_size) {
    return mremap(old, old_size, new_size, 1 /* MREMAP_MAYMOVE */);
}

/// Creates a memfd that takes seals. Returns its descriptor, or -1 with `errno`.
static inline int clinux_memory(const char *name) {
    return memfd_create(name, 3u /* MFD_CLOEXEC | MFD_ALLOW_SEALING */);
}

/// Fixes the size of a memfd. With `is_final`, only existing mappings can still write to it
/// (fcntl(2), F_SEAL_FUTURE_WRITE, Linux 5.1). Returns 0, or -1 with `errno`.
static inline int clinux_seal(int memory, int is_final) {
    return fcntl(memory, 1033 /* F_ADD_SEALS */, is_final ? 1 | 2 | 4 | 16 : 1 | 2 | 4);
}

/// `syncfs`, or `sync` where that is refused. Returns 0, or -1 with `errno`.
static inline int clinux_synchronize(int descriptor) {
    if (syncfs(descriptor) == 0) return 0;
    if (!clinux_is_refusal(*__errno_location())) return -1;
    sync();
    return 0;
}

/// The number of processors that the calling thread may use; -1 if unknown or above 8,192.
static inline int clinux_allowed_processors(void) {
    cpu_set_t sets[8];
    if (sched_getaffinity(0, sizeof sets, sets) != 0) return -1;
    int count = 0;
    const unsigned char *bytes = (const unsigned char *)sets;
    for (size_t index = 0; index < sizeof sets; index++) count += __builtin_popcount(bytes[index]);
    return count;
}

/// A descriptor of a process, readable once it has ended; -1 with `errno`.
static inline int clinux_process_descriptor(pid_t process) {
    return (int)syscall(SYS_pidfd_open, process, 0);
}

/// The result of `fstatfs`. The system's own structure has different types on each architecture.
struct clinux_file_system {
    /// See linux/magic.h.
    uint32_t type;
    int is_read_only;
    uint64_t block_size;
    uint64_t blocks;
    /// Available to unprivileged users.
    uint64_t free_blocks;
    /// 0 if the file system does not count files.
    uint64_t files;
    uint64_t free_files;
};

/// Returns 0, or -1 with `errno`.
static inline int clinux_fstatfs(int descriptor, struct clinux_file_system *result) {
    struct statfs status;
    if (fstatfs(descriptor, &status) != 0) return -1;
    result->type = (uint32_t)status.f_type;
    // ST_RDONLY
    result->is_read_only = (status.f_flags & 1) != 0;
    result->block_size = (uint64_t)status.f_bsize;
    result->blocks = status.f_blocks;
    result->free_blocks = status.f_bavail;
    result->files = status.f_files;
    result->free_files = status.f_ffree;
    return 0;
}

/// Opens a file below a folder; links and `..` that leave it give `EXDEV`. Returns the descriptor,
/// or -1 with `errno`; `ENOSYS` before Linux 5.6, and `EPERM` or `ENOSYS` in some containers.
static inline int clinux_open_beneath(int folder, const char *path, int flags) {
    // linux/openat2.h; RESOLVE_NO_MAGICLINKS and RESOLVE_BENEATH
    struct { uint64_t flags, mode, resolve; } how = {(uint64_t)flags, 0, 0x02 | 0x08};
    // `EAGAIN`: any folder of the system was moved meanwhile, which `..` must not miss.
    for (int attempt = 1;; attempt++) {
        int file = (int)syscall(437, folder, path, &how, sizeof how);
        if (file >= 0 || errno != EAGAIN || attempt == 1000) return file;
    }
}

// fcntl.h and linux/falloc.h; the values are part of the kernel's ABI
static const int clinux_o_path = 010000000;
static const int clinux_o_tmpfile = 020000000 | O_DIRECTORY;
static const int clinux_falloc_keep_size = 0x01;
static const int clinux_falloc_punch_hole = 0x02;

// linux/fs.h
static const unsigned int clinux_rename_noreplace = 1;
static const unsigned int clinux_rename_exchange = 2;

/// Starts to write a file's changed pages to the disk, and does not wait. Only a hint: a failure is
/// also one of the file's synchronisation.
static inline void clinux_start_writing(int file) {
    // sync_file_range(2); SYNC_FILE_RANGE_WRITE
    syscall(SYS_sync_file_range, file, 0L, 0L, 2U);
}

/// Makes `copy` share the blocks of `file`. Returns 0, or -1 with `errno`.
static inline int clinux_clone(int copy, int file) {
    return ioctl(copy, _IOW(0x94, 9, int), file);
}
