#include "celements.h"

#include "cxml_memory.h"

#include <stdint.h>
#include <string.h>

/// expat's tables take some 100 KB.
enum { MEMORY = 4 << 20 };

typedef struct {
    XML_Parser parser;
    celements_visitor visitor;
    void *context;
    size_t depth;
    /// Whether the innermost open element may be one without children.
    bool is_leaf, is_refused;
    char names[CELEMENTS_DEPTH][CELEMENTS_NAME];
    char text[CELEMENTS_TEXT];
    size_t count;
} reading;

static void refuse(reading *reading) {
    reading->is_refused = true;
    XML_StopParser(reading->parser, XML_FALSE);
}

static void start_element(void *data, const char *full_name, const char **attributes) {
    reading *reading = data;
    if (reading->depth == CELEMENTS_DEPTH) return refuse(reading);
    strncpy(reading->names[reading->depth], cxml_local_name(full_name), CELEMENTS_NAME - 1);
    reading->depth += 1;
    reading->count = 0;
    reading->is_leaf = true;
}

static void take_text(void *data, const char *text, int length) {
    reading *reading = data;
    size_t count = (size_t)length, room = CELEMENTS_TEXT - reading->count;
    if (count > room) count = room;
    memcpy(reading->text + reading->count, text, count);
    reading->count += count;
}

static void end_element(void *data, const char *name) {
    reading *reading = data;
    reading->depth -= 1;
    if (reading->is_leaf) {
        const char *parent = reading->depth == 0 ? "" : reading->names[reading->depth - 1];
        reading->visitor(
            parent, reading->names[reading->depth], reading->text, reading->count,
            reading->context);
    }
    reading->is_leaf = false;
}

static void start_doctype(
    void *data, const char *name, const char *system, const char *public, int has_subset) {
    refuse(data);
}

bool celements_read(
    const char *bytes, size_t count, celements_visitor visitor, void *context) {
    if (count > INT32_MAX) return false;
    reading reading = {.visitor = visitor, .context = context};
    reading.parser = cxml_make_parser(NULL, MEMORY, false, &reading);
    if (reading.parser == NULL) return false;
    XML_SetElementHandler(reading.parser, start_element, end_element);
    XML_SetCharacterDataHandler(reading.parser, take_text);
    XML_SetStartDoctypeDeclHandler(reading.parser, start_doctype);
    bool is_read = XML_Parse(reading.parser, bytes, (int)count, XML_TRUE) == XML_STATUS_OK;
    XML_ParserFree(reading.parser);
    return is_read && !reading.is_refused;
}
