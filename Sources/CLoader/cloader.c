#define _GNU_SOURCE
#include "cloader.h"

#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// MARK: carried libraries

/// Whether only the owner is in a group, as in the private groups of users (`umask 002`).
static bool is_private(gid_t group, uid_t owner) {
    struct passwd user, *found_user = NULL;
    struct group entry, *found = NULL;
    char user_text[4096], text[4096];
    return getpwuid_r(owner, &user, user_text, sizeof user_text, &found_user) == 0 && found_user
        && getgrgid_r(group, &entry, text, sizeof text, &found) == 0 && found
        && user.pw_gid == group && strcmp(user.pw_name, entry.gr_name) == 0
        && !entry.gr_mem[0];
}

/// Whether no other user than root and the program's owner can write it.
static bool is_trusted(const char *path, uid_t owner, struct stat *status) {
    if (stat(path, status) != 0) return false;
    bool is_owned = status->st_uid == 0 || status->st_uid == owner;
    bool is_shared = (status->st_mode & S_IWOTH)
        || ((status->st_mode & S_IWGRP) && !is_private(status->st_gid, status->st_uid));
    if (!is_owned || is_shared) errno = EACCES;
    return is_owned && !is_shared;
}

/// Sets the absolute path of a carried library, in ../lib/prefetch from the
/// program. Returns 0, or an error number: ENOENT without such a file.
static int find_carried(const char *library, char path[PATH_MAX]) {
    struct stat status;
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length <= 0 || stat("/proc/self/exe", &status) != 0) return ENOENT;
    path[length] = 0;
    uid_t owner = status.st_uid;
    for (int level = 0; level < 2; level++) {
        char *slash = strrchr(path, '/');
        if (!slash) return ENOENT;
        *slash = 0;
    }
    size_t end = strlen(path);
    int written = snprintf(path + end, PATH_MAX - end, "/lib/prefetch/%s", library);
    if (written < 0 || (size_t)written >= PATH_MAX - end || access(path, F_OK) != 0) return ENOENT;
    if (!is_trusted(path, owner, &status)) return errno;
    char *slash = strrchr(path, '/');
    *slash = 0;
    bool is_safe = is_trusted(path, owner, &status);
    *slash = '/';
    return is_safe ? 0 : errno;
}

// MARK: loading

static void put(char *failure, const char *reason) {
    snprintf(failure, CLOADER_MESSAGE_BYTES, "%s", reason ? reason : "unknown error");
}

/// Loads a file. The reason for a failure is in `failure`, which is empty after success.
static void load(const cloader_library *library, const char *file, void *functions, char *failure) {
    failure[0] = 0;
    // Resolves all symbols now, so that an outdated or broken library fails here instead of in the
    // middle of a run.
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        put(failure, dlerror());
        return;
    }
    size_t count = 0;
    for (; library->names[count]; count++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", library->prefix, library->names[count]);
        void *function = dlsym(handle, name);
        if (!function) {
            snprintf(failure, CLOADER_MESSAGE_BYTES, "%s: has no function %s", file, name);
            break;
        }
        memcpy((char *)functions + count * sizeof function, &function, sizeof function);
    }
    const char *reason = failure[0] || !library->refusal ? NULL : library->refusal();
    if (reason) snprintf(failure, CLOADER_MESSAGE_BYTES, "%s: %s", file, reason);
    if (!failure[0]) return;
    memset(functions, 0, count * sizeof(void *));
    dlclose(handle);
}

// MARK: loaded libraries

enum { MOST_LIBRARIES = 16 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const char *paths[MOST_LIBRARIES];
static size_t path_count;

static void note(const void *functions) {
    void *function;
    memcpy(&function, functions, sizeof function);
    Dl_info info;
    if (!dladdr(function, &info)) return;
    pthread_mutex_lock(&mutex);
    if (path_count < MOST_LIBRARIES) paths[path_count++] = info.dli_fname;
    pthread_mutex_unlock(&mutex);
}

const char *cloader_path(size_t index) {
    pthread_mutex_lock(&mutex);
    const char *path = index < path_count ? paths[index] : NULL;
    pthread_mutex_unlock(&mutex);
    return path;
}

void cloader_open(const cloader_library *library, void *functions, char *failure) {
    load(library, library->file, functions, failure);
    char path[PATH_MAX];
    int status = failure[0] ? find_carried(library->file, path) : ENOENT;
    if (status == 0) {
        load(library, path, functions, failure);
    } else if (status != ENOENT) {
        snprintf(
            failure, CLOADER_MESSAGE_BYTES,
            "%s: other users can write it or its folder; use chmod go-w", path);
    }
    if (!failure[0]) note(functions);
}
