#include "cxml.h"

#include "cxml_encoding.h"
#include "cxml_memory.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// MARK: The document

typedef struct {
    XML_Parser parser;
    cinterruption *interruption;
    bool is_whole;
    bool has_root;
    int depth;
    /// The reason why the parse stopped; CXML_SVG for none.
    cxml_end stop;
    const char *message;
    /// expat's own name for the declared encoding, if the document has another name for it; else
    /// NULL.
    const char *encoding;
} document;

static const char svg_namespace[] = "http://www.w3.org/2000/svg";

static void stop(document *document, cxml_end end, const char *message) {
    document->stop = end;
    document->message = message;
    XML_StopParser(document->parser, XML_FALSE);
}

static void look(document *document, uint64_t bytes) {
    if (cinterruption_after(document->interruption, bytes)) stop(document, CXML_INTERRUPTED, "");
}

/// Whether it is `svg` in the SVG namespace, or in none, as in old drawings.
static bool is_svg(const char *name) {
    const char *end = strchr(name, CXML_SEPARATOR);
    if (end == NULL) return strcmp(name, "svg") == 0;
    size_t length = (size_t)(end - name);
    return length == sizeof svg_namespace - 1 && memcmp(name, svg_namespace, length) == 0
        && strcmp(end + 1, "svg") == 0;
}

static void start_element(void *data, const char *name, const char **attributes) {
    document *document = data;
    if (!document->has_root) {
        document->has_root = true;
        if (!is_svg(name)) return stop(document, CXML_OTHER, "");
        if (!document->is_whole) return stop(document, CXML_SVG, "");
    }
    document->depth += 1;
    if (document->depth > CXML_MAXIMUM_DEPTH) {
        return stop(document, CXML_LIMIT, "more than 5000 elements within one another");
    }
    look(document, (uint64_t)XML_GetCurrentByteCount(document->parser));
}

static void end_element(void *data, const char *name) {
    ((document *)data)->depth -= 1;
}

/// The handler of everything that no other handler takes. While one is set, expat does not expand
/// entities in text.
static void pass_over(void *data, const char *text, int length) {
    look(data, (uint64_t)length);
}

static void start_doctype(
    void *data, const char *name, const char *system, const char *public, int has_subset) {
    const char *colon = strrchr(name, ':');
    // HTML is recognised here; most of it is not well-formed.
    if (strcmp(colon == NULL ? name : colon + 1, "svg") != 0) stop(data, CXML_OTHER, "");
}

static void entity_declaration(
    void *data, const char *name, int is_parameter, const char *value, int length,
    const char *base, const char *system, const char *public, const char *notation) {
    look(data, (uint64_t)length);
    // Character references are resolved already. A remaining `&#` was escaped, as in `&#38;#60;`.
    for (int index = 0; value != NULL && index + 1 < length; index += 1) {
        if (value[index] == '&' && value[index + 1] != '#') {
            return stop(data, CXML_LIMIT, "an entity is made of other entities");
        }
    }
}

/// The name of an unsupported encoding, for a message.
static _Thread_local char unsupported_encoding[64];

/// Accepts encodings that agree with ASCII about markup, in which no other byte stands for a part
/// of it. Only their ASCII part matters for the structure; the other bytes may stand for any
/// letters.
///
/// Other encodings are refused only if the whole document is to be read. The first element, which
/// tells the format, is ASCII in all of them.
static int unknown_encoding(void *data, const char *name, XML_Encoding *encoding) {
    document *document = data;
    char target[CXML_ENCODING_NAME];
    bool is_known = cxml_find_encoding(name, target);
    // Encodings that expat has by other names.
    static const char *const own[] = {"UTF-8", "UTF-16"};
    for (size_t index = 0; is_known && index < sizeof own / sizeof *own; index += 1) {
        if (strcmp(target, own[index]) != 0) continue;
        document->encoding = own[index];
        return XML_STATUS_ERROR;
    }
    if (!is_known && document->is_whole) {
        snprintf(unsupported_encoding, sizeof unsupported_encoding, "%.60s", name);
        stop(document, CXML_ENCODING, unsupported_encoding);
        return XML_STATUS_ERROR;
    }
    for (int byte = 0; byte < 256; byte += 1) {
        // Letters of Latin Extended-A, which are allowed in names.
        encoding->map[byte] = byte < 128 ? byte : 0x100 + (byte & 0x7F) % 0x30;
    }
    encoding->data = NULL;
    encoding->convert = NULL;
    encoding->release = NULL;
    return XML_STATUS_OK;
}

static cxml_end end_by_error(const document *document, enum XML_Error error) {
    switch (error) {
    case XML_ERROR_NO_MEMORY:
    case XML_ERROR_AMPLIFICATION_LIMIT_BREACH:
    case XML_ERROR_UNKNOWN_ENCODING: return CXML_LIMIT;
    default: break;
    }
    if (!document->has_root) return CXML_ROOTLESS;
    switch (error) {
    case XML_ERROR_NO_ELEMENTS:
    case XML_ERROR_UNCLOSED_TOKEN:
    case XML_ERROR_PARTIAL_CHAR:
    case XML_ERROR_UNCLOSED_CDATA_SECTION: return CXML_CUT;
    default: return CXML_BROKEN;
    }
}

/// Reads in an encoding; NULL is the declared one. Sets `other` if another one must be used.
static cxml_verdict read_in(
    const char *encoding, const void *bytes, size_t count, bool is_whole, size_t memory,
    cinterruption *interruption, const char **other) {
    cxml_verdict verdict = {CXML_LIMIT, 0, false, ""};
    if (count > INT_MAX) {
        verdict.message = "larger than 2 GiB";
        return verdict;
    }
    document document = {
        .interruption = interruption, .is_whole = is_whole, .stop = CXML_SVG, .message = ""};
    XML_Parser parser = document.parser = cxml_make_parser(encoding, memory, true, &document);
    if (parser == NULL) {
        verdict.message = "no memory for XML";
        return verdict;
    }
    XML_SetElementHandler(parser, start_element, end_element);
    XML_SetDefaultHandler(parser, pass_over);
    XML_SetStartDoctypeDeclHandler(parser, start_doctype);
    XML_SetEntityDeclHandler(parser, entity_declaration);
    XML_SetUnknownEncodingHandler(parser, unknown_encoding, &document);
    // There is no handler for external entities, so none is opened.
    XML_SetParamEntityParsing(parser, XML_PARAM_ENTITY_PARSING_NEVER);
    XML_SetBillionLaughsAttackProtectionActivationThreshold(parser, 1 << 20);
    XML_SetBillionLaughsAttackProtectionMaximumAmplification(parser, 2);
    enum XML_Status status = XML_Parse(parser, bytes, (int)count, is_whole);
    if (document.stop != CXML_SVG || status == XML_STATUS_OK) {
        verdict.end = document.stop;
        verdict.message = document.message;
        if (status == XML_STATUS_OK && !document.has_root) verdict.end = CXML_UNDECIDED;
    } else if (XML_GetErrorCode(parser) == XML_ERROR_ABORTED) {
        // At the root element of a beginning.
        verdict.end = CXML_SVG;
    } else {
        verdict.end = end_by_error(&document, XML_GetErrorCode(parser));
        verdict.message = cxml_words_for(XML_GetErrorCode(parser));
        verdict.line = XML_GetCurrentLineNumber(parser);
    }
    verdict.is_ended = document.has_root && document.depth == 0;
    XML_ParserFree(parser);
    *other = document.encoding;
    return verdict;
}

cxml_verdict cxml_read(
    const void *bytes, size_t count, bool is_whole, size_t memory, cinterruption *interruption) {
    const char *other = NULL;
    cxml_verdict verdict = read_in(NULL, bytes, count, is_whole, memory, interruption, &other);
    if (other == NULL) return verdict;
    return read_in(other, bytes, count, is_whole, memory, interruption, &other);
}

const char *cxml_library_version(void) { return XML_ExpatVersion(); }
