#include "csitemap.h"

#include "cxml_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef enum {
    OTHER = 0,
    URLSET,
    URL,
    LOC,
    IMAGE,
    VIDEO,
    IMAGE_LOC,
    /// An `image:loc` without an `image:image` around it.
    LONE_LOC,
    CAPTION,
    TITLE,
    SITEMAPINDEX,
    SITEMAP,
    SITEMAP_LOC,
} element;

enum { TEXTS = SITEMAP_LOC + 1 };

typedef struct {
    /// The element itself, or the innermost one around it that has a meaning.
    element scope;
    bool is_known;
} place;

typedef struct {
    char *bytes;
    size_t count;
    /// The beginning of the present text; texts of other elements of the name precede it.
    size_t start;
    bool is_there, is_cut;
} buffer;

struct csitemap {
    XML_Parser parser;
    size_t text_bytes;
    size_t memory_left;
    csitemap_visitor visitor;
    void *context;
    size_t depth;
    bool is_in_url;
    /// Whether the present image had a `loc` that was too long.
    bool has_cut_loc;
    place path[CSITEMAP_DEPTH];
    /// By element; empty for those without text.
    buffer texts[TEXTS];
    /// Set when the parse is stopped by a handler.
    csitemap_status stop;
    char message[96];
};

static void stop(csitemap *sitemap, csitemap_status status, const char *message) {
    sitemap->stop = status;
    snprintf(sitemap->message, sizeof sitemap->message, "%s", message);
    XML_StopParser(sitemap->parser, XML_FALSE);
}

/// The meaning of an element with this name in another one. Letters' case is ignored.
static element element_in(element parent, size_t depth, const char *full_name) {
    // In the order of search: `image:loc` precedes `loc`.
    static const struct {
        element parent, element;
        const char *name;
    } known[] = {
        {URL, LONE_LOC, "image:loc"}, {URLSET, LONE_LOC, "image:loc"}, {URL, LOC, "loc"},
        {URL, IMAGE, "image"}, {URLSET, IMAGE, "image"}, {IMAGE, IMAGE_LOC, "loc"},
        {IMAGE, CAPTION, "caption"}, {IMAGE, TITLE, "title"}, {URL, VIDEO, "video"},
        {URLSET, VIDEO, "video"}, {VIDEO, IMAGE_LOC, "thumbnail_loc"},
        {VIDEO, CAPTION, "description"}, {VIDEO, TITLE, "title"}, {URLSET, URL, "url"},
        {SITEMAPINDEX, SITEMAP, "sitemap"}, {SITEMAP, SITEMAP_LOC, "loc"}};
    const char *name = cxml_local_name(full_name);
    if (depth == 0) {
        if (strcasecmp(name, "urlset") == 0) return URLSET;
        return strcasecmp(name, "sitemapindex") == 0 ? SITEMAPINDEX : OTHER;
    }
    for (size_t index = 0; index < sizeof known / sizeof *known; index += 1) {
        if (known[index].parent != parent) continue;
        if (strcasecmp(known[index].name, name) == 0
            || strcasecmp(known[index].name, full_name) == 0) {
            return known[index].element;
        }
    }
    return OTHER;
}

/// The innermost open element; OTHER if it has no meaning.
static element current(const csitemap *sitemap) {
    if (sitemap->depth == 0) return OTHER;
    place place = sitemap->path[sitemap->depth - 1];
    return place.is_known ? place.scope : OTHER;
}

static bool has_text(element element) {
    return element == LOC || element == IMAGE_LOC || element == LONE_LOC || element == CAPTION
        || element == TITLE || element == SITEMAP_LOC;
}

/// The element that gives a new one its meaning. Unknown ones are passed through, for wrappers.
static element scope(const csitemap *sitemap) {
    if (sitemap->depth == 0) return OTHER;
    element scope = sitemap->path[sitemap->depth - 1].scope;
    return has_text(scope) ? OTHER : scope;
}

static void set_empty(csitemap *sitemap, element element, bool is_there) {
    buffer *buffer = &sitemap->texts[element];
    buffer->count = 0;
    buffer->start = 0;
    buffer->is_there = is_there;
    buffer->is_cut = false;
}

static void append(csitemap *sitemap, element element, const char *text, size_t count) {
    buffer *buffer = &sitemap->texts[element];
    if (!buffer->is_there) return;
    size_t room = buffer->start + sitemap->text_bytes - buffer->count;
    if (count > room) {
        count = room;
        buffer->is_cut = true;
    }
    // Texts begin in the first half.
    if (buffer->bytes == NULL) buffer->bytes = malloc(2 * sitemap->text_bytes);
    if (buffer->bytes == NULL) return stop(sitemap, CSITEMAP_INVALID, "no memory for its texts");
    memcpy(buffer->bytes + buffer->count, text, count);
    buffer->count += count;
}

static void take_text(void *data, const char *text, int length) {
    csitemap *sitemap = data;
    append(sitemap, current(sitemap), text, (size_t)length);
}

static bool is_space(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static csitemap_text trimmed(const char *bytes, size_t count) {
    size_t start = 0, end = count;
    while (start < end && is_space(bytes[start])) start += 1;
    while (end > start && is_space(bytes[end - 1])) end -= 1;
    return (csitemap_text){end == start ? "" : bytes + start, end - start};
}

static csitemap_text text_of(const csitemap *sitemap, element element) {
    const buffer *buffer = &sitemap->texts[element];
    return buffer->is_there ? trimmed(buffer->bytes, buffer->count) : (csitemap_text){NULL, 0};
}

static void visit(csitemap *sitemap, csitemap_kind kind, element loc, csitemap_text url) {
    csitemap_entry entry = {
        .kind = kind, .line = XML_GetCurrentLineNumber(sitemap->parser),
        .url = url, .is_cut = sitemap->texts[loc].is_cut};
    if (kind == CSITEMAP_IMAGE) {
        entry.page = text_of(sitemap, LOC);
        entry.awaits_page = sitemap->is_in_url && !sitemap->texts[LOC].is_there;
        entry.caption = text_of(sitemap, CAPTION);
        entry.title = text_of(sitemap, TITLE);
    }
    sitemap->visitor(&entry, sitemap->context);
}

/// Visits every `loc` of an image. A caption may follow the last one, and is of all of them.
static void visit_images(csitemap *sitemap) {
    const buffer *locs = &sitemap->texts[IMAGE_LOC];
    if (!locs->is_there) return visit(sitemap, CSITEMAP_IMAGE, IMAGE_LOC, (csitemap_text){NULL, 0});
    const char *bytes = locs->bytes == NULL ? "" : locs->bytes;
    for (size_t start = 0; start <= locs->count;) {
        size_t length = strnlen(bytes + start, locs->count - start);
        visit(sitemap, CSITEMAP_IMAGE, IMAGE_LOC, trimmed(bytes + start, length));
        start += length + 1;
    }
}

/// Begins a further `loc` of an image. XML has no zero byte, which separates them.
static void start_image_loc(csitemap *sitemap) {
    buffer *locs = &sitemap->texts[IMAGE_LOC];
    if (locs->is_there && locs->count + 1 < sitemap->text_bytes) {
        locs->start = locs->count;
        append(sitemap, IMAGE_LOC, "", 1);
        locs->start = locs->count;
        return;
    }
    if (locs->is_there) visit_images(sitemap);
    set_empty(sitemap, IMAGE_LOC, true);
}

/// Takes a `loc` that is too long out of the URLs of its image, which are no worse for it.
static void end_image_loc(csitemap *sitemap) {
    buffer *locs = &sitemap->texts[IMAGE_LOC];
    if (!locs->is_cut) return;
    visit(
        sitemap, CSITEMAP_IMAGE, IMAGE_LOC,
        trimmed(locs->bytes + locs->start, locs->count - locs->start));
    locs->is_cut = false;
    locs->is_there = locs->start > 0;
    locs->count = locs->start > 0 ? locs->start - 1 : 0;
    locs->start = 0;
    sitemap->has_cut_loc = true;
}

static void visit_text(csitemap *sitemap, csitemap_kind kind, element loc) {
    visit(sitemap, kind, loc, text_of(sitemap, loc));
}

static void start_element(void *data, const char *full_name, const char **attributes) {
    csitemap *sitemap = data;
    size_t depth = sitemap->depth;
    element parent = scope(sitemap);
    element element = element_in(parent, depth, full_name);
    if (depth == 0 && element == OTHER) {
        return stop(sitemap, CSITEMAP_OTHER, cxml_local_name(full_name));
    }
    if (depth == CSITEMAP_DEPTH) {
        return stop(sitemap, CSITEMAP_INVALID, "its elements are nested too deeply");
    }
    sitemap->depth += 1;
    bool is_known = element != OTHER;
    sitemap->path[depth] = (place){is_known ? element : parent, is_known};
    switch (element) {
    case URL:
        set_empty(sitemap, LOC, false);
        sitemap->is_in_url = true;
        break;
    case SITEMAP: set_empty(sitemap, SITEMAP_LOC, false); break;
    case IMAGE:
    case VIDEO:
        set_empty(sitemap, IMAGE_LOC, false);
        set_empty(sitemap, CAPTION, false);
        set_empty(sitemap, TITLE, false);
        sitemap->has_cut_loc = false;
        break;
    case IMAGE_LOC: start_image_loc(sitemap); break;
    case LONE_LOC:
        set_empty(sitemap, CAPTION, false);
        set_empty(sitemap, TITLE, false);
        set_empty(sitemap, element, true);
        break;
    case LOC:
    case CAPTION:
    case TITLE:
    case SITEMAP_LOC: set_empty(sitemap, element, true); break;
    default: break;
    }
}

static void end_element(void *data, const char *name) {
    csitemap *sitemap = data;
    switch (current(sitemap)) {
    case LOC: visit_text(sitemap, CSITEMAP_PAGE, LOC); break;
    case IMAGE_LOC: end_image_loc(sitemap); break;
    case IMAGE:
        if (sitemap->texts[IMAGE_LOC].is_there || !sitemap->has_cut_loc) visit_images(sitemap);
        break;
    case VIDEO:
        // One without a thumbnail names no image.
        if (sitemap->texts[IMAGE_LOC].is_there) visit_images(sitemap);
        break;
    case LONE_LOC: visit_text(sitemap, CSITEMAP_IMAGE, LONE_LOC); break;
    case SITEMAP_LOC: visit_text(sitemap, CSITEMAP_LIST, SITEMAP_LOC); break;
    case URL:
        // An image outside has no page.
        visit(sitemap, CSITEMAP_PAGE_END, LOC, text_of(sitemap, LOC));
        set_empty(sitemap, LOC, false);
        sitemap->is_in_url = false;
        break;
    case SITEMAP:
        // Its images are unknown.
        if (!sitemap->texts[SITEMAP_LOC].is_there) {
            visit_text(sitemap, CSITEMAP_LIST, SITEMAP_LOC);
        }
        break;
    default: break;
    }
    sitemap->depth -= 1;
}

/// Without entities nothing expands. expat opens no other file, and gets no references but XML's.
static void declare_entity(
    void *data, const char *name, int is_parameter, const char *value, int length,
    const char *base, const char *system, const char *public, const char *notation) {
    stop(data, CSITEMAP_INVALID, "its DOCTYPE declares entities, which sitemaps don't have");
}

csitemap *csitemap_make(
    size_t text_bytes, size_t memory, csitemap_visitor visitor, void *context) {
    csitemap *sitemap = calloc(1, sizeof *sitemap);
    if (sitemap == NULL) return NULL;
    sitemap->parser = cxml_make_parser("UTF-8", memory, false, sitemap);
    sitemap->memory_left = cxml_memory_left;
    if (sitemap->parser == NULL) {
        free(sitemap);
        return NULL;
    }
    sitemap->text_bytes = text_bytes;
    sitemap->visitor = visitor;
    sitemap->context = context;
    XML_SetElementHandler(sitemap->parser, start_element, end_element);
    XML_SetCharacterDataHandler(sitemap->parser, take_text);
    XML_SetEntityDeclHandler(sitemap->parser, declare_entity);
    XML_SetParamEntityParsing(sitemap->parser, XML_PARAM_ENTITY_PARSING_NEVER);
    return sitemap;
}

void csitemap_free(csitemap *sitemap) {
    cxml_memory_left = sitemap->memory_left;
    XML_ParserFree(sitemap->parser);
    for (size_t index = 0; index < TEXTS; index += 1) free(sitemap->texts[index].bytes);
    free(sitemap);
}

csitemap_result csitemap_read(
    csitemap *sitemap, const void *bytes, size_t count, bool is_last) {
    cxml_memory_left = sitemap->memory_left;
    enum XML_Status status = XML_Parse(sitemap->parser, bytes, (int)count, is_last);
    sitemap->memory_left = cxml_memory_left;
    csitemap_result result = {
        CSITEMAP_OK, "", XML_GetCurrentLineNumber(sitemap->parser),
        XML_GetCurrentColumnNumber(sitemap->parser) + 1};
    if (sitemap->stop != CSITEMAP_OK) {
        result.status = sitemap->stop;
        result.message = sitemap->message;
    } else if (status == XML_STATUS_ERROR) {
        result.status = CSITEMAP_INVALID;
        result.message = cxml_words_for(XML_GetErrorCode(sitemap->parser));
    }
    return result;
}
