#include "ccsv.h"

#include <stdlib.h>

// The states of `pstate`, from libcsv.c.
enum { ROW_NOT_BEGUN = 0, FIELD_BEGUN = 2 };

// libcsv removes white space around values unless it knows of none.
static int is_no_space(unsigned char byte) {
    return 0;
}

struct csv_parser *ccsv_make(unsigned char delimiter, unsigned char quote) {
    struct csv_parser *parser = malloc(sizeof *parser);
    if (parser == NULL) return NULL;
    if (csv_init(parser, CSV_STRICT) != 0) {
        free(parser);
        return NULL;
    }
    csv_set_delim(parser, delimiter);
    csv_set_quote(parser, quote);
    csv_set_space_func(parser, is_no_space);
    csv_set_blk_size(parser, 4096);
    return parser;
}

void ccsv_free(struct csv_parser *parser) {
    csv_free(parser);
    free(parser);
}

size_t ccsv_parse(
    struct csv_parser *parser, const void *bytes, size_t count,
    void (*value)(void *, size_t, void *), void (*row)(int, void *), void *context) {
    const unsigned char *start = bytes;
    size_t parsed = 0;
    while (parsed < count) {
        parsed += csv_parse(parser, start + parsed, count - parsed, value, row, context);
        // The strict mode also refuses quotation marks in values that do not begin with one.
        if (parsed == count || csv_error(parser) != CSV_EPARSE) return parsed;
        if (parser->pstate != FIELD_BEGUN || parser->quoted) return parsed;
        csv_set_opts(parser, 0);
        size_t one = csv_parse(parser, start + parsed, 1, value, row, context);
        csv_set_opts(parser, CSV_STRICT);
        if (one == 0) return parsed;
        parsed += one;
    }
    return parsed;
}

void ccsv_reset(struct csv_parser *parser) {
    parser->pstate = ROW_NOT_BEGUN;
    parser->quoted = 0;
    parser->spaces = 0;
    parser->entry_pos = 0;
    parser->status = CSV_SUCCESS;
}

bool ccsv_is_in_row(const struct csv_parser *parser) { return parser->pstate != ROW_NOT_BEGUN; }

bool ccsv_is_in_quotes(const struct csv_parser *parser) {
    return parser->pstate == FIELD_BEGUN && parser->quoted;
}

bool ccsv_limit_value(struct csv_parser *parser, size_t bytes) {
    if (parser->entry_pos <= bytes) return false;
    // The end of a quoted value removes its quotation mark, the last byte: one has to stay.
    parser->entry_pos = 1;
    parser->spaces = 0;
    return true;
}
