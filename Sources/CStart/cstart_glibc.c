// Functions of glibc 2.35 and 2.36 that the linked archives use. With these definitions the
// program starts on glibc 2.34. They are hidden: loaded libraries use the system's.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <math.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define OWN __attribute__((visibility("hidden")))

static void read_random(char *bytes, size_t count) {
    int file = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    for (ssize_t length; count > 0; bytes += length, count -= (size_t)length) {
        length = read(file, bytes, count);
        if (length == 0 || (length < 0 && errno != EINTR)) abort();
        if (length < 0) length = 0;
    }
    close(file);
}

/// For expat, which seeds its hash tables by it (2.36).
OWN void arc4random_buf(void *bytes, size_t count) {
    while (count > 0) {
        ssize_t filled = getrandom(bytes, count, 0);
        // An old kernel or a container's filter of system calls.
        if (filled < 0 && errno != EINTR) return read_random(bytes, count);
        if (filled <= 0) continue;
        bytes = (char *)bytes + filled;
        count -= (size_t)filled;
    }
}

/// For Swift's overlay of the C library. 2.35 has a version of its own.
OWN float hypotf(float x, float y) {
    if (isinf(x) || isinf(y)) return INFINITY;
    // Squares of `float` fit `double`.
    return (float)sqrt((double)x * x + (double)y * y);
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE
struct search {
    ElfW(Addr) address;
    struct dl_find_object *result;
};

static int examine(struct dl_phdr_info *object, size_t size, void *context) {
    struct search *search = context;
    struct dl_find_object found = {0};
    for (int index = 0; index < object->dlpi_phnum; index++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[index];
        ElfW(Addr) start = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_GNU_EH_FRAME) found.dlfo_eh_frame = (void *)start;
        if (segment->p_type != PT_LOAD || search->address - start >= segment->p_memsz) continue;
        found.dlfo_map_start = (void *)start;
        found.dlfo_map_end = (void *)(start + segment->p_memsz);
    }
    if (!found.dlfo_map_start || !found.dlfo_eh_frame) return 0;
    *search->result = found;
    return 1;
}

/// For libgcc, which finds the handlers of C++ exceptions by it (2.35). Compilers for x86-64 and
/// arm64 leave `dlfo_eh_dbase` unused.
OWN int _dl_find_object(void *address, struct dl_find_object *result) {
    struct search search = {(ElfW(Addr))address, result};
    return dl_iterate_phdr(examine, &search) == 1 ? 0 : -1;
}
#endif
