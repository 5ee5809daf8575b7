/// Whether bytes are an SVG document, by expat: well-formed XML with namespaces, and an element `svg` around it
/// all. Nothing is rendered, nothing that the document names is opened, and no script is run.
///
/// What a document may cost is bounded: memory by the caller, depth by CXML_MAXIMUM_DEPTH, time by the interruption.
/// References to entities in text are passed over. Those in attribute values are expanded by expat, which cannot
/// be told not to (drawing programs put namespaces there); so an entity that is made of other entities ends the
/// parse where it is declared, and what all expansions come to may not be more than 1 MiB, or than the document.
#ifndef CXML_H
#define CXML_H

#include <cinterruption.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/// Elements within one another; the limit that Chromium's parser has, too (kMaxXMLTreeDepth).
enum { CXML_MAXIMUM_DEPTH = 5000 };

typedef enum {
    /// It is one; of a beginning: as far as it goes.
    CXML_SVG = 0,
    /// The bytes end before the first element. Of beginnings only.
    CXML_UNDECIDED,
    /// XML of another kind, or nothing of the sort.
    CXML_OTHER,
    /// An SVG document that is not well-formed.
    CXML_BROKEN,
    /// The same, and its end is missing.
    CXML_CUT,
    /// It takes more memory, depth or expansions than it may, or has an encoding that is not read.
    CXML_LIMIT,
    /// See the interruption.
    CXML_INTERRUPTED,
} cxml_end;

typedef struct {
    cxml_end end;
    /// Of what ended the parse, from 1; 0 where it says nothing.
    uint64_t line;
    /// For people, in static memory; empty where the end says all.
    const char *message;
} cxml_verdict;

/// Reads all of a document, or only what stands before its first element.
///
/// Any number of threads may call it at once.
///
/// - `memory`: the most that expat may have allocated at a time, in bytes. It takes some 100 KiB at the least.
/// - `interruption`: NULL for none.
cxml_verdict cxml_read(
    const void *bytes, size_t count, bool is_whole, size_t memory,
    cinterruption *_Nullable interruption);

/// Name and version of expat, as it is loaded: `expat_2.5.0`.
const char *cxml_library_version(void);

#pragma clang assume_nonnull end

#endif
