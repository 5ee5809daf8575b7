/// expat's memory, limited for each parse.
#pragma once

#ifndef XML_DTD
// Without this the header hides the guards against expansion. Distributions build the library with
// it.
#define XML_DTD
#endif
#include <expat.h>
#include <stdbool.h>
#include <stddef.h>

/// The bytes that the thread's parser may still allocate. expat's memory functions get no context,
/// so it is set before, and saved after each call of the parser.
extern _Thread_local size_t cxml_memory_left;

/// Creates a parser that may allocate that much. NULL without memory.
///
/// - `encoding`: NULL for the declared one.
/// - `has_namespaces`: whether names of elements have their namespace and `CXML_SEPARATOR` in
///   front, and prefixes must be declared. Otherwise they have their prefix and a colon.
XML_Parser cxml_make_parser(
    const char *encoding, size_t memory, bool has_namespaces, void *data);

enum { CXML_SEPARATOR = '\n' };

/// A name without its namespace or prefix.
const char *cxml_local_name(const char *name);

/// The reason of an error, about the line at which the parser stops.
const char *cxml_words_for(enum XML_Error error);
