/// Checks by expat whether bytes are an SVG document: well-formed XML with namespaces and a root
/// element `svg`. Nothing is rendered, nothing that the document names is opened, and no script
/// runs.
///
/// The cost is limited: memory by the caller, depth by CXML_MAXIMUM_DEPTH, time by the
/// interruption. Entity references in text are skipped. expat always expands references in
/// attribute values, where drawing programs put namespaces. So an entity made of other entities
/// ends the parse at its declaration. All expansions together are limited to the larger of 1 MiB
/// and the document.
#pragma once

#include <cinterruption.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/// The deepest nesting of elements; Chromium's parser has the same limit (kMaxXMLTreeDepth).
enum { CXML_MAXIMUM_DEPTH = 5000 };

typedef enum {
    /// An SVG document; of a beginning, as far as it was read.
    CXML_SVG = 0,
    /// The bytes end before the first element; for beginnings only.
    CXML_UNDECIDED,
    /// Other XML.
    CXML_OTHER,
    /// Not well-formed before the first element, or in its tag.
    CXML_ROOTLESS,
    /// An SVG document that is not well-formed.
    CXML_BROKEN,
    /// An SVG document without its end.
    CXML_CUT,
    /// It exceeds the limit of memory, depth or expansions.
    CXML_LIMIT,
    /// Its encoding is not supported; the message is its name. For whole documents only.
    CXML_ENCODING,
    /// Interrupted; the interruption says why.
    CXML_INTERRUPTED,
} cxml_end;

typedef struct {
    cxml_end end;
    /// The line of the problem, from 1; 0 if unknown.
    uint64_t line;
    /// Whether the root element has ended.
    bool is_ended;
    /// A message in static memory, valid until the thread's next call; empty if the verdict says
    /// everything.
    const char *message;
} cxml_verdict;

/// Reads a whole document, or only the part before its first element.
///
/// Any number of threads may call it.
///
/// - `memory`: the most that expat may have allocated at a time, in bytes; it needs at least some
///   100 KiB.
/// - `interruption`: NULL for none.
cxml_verdict cxml_read(
    const void *bytes, size_t count, bool is_whole, size_t memory,
    cinterruption *_Nullable interruption);

/// Name and version of the loaded expat: `expat_2.5.0`.
const char *cxml_library_version(void);

#pragma clang assume_nonnull end
