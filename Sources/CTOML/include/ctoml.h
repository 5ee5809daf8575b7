/// Reads TOML 1.0 by toml++, <https://marzer.github.io/tomlplusplus>.
///
/// A document belongs to one thread at a time.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma clang assume_nonnull begin

typedef enum {
    CTOML_TABLE = 0,
    /// An array of strings, decimal integers and floats. Its elements are nodes without a key.
    CTOML_ARRAY,
    CTOML_STRING,
    /// A decimal integer.
    CTOML_INTEGER,
    CTOML_FLOAT,
    CTOML_BOOLEAN,
    /// A date or time, an integer of another base, another array, or a table beyond
    /// `CTOML_MAXIMUM_DEPTH`.
    CTOML_OTHER,
} ctoml_kind;

enum {
    /// Tables within tables, not counting the document itself.
    CTOML_MAXIMUM_DEPTH = 4,
    /// The most dots in a line. Each dot of a key is another table, and toml++ 3.3 frees nested
    /// tables by recursion.
    CTOML_MAXIMUM_DOTS = 1000,
    /// Parents of the nodes of the document's outermost table.
    CTOML_ROOT = -1,
};

typedef struct {
    ctoml_kind kind;
    /// The index of the table or array that holds the node, or `CTOML_ROOT`.
    int32_t parent;
    /// The line of the key, or of an element, from 1.
    uint32_t line;
    /// The decoded key, in UTF-8; empty for an element.
    const char *key;
    size_t key_count;
    /// The decoded string, or the number in decimal notation, or `true` or `false`, in UTF-8;
    /// empty for all other kinds. It may contain NUL.
    const char *text;
    size_t text_count;
} ctoml_node;

/// A parsed file.
typedef struct {
    /// Each behind its parent; tables are in the order of their keys. None after an error.
    const ctoml_node *_Nullable nodes;
    size_t count;
    /// The line and column of a syntax error, from 1; 0 without one.
    uint32_t error_line;
    uint32_t error_column;
    /// The message of the error, in UTF-8.
    const char *_Nullable error;
    size_t error_count;
} ctoml_document;

/// Parses a whole file; `bytes` may be null if `count` is 0. Free the document with `ctoml_free`.
const ctoml_document *ctoml_parse(const char *_Nullable bytes, size_t count);
void ctoml_free(const ctoml_document *document);

#pragma clang assume_nonnull end

#ifdef __cplusplus
}
#endif
