/// Reads the small XML documents of services by expat.
///
/// Nothing that the document names is opened. A DOCTYPE ends the parse, so no entities exist but
/// XML's own. Namespaces are ignored.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#pragma clang assume_nonnull begin

/// The longest text and name, in bytes; the rest of a longer one is left out.
enum { CELEMENTS_TEXT = 4096, CELEMENTS_NAME = 64, CELEMENTS_DEPTH = 8 };

/// Receives an element without children, at its end. `parent` is the name of the element around it,
/// empty for the root. The texts are valid during the call.
typedef void (*celements_visitor)(
    const char *parent, const char *name, const char *text, size_t count, void *context);

/// Returns false for anything but a well-formed document of at most `CELEMENTS_DEPTH` levels; the
/// elements before the error were visited.
bool celements_read(const char *bytes, size_t count, celements_visitor visitor, void *context);

#pragma clang assume_nonnull end
