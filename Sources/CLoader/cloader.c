#define _GNU_SOURCE
#include "cloader.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

// MARK: carried libraries

/// Whether only the owner is in a group, as in the private groups of users (`umask 002`). Group 0
/// is not private: containers give it to any user.
static bool is_private(gid_t group, uid_t owner) {
    struct passwd user, *found_user = NULL;
    struct group entry, *found = NULL;
    char user_text[4096], text[4096];
    return group != 0
        && getpwuid_r(owner, &user, user_text, sizeof user_text, &found_user) == 0 && found_user
        && getgrgid_r(group, &entry, text, sizeof text, &found) == 0 && found
        && user.pw_gid == group && strcmp(user.pw_name, entry.gr_name) == 0
        && !entry.gr_mem[0];
}

/// Whether other users than the owner may write a folder or file. With an access list, the bits of
/// the group limit every user in that list.
static bool is_shared(const char *path, const struct stat *status) {
    if (status->st_mode & S_IWOTH) return true;
    if (!(status->st_mode & S_IWGRP)) return false;
    return lgetxattr(path, "system.posix_acl_access", NULL, 0) >= 0
        || !is_private(status->st_gid, status->st_uid);
}

static char carried_folder[PATH_MAX], carried_failure[CLOADER_MESSAGE_BYTES];

/// Notes why carried libraries are not loaded. Returns false.
static bool refuse(const char *path, const char *reason) {
    snprintf(carried_failure, sizeof carried_failure, "%s: %s", path, reason);
    return false;
}

/// Whether only root and the program's owner can write a folder or file of the given type.
static bool is_trusted(const char *path, mode_t type, uid_t owner) {
    struct stat status;
    if (lstat(path, &status) != 0) return refuse(path, strerror(errno));
    if ((status.st_mode & S_IFMT) != type) {
        return refuse(path, type == S_IFDIR ? "not a folder" : "not a regular file");
    }
    if (status.st_uid != 0 && status.st_uid != owner) {
        return refuse(path, "belongs to another user than the program; use chown");
    }
    return !is_shared(path, &status)
        || refuse(path, "other users can write it; use chmod go-w");
}

/// Checks every file of the folder: the libraries load each other.
static bool has_trusted_files(uid_t owner) {
    char path[PATH_MAX + NAME_MAX + 2];
    DIR *folder = opendir(carried_folder);
    if (!folder) return refuse(carried_folder, strerror(errno));
    bool is_safe = true;
    for (struct dirent *entry; is_safe && (entry = readdir(folder));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(path, sizeof path, "%s/%s", carried_folder, entry->d_name);
        is_safe = is_trusted(path, S_IFREG, owner);
    }
    closedir(folder);
    return is_safe;
}

static bool is_absent(const char *path) {
    return access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

/// Finds and checks ../libexec/prefetch from the program, once. Users who can write a folder above
/// these two can replace the program itself.
static void find_carried(void) {
    static const char *const names[] = {"/libexec", "/prefetch"};
    struct stat status;
    ssize_t length = readlink("/proc/self/exe", carried_folder, PATH_MAX - 32);
    bool is_found = length > 0 && stat("/proc/self/exe", &status) == 0;
    carried_folder[is_found ? length : 0] = 0;
    if (!is_found) {
        refuse("/proc/self/exe", "not found; mount /proc to use the libraries of the package");
        return;
    }
    for (int level = 0; level < 2; level++) {
        char *slash = strrchr(carried_folder, '/');
        if (slash) *slash = 0;
    }
    bool is_safe = true;
    for (int level = 0; level < 2; level++) {
        strcat(carried_folder, names[level]);
        if (is_safe && is_absent(carried_folder)) return;
        is_safe = is_safe && is_trusted(carried_folder, S_IFDIR, status.st_uid);
    }
    if (is_safe) has_trusted_files(status.st_uid);
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

/// Finds the carried libraries once.
static void prepare_carried(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_carried);
}

/// Loads the carried library, if there is one, in the place of the system's, which failed.
static void load_carried(const cloader_library *library, void *functions, char *failure) {
    prepare_carried();
    char path[sizeof carried_folder + 64];
    snprintf(path, sizeof path, "%s/%s", carried_folder, library->file);
    if (!carried_folder[0]) {
        size_t end = strlen(failure);
        snprintf(failure + end, CLOADER_MESSAGE_BYTES - end, "; %s", carried_failure);
    } else if (!is_absent(path)) {
        if (carried_failure[0]) put(failure, carried_failure);
        else load(library, path, functions, failure);
    }
}

void cloader_open(const cloader_library *library, void *functions, char *failure) {
    load(library, library->file, functions, failure);
    if (failure[0]) load_carried(library, functions, failure);
    if (!failure[0]) note(functions);
}

void cloader_open_first(
    const char *const *files, cloader_library library, void *functions, char *failure) {
    char first[CLOADER_MESSAGE_BYTES] = "";
    for (size_t index = 0; files[index]; index++) {
        library.file = files[index];
        cloader_open(&library, functions, failure);
        if (failure[0] == 0) return;
        if (index == 0) memcpy(first, failure, sizeof first);
    }
    memcpy(failure, first, sizeof first);
}

// MARK: finding

#if defined(__x86_64__)
#define MULTIARCH "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define MULTIARCH "aarch64-linux-gnu"
#else
#define MULTIARCH "."
#endif

/// Finds a file in a folder of `length` bytes.
static bool find_in(const char *folder, size_t length, const char *file, char *path) {
    char name[PATH_MAX];
    if (length == 0 || length + strlen(file) + 2 > sizeof name) return false;
    snprintf(name, sizeof name, "%.*s/%s", (int)length, folder, file);
    if (realpath(name, path)) return true;
    path[0] = 0;
    return false;
}

bool cloader_find(const char *file, char *path) {
    static const char *const folders[] = {
        "/usr/local/lib/" MULTIARCH, "/usr/local/lib", "/lib/" MULTIARCH, "/usr/lib/" MULTIARCH,
        "/lib64", "/usr/lib64", "/lib", "/usr/lib",
    };
    path[0] = 0;
    const char *wanted = getenv("LD_LIBRARY_PATH");
    while (wanted && *wanted) {
        size_t length = strcspn(wanted, ":");
        if (find_in(wanted, length, file, path)) return true;
        wanted += length + (wanted[length] == ':');
    }
    for (size_t index = 0; index < sizeof folders / sizeof *folders; index++) {
        if (find_in(folders[index], strlen(folders[index]), file, path)) return true;
    }
    prepare_carried();
    return !carried_failure[0] && find_in(carried_folder, strlen(carried_folder), file, path);
}
