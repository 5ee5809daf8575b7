/// expat's memory, limited for each parse.
#ifndef CXML_MEMORY_H
#define CXML_MEMORY_H

#ifndef XML_DTD
// Without this the header hides the guards against expansion. Distributions build the library with
// it.
#define XML_DTD
#endif
#include <expat.h>
#include <stddef.h>

/// The bytes that the thread's parser may still allocate. expat's memory functions get no context,
/// so it is set before, and saved after each call of the parser.
extern _Thread_local size_t cxml_memory_left;

extern const XML_Memory_Handling_Suite cxml_memory;

/// The reason of an error, about the line at which the parser stops.
const char *cxml_words_for(enum XML_Error error);

#endif
