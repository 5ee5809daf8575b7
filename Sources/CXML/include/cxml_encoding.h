/// Names of text encodings, as XML declarations spell them.
#pragma once

#include <stdbool.h>

#pragma clang assume_nonnull begin

enum { CXML_ENCODING_NAME = 32 };

/// Finds the encoding of a declared name: `latin1`, `ISO_8859-15`, `x-cp1251`, `gb2312`.
///
/// All of them agree with ASCII about the characters of markup, except for UTF-16. Supersets
/// replace their subsets, as in browsers (<https://encoding.spec.whatwg.org/#names-and-labels>).
///
/// - `target`: receives iconv's name for it: `UTF-8`, `UTF-16`, `WINDOWS-1252`.
/// - Returns: false if it is not known.
bool cxml_find_encoding(const char *declared, char target[_Nonnull CXML_ENCODING_NAME]);

#pragma clang assume_nonnull end
