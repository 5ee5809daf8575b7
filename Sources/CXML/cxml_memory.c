#include "cxml_memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

_Thread_local size_t cxml_memory_left;

typedef union {
    size_t size;
    max_align_t alignment;
} block_head;

static void *take(size_t size) {
    if (size > SIZE_MAX - sizeof(block_head)) return NULL;
    size_t whole = size + sizeof(block_head);
    if (whole > cxml_memory_left) return NULL;
    block_head *head = malloc(whole);
    if (head == NULL) return NULL;
    head->size = whole;
    cxml_memory_left -= whole;
    return head + 1;
}

static void give(void *block) {
    if (block == NULL) return;
    block_head *head = (block_head *)block - 1;
    cxml_memory_left += head->size;
    free(head);
}

static void *resize(void *block, size_t size) {
    if (block == NULL) return take(size);
    if (size > SIZE_MAX - sizeof(block_head)) return NULL;
    size_t whole = size + sizeof(block_head);
    block_head *head = (block_head *)block - 1;
    size_t before = head->size;
    // The old and the new block may exist at the same time.
    if (whole > cxml_memory_left) return NULL;
    head = realloc(head, whole);
    if (head == NULL) return NULL;
    cxml_memory_left += before;
    cxml_memory_left -= whole;
    head->size = whole;
    return head + 1;
}

XML_Parser cxml_make_parser(
    const char *encoding, size_t memory, bool has_namespaces, void *data) {
    static const XML_Memory_Handling_Suite functions = {take, resize, give};
    const char separators[2] = {CXML_SEPARATOR, 0};
    cxml_memory_left = memory;
    XML_Parser parser = XML_ParserCreate_MM(
        encoding, &functions, has_namespaces ? separators : NULL);
    if (parser != NULL) XML_SetUserData(parser, data);
    return parser;
}

const char *cxml_local_name(const char *name) {
    const char *end = strrchr(name, CXML_SEPARATOR);
    if (end == NULL) end = strrchr(name, ':');
    return end == NULL ? name : end + 1;
}

const char *cxml_words_for(enum XML_Error error) {
    switch (error) {
    case XML_ERROR_NO_MEMORY: return "takes too much memory for its size";
    case XML_ERROR_AMPLIFICATION_LIMIT_BREACH: return "its entities are too large";
    case XML_ERROR_NO_ELEMENTS: return "ends before its element does";
    case XML_ERROR_UNCLOSED_TOKEN: return "ends within a tag or comment";
    case XML_ERROR_UNCLOSED_CDATA_SECTION: return "ends within a CDATA section";
    case XML_ERROR_PARTIAL_CHAR: return "ends within a character";
    case XML_ERROR_INVALID_TOKEN: return "a character where none is allowed";
    case XML_ERROR_TAG_MISMATCH: return "an end tag for another element";
    case XML_ERROR_DUPLICATE_ATTRIBUTE: return "an attribute is given twice";
    case XML_ERROR_JUNK_AFTER_DOC_ELEMENT: return "more follows the root element";
    case XML_ERROR_UNDEFINED_ENTITY: return "an entity is not declared";
    case XML_ERROR_RECURSIVE_ENTITY_REF: return "an entity contains itself";
    case XML_ERROR_ASYNC_ENTITY: return "an entity ends in another element than it begins";
    case XML_ERROR_BINARY_ENTITY_REF:
    case XML_ERROR_ATTRIBUTE_EXTERNAL_ENTITY_REF: return "an entity of another file is used";
    case XML_ERROR_BAD_CHAR_REF: return "a reference to an invalid character";
    case XML_ERROR_UNBOUND_PREFIX: return "a namespace prefix is not declared";
    case XML_ERROR_UNDECLARING_PREFIX:
    case XML_ERROR_RESERVED_PREFIX_XML:
    case XML_ERROR_RESERVED_PREFIX_XMLNS:
    case XML_ERROR_RESERVED_NAMESPACE_URI: return "an invalid declaration of a namespace";
    case XML_ERROR_MISPLACED_XML_PI: return "the XML declaration is not at the start";
    case XML_ERROR_XML_DECL:
    case XML_ERROR_TEXT_DECL: return "an invalid XML declaration";
    case XML_ERROR_UNKNOWN_ENCODING:
    case XML_ERROR_INCORRECT_ENCODING: return "its encoding is not the declared one";
    case XML_ERROR_SYNTAX: return "invalid syntax";
    default: return "not well-formed";
    }
}
