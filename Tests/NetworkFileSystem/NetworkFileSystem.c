#define _GNU_SOURCE
#include "NetworkFileSystem.h"

#include <dlfcn.h>
#include <linux/magic.h>
#include <sys/vfs.h>

int fstatfs(int descriptor, struct statfs *status) {
    int (*next)(int, struct statfs *);
    *(void **)&next = dlsym(RTLD_NEXT, "fstatfs");
    int result = next(descriptor, status);
    if (result == 0) status->f_type = NFS_SUPER_MAGIC;
    return result;
}
