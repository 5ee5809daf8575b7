/// Reads JSON (RFC 8259) by JSON for Modern C++, <https://json.nlohmann.me>.
///
/// A reader belongs to one thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma clang assume_nonnull begin

typedef enum {
    CJSON_NULL = 0,
    CJSON_BOOLEAN,
    CJSON_NUMBER,
    CJSON_STRING,
    CJSON_ARRAY,
    CJSON_OBJECT,
} cjson_kind;

/// A member of an object, or an element of an array. The texts are UTF-8, valid until the reader's
/// next call.
typedef struct {
    /// The decoded name; empty for an element.
    const char *name;
    size_t name_count;
    cjson_kind kind;
    /// The decoded string; of other kinds the value's JSON in ASCII, without white space. Numbers
    /// are as written.
    const char *text;
    size_t text_count;
} cjson_value;

typedef enum {
    CJSON_OK = 0,
    /// The bytes are JSON, but not of the wanted kind.
    CJSON_OTHER,
    /// The bytes are not JSON.
    CJSON_INVALID,
    /// More than `CJSON_MAXIMUM_DEPTH` objects and arrays in one another.
    CJSON_DEEP,
} cjson_status;

typedef struct {
    cjson_status status;
    /// For `CJSON_INVALID` the number of bytes up to the error.
    size_t position;
    /// In the order of the text; also those before an error.
    const cjson_value *_Nullable values;
    size_t count;
    /// Whether half of a surrogate pair, as Python writes it, became U+FFFD.
    bool has_lone_surrogate;
} cjson_result;

/// The most levels of nesting. The report has the values one level deeper, and serde_json reads
/// 127 levels.
#define CJSON_MAXIMUM_DEPTH 100

typedef struct cjson_reader cjson_reader;

/// Creates a reader, freed by `cjson_free`.
cjson_reader *cjson_make(void);
void cjson_free(cjson_reader *reader);

/// Reads the members of an object, or the elements of an array.
///
/// Also reads JSON that Python writes beyond RFC 8259: `NaN`, `Infinity`, `-Infinity` and numbers
/// beyond the range of doubles are null; half a surrogate pair is U+FFFD, as are bytes that are not
/// UTF-8.
cjson_result cjson_read(cjson_reader *reader, const char *bytes, size_t count, cjson_kind kind);

#pragma clang assume_nonnull end

#ifdef __cplusplus
}
#endif
