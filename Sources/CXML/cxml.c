#include "cxml.h"

// Without this the header hides the guards against expansion. Distributions build the library with
// it.
#define XML_DTD
#include <expat.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

// MARK: Memory

// expat's memory functions get no context, and a parse stays on its thread.
static _Thread_local size_t memory_left;

typedef union {
    size_t size;
    max_align_t alignment;
} block_head;

static void *take(size_t size) {
    if (size > SIZE_MAX - sizeof(block_head)) return NULL;
    size_t whole = size + sizeof(block_head);
    if (whole > memory_left) return NULL;
    block_head *head = malloc(whole);
    if (head == NULL) return NULL;
    head->size = whole;
    memory_left -= whole;
    return head + 1;
}

static void give(void *block) {
    if (block == NULL) return;
    block_head *head = (block_head *)block - 1;
    memory_left += head->size;
    free(head);
}

static void *resize(void *block, size_t size) {
    if (block == NULL) return take(size);
    if (size > SIZE_MAX - sizeof(block_head)) return NULL;
    size_t whole = size + sizeof(block_head);
    block_head *head = (block_head *)block - 1;
    size_t before = head->size;
    // The old and the new block may exist at the same time.
    if (whole > memory_left) return NULL;
    head = realloc(head, whole);
    if (head == NULL) return NULL;
    memory_left += before;
    memory_left -= whole;
    head->size = whole;
    return head + 1;
}

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
} document;

static const char separator = '\n';
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
    const char *end = strchr(name, separator);
    if (end == NULL) return strcmp(name, "svg") == 0;
    size_t length = (size_t)(end - name);
    return length == sizeof svg_namespace - 1 && memcmp(name, svg_namespace, length) == 0
        && strcmp(end + 1, "svg") == 0;
}

static void start_element(void *data, const char *name, const char **attributes) {
    (void)attributes;
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
    (void)name;
    ((document *)data)->depth -= 1;
}

/// Handles everything without a handler of its own. Its presence keeps expat from expanding
/// entities in text.
static void pass_over(void *data, const char *text, int length) {
    (void)text;
    look(data, (uint64_t)length);
}

static void start_doctype(
    void *data, const char *name, const char *system, const char *public, int has_subset) {
    (void)system;
    (void)public;
    (void)has_subset;
    const char *colon = strrchr(name, ':');
    // HTML is recognised here; most of it is not well-formed.
    if (strcmp(colon == NULL ? name : colon + 1, "svg") != 0) stop(data, CXML_OTHER, "");
}

static void entity_declaration(
    void *data, const char *name, int is_parameter, const char *value, int length,
    const char *base, const char *system, const char *public, const char *notation) {
    (void)name;
    (void)is_parameter;
    (void)base;
    (void)system;
    (void)public;
    (void)notation;
    look(data, (uint64_t)length);
    // Character references have been replaced; a remaining `&#` was written twice.
    for (int index = 0; value != NULL && index + 1 < length; index += 1) {
        if (value[index] == '&' && value[index + 1] != '#') {
            return stop(data, CXML_LIMIT, "an entity is made of other entities");
        }
    }
}

/// Accepts single-byte encodings. Only their ASCII part matters for the structure; the other bytes
/// may stand for any letters. Other encodings are refused.
static int unknown_encoding(void *data, const char *name, XML_Encoding *encoding) {
    (void)data;
    static const char *const known[] = {"windows-125", "iso-8859-", "koi8-", "macintosh"};
    for (size_t index = 0; index < sizeof known / sizeof *known; index += 1) {
        const char *letter = known[index];
        const char *other = name;
        while (*letter != 0 && (*other | 0x20) == (*letter | 0x20)) {
            letter += 1;
            other += 1;
        }
        if (*letter != 0) continue;
        for (int byte = 0; byte < 256; byte += 1) {
            // Letters of Latin Extended-A, which are allowed in names.
            encoding->map[byte] = byte < 128 ? byte : 0x100 + (byte & 0x7F) % 0x30;
        }
        encoding->data = NULL;
        encoding->convert = NULL;
        encoding->release = NULL;
        return XML_STATUS_OK;
    }
    return XML_STATUS_ERROR;
}

static cxml_end end_by_error(const document *document, enum XML_Error error) {
    switch (error) {
    case XML_ERROR_NO_MEMORY:
    case XML_ERROR_AMPLIFICATION_LIMIT_BREACH:
    case XML_ERROR_UNKNOWN_ENCODING: return CXML_LIMIT;
    default: break;
    }
    if (!document->has_root) return CXML_OTHER;
    switch (error) {
    case XML_ERROR_NO_ELEMENTS:
    case XML_ERROR_UNCLOSED_TOKEN:
    case XML_ERROR_PARTIAL_CHAR:
    case XML_ERROR_UNCLOSED_CDATA_SECTION: return CXML_CUT;
    default: return CXML_BROKEN;
    }
}

cxml_verdict cxml_read(
    const void *bytes, size_t count, bool is_whole, size_t memory, cinterruption *interruption) {
    cxml_verdict verdict = {CXML_LIMIT, 0, ""};
    if (count > INT_MAX) {
        verdict.message = "larger than 2 GiB";
        return verdict;
    }
    memory_left = memory;
    static const XML_Memory_Handling_Suite suite = {take, resize, give};
    const char separators[2] = {separator, 0};
    XML_Parser parser = XML_ParserCreate_MM(NULL, &suite, separators);
    if (parser == NULL) {
        verdict.message = "no memory for XML";
        return verdict;
    }
    document document = {
        .parser = parser, .interruption = interruption, .is_whole = is_whole, .stop = CXML_SVG,
        .message = ""};
    XML_SetUserData(parser, &document);
    XML_SetElementHandler(parser, start_element, end_element);
    XML_SetDefaultHandler(parser, pass_over);
    XML_SetStartDoctypeDeclHandler(parser, start_doctype);
    XML_SetEntityDeclHandler(parser, entity_declaration);
    XML_SetUnknownEncodingHandler(parser, unknown_encoding, NULL);
    // Without a handler, no external entity is opened, whatever this says.
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
        const char *message = XML_ErrorString(XML_GetErrorCode(parser));
        verdict.message = message == NULL ? "" : message;
        // The limit was reached, not the end of memory.
        if (XML_GetErrorCode(parser) == XML_ERROR_NO_MEMORY) {
            verdict.message = "takes too much memory for its size";
        }
        verdict.line = XML_GetCurrentLineNumber(parser);
    }
    XML_ParserFree(parser);
    return verdict;
}

const char *cxml_library_version(void) { return XML_ExpatVersion(); }
