/// The parser of tables: libcsv, <https://github.com/rgamble/libcsv>. `csv.3` is its manual.
#pragma once

#include <csv.h>
#include <stdbool.h>

#pragma clang assume_nonnull begin

/// Creates a parser that keeps white space around values.
///
/// - `quote`: the quotation mark; NUL for none.
///
/// Returns NULL without memory. Freed by `ccsv_free`.
struct csv_parser *_Nullable ccsv_make(unsigned char delimiter, unsigned char quote);
void ccsv_free(struct csv_parser *parser);

/// Parses the next bytes, as `csv_parse`. Quotation marks within a value without them are ordinary.
///
/// Returns the number of parsed bytes. It is lower at a quotation mark in a quoted value that
/// neither ends it nor is doubled, and without memory (`csv_error`).
size_t ccsv_parse(
    struct csv_parser *parser, const void *bytes, size_t count,
    void (*value)(void *_Nullable, size_t, void *_Nullable), void (*row)(int, void *_Nullable),
    void *context);

/// Forgets the present row; the next byte begins another one.
void ccsv_reset(struct csv_parser *parser);

/// Whether the bytes so far end within a row.
bool ccsv_is_in_row(const struct csv_parser *parser);

/// Whether the bytes so far end within a quoted value.
bool ccsv_is_in_quotes(const struct csv_parser *parser);

/// Forgets the value that is being read, when it is longer than this. The parser goes on after it,
/// so a value of any length takes limited memory. The value that it reports is then wrong.
///
/// Returns whether the value was longer.
bool ccsv_limit_value(struct csv_parser *parser, size_t bytes);

#pragma clang assume_nonnull end
