/// Reads JSON (RFC 8259) by JSON for Modern C++, <https://json.nlohmann.me>.
///
/// Nesting takes no stack. Any number of threads may call it at once.
#ifndef CJSON_H
#define CJSON_H

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

/// A member of an object, or an element of an array. The texts are UTF-8, valid during the call.
typedef struct {
    /// The decoded name; empty for an element.
    const char *name;
    size_t name_count;
    cjson_kind kind;
    /// The decoded string; of other kinds the value's JSON. Numbers are as written.
    const char *text;
    size_t text_count;
    /// The value's JSON in ASCII, without white space; empty for a string.
    const char *json;
    size_t json_count;
} cjson_value;

typedef void (*cjson_visitor)(const cjson_value *value, void *context);

typedef enum {
    CJSON_OK = 0,
    /// The bytes are JSON, but not of the wanted kind.
    CJSON_OTHER,
    /// The bytes are not JSON.
    CJSON_INVALID,
} cjson_status;

/// Visits the members of an object, or the elements of an array, in their order.
///
/// Values may have been visited when the bytes turn out to be invalid.
///
/// - `position`: for `CJSON_INVALID` the number of bytes up to the error.
cjson_status cjson_visit(
    const char *bytes, size_t count, cjson_kind kind, cjson_visitor visitor,
    void *_Nullable context, size_t *position);

#pragma clang assume_nonnull end

#ifdef __cplusplus
}
#endif

#endif
