#include "carchive.h"

#include "cloader.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>

#define CARCHIVE_LIBRARY "libarchive.so.13"

/// Every function used here, without the `archive_` prefix. No call may use a function of the
/// library by its own name; it would not link.
#define CARCHIVE_FUNCTIONS(FUNCTION) \
    FUNCTION(entry_filetype) \
    FUNCTION(entry_free) \
    FUNCTION(entry_new) \
    FUNCTION(entry_pathname) \
    FUNCTION(entry_set_filetype) \
    FUNCTION(entry_set_mtime) \
    FUNCTION(entry_set_pathname) \
    FUNCTION(entry_set_perm) \
    FUNCTION(entry_set_size) \
    FUNCTION(entry_size) \
    FUNCTION(errno) \
    FUNCTION(error_string) \
    FUNCTION(read_data) \
    FUNCTION(read_free) \
    FUNCTION(read_new) \
    FUNCTION(read_next_header) \
    FUNCTION(read_open_fd) \
    FUNCTION(read_support_filter_gzip) \
    FUNCTION(read_support_format_tar) \
    FUNCTION(write_close) \
    FUNCTION(write_data) \
    FUNCTION(write_free) \
    FUNCTION(write_header) \
    FUNCTION(write_new) \
    FUNCTION(write_open_fd) \
    FUNCTION(write_set_bytes_in_last_block) \
    FUNCTION(write_set_bytes_per_block) \
    FUNCTION(write_set_format_ustar)

// The macro of <errno.h> would replace a name below.
#pragma push_macro("errno")
#undef errno

static struct {
#define MEMBER(name) __typeof__(archive_##name) *name;
    CARCHIVE_FUNCTIONS(MEMBER)
#undef MEMBER
} functions;

CLOADER_LOAD(carchive_load, CARCHIVE_LIBRARY, "archive_", CARCHIVE_FUNCTIONS, functions)

int carchive_error_code(struct archive *archive) {
    int code = functions.errno(archive);
    return code > 0 ? code : EIO;
}
#pragma pop_macro("errno")

const char *carchive_error_message(struct archive *archive) {
    const char *message = functions.error_string(archive);
    return message ? message : "unknown error";
}

carchive_writer *carchive_writer_make(int descriptor) {
    struct archive *archive = functions.write_new();
    if (!archive) return NULL;
    if (functions.write_set_format_ustar(archive) == ARCHIVE_OK &&
        // Few calls of the system; the end is that of tar's usual blocks.
        functions.write_set_bytes_per_block(archive, 1 << 20) == ARCHIVE_OK &&
        functions.write_set_bytes_in_last_block(archive, 10240) == ARCHIVE_OK &&
        functions.write_open_fd(archive, descriptor) == ARCHIVE_OK) {
        return archive;
    }
    functions.write_free(archive);
    return NULL;
}

bool carchive_writer_add(
    carchive_writer *writer, const char *name, const void *bytes, size_t count) {
    struct archive_entry *entry = functions.entry_new();
    if (!entry) return false;
    functions.entry_set_pathname(entry, name);
    functions.entry_set_filetype(entry, AE_IFREG);
    functions.entry_set_perm(entry, 0644);
    functions.entry_set_size(entry, (la_int64_t)count);
    functions.entry_set_mtime(entry, 0, 0);
    bool is_written = functions.write_header(writer, entry) == ARCHIVE_OK;
    functions.entry_free(entry);
    while (is_written && count > 0) {
        la_ssize_t written = functions.write_data(writer, bytes, count);
        is_written = written > 0;
        if (!is_written) break;
        bytes = (const char *)bytes + written;
        count -= (size_t)written;
    }
    return is_written;
}

bool carchive_writer_finish(carchive_writer *writer) {
    return functions.write_close(writer) == ARCHIVE_OK;
}

void carchive_writer_free(carchive_writer *writer) { functions.write_free(writer); }

carchive_reader *carchive_reader_make(int descriptor, char *message, size_t size) {
    struct archive *archive = functions.read_new();
    if (!archive) {
        snprintf(message, size, "no memory");
        return NULL;
    }
    if (functions.read_support_format_tar(archive) == ARCHIVE_OK &&
        // A warning says that the library calls a program for it.
        functions.read_support_filter_gzip(archive) == ARCHIVE_OK &&
        functions.read_open_fd(archive, descriptor, 1 << 20) == ARCHIVE_OK) {
        return archive;
    }
    snprintf(message, size, "%s", carchive_error_message(archive));
    functions.read_free(archive);
    return NULL;
}

carchive_status carchive_reader_next(carchive_reader *reader, carchive_member *member) {
    struct archive_entry *entry = NULL;
    int code = functions.read_next_header(reader, &entry);
    if (code == ARCHIVE_EOF) return CARCHIVE_END;
    // A warning is about a name or a time that cannot be converted.
    if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return CARCHIVE_FAILED;
    member->name = functions.entry_pathname(entry);
    member->size = functions.entry_size(entry);
    member->is_file = functions.entry_filetype(entry) == AE_IFREG;
    return CARCHIVE_MEMBER;
}

ssize_t carchive_reader_read(carchive_reader *reader, void *bytes, size_t count) {
    la_ssize_t result = functions.read_data(reader, bytes, count);
    return result < 0 ? -1 : (ssize_t)result;
}

void carchive_reader_free(carchive_reader *reader) { functions.read_free(reader); }
