/// Tar archives by libarchive, <https://www.libarchive.org>.
///
/// The library is loaded on first use. A writer or reader belongs to one thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#pragma clang assume_nonnull begin

/// Loads the library; returns the reason if that fails, else NULL. All other functions need it.
const char *_Nullable carchive_load(void);

typedef struct archive carchive_writer;

/// Begins an archive in the format ustar, written to an open file; NULL without memory.
carchive_writer *_Nullable carchive_writer_make(int descriptor);

/// Adds a file of the mode 0644 without owner and times. Returns whether it was written.
bool carchive_writer_add(
    carchive_writer *writer, const char *name, const void *_Nullable bytes, size_t count);

/// Writes the end. Returns whether it was written.
bool carchive_writer_finish(carchive_writer *writer);
void carchive_writer_free(carchive_writer *writer);

typedef struct archive carchive_reader;

/// A member of an archive. The name is valid until the next one is read.
typedef struct {
    /// UTF-8 or other bytes; NULL if the library cannot convert it.
    const char *_Nullable name;
    int64_t size;
    /// Whether it is a regular file.
    bool is_file;
} carchive_member;

typedef enum { CARCHIVE_MEMBER, CARCHIVE_END, CARCHIVE_FAILED } carchive_status;

/// Reads a tar archive, also one that gzip has compressed. Returns NULL for another file, with
/// the reason in `message`.
carchive_reader *_Nullable carchive_reader_make(int descriptor, char *message, size_t size);
carchive_status carchive_reader_next(carchive_reader *reader, carchive_member *member);

/// Reads the present member's next bytes. Returns their number, 0 at its end, -1 on failure.
ssize_t carchive_reader_read(carchive_reader *reader, void *bytes, size_t count);
void carchive_reader_free(carchive_reader *reader);

/// The `errno` of the last failure, or an error code of the library's; never 0.
int carchive_error_code(struct archive *archive);

/// The last failure in words.
const char *carchive_error_message(struct archive *archive);

#pragma clang assume_nonnull end
