/// Reads sitemaps (<https://www.sitemaps.org/protocol.html>) with Google's image entries by expat,
/// piece by piece.
///
/// The text is UTF-8, whatever it declares. Nothing that the file names is opened. A DOCTYPE with
/// entities ends the parse, so none exist but XML's own. Namespaces are ignored: many files have
/// other ones or none, or do not declare their prefixes; unknown elements around known ones are
/// passed through.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

typedef enum {
    /// `urlset/url/loc`.
    CSITEMAP_PAGE = 0,
    /// `urlset/url/image/loc`, also without the `url` or the `image` around it, and
    /// `urlset/url/video/thumbnail_loc`.
    CSITEMAP_IMAGE,
    /// `sitemapindex/sitemap/loc`.
    CSITEMAP_LIST,
    /// The end of `urlset/url`, with the text of its `loc`, which is NULL without one. No entry.
    CSITEMAP_PAGE_END,
} csitemap_kind;

/// The most elements around one another; those between known ones have no meaning.
enum { CSITEMAP_DEPTH = 5000 };

/// UTF-8, without white space around it; NULL if the element is missing.
typedef struct {
    const char *_Nullable bytes;
    size_t count;
} csitemap_text;

typedef struct {
    csitemap_kind kind;
    /// The line of the end of `loc`, or of `image`; from 1.
    uint64_t line;
    /// The text of `loc`.
    csitemap_text url;
    /// For images: the `loc` of the page, if it is before the image.
    csitemap_text page;
    /// For images: the elements `caption` and `title`; of a video `description` and `title`.
    csitemap_text caption, title;
    /// Whether `url` was longer than the limit and is cut.
    bool is_cut;
    /// For images: whether the `loc` of the page may follow.
    bool awaits_page;
} csitemap_entry;

/// The texts are valid during the call.
typedef void (*csitemap_visitor)(const csitemap_entry *entry, void *context);

typedef enum {
    CSITEMAP_OK = 0,
    /// XML with another root element; the message is its name.
    CSITEMAP_OTHER,
    /// Not well-formed, or too large.
    CSITEMAP_INVALID,
} csitemap_status;

typedef struct {
    csitemap_status status;
    /// Static, or valid until the reader is freed.
    const char *message;
    /// The line of the problem and the byte in it, from 1.
    uint64_t line, column;
} csitemap_result;

typedef struct csitemap csitemap;

/// Creates a reader, freed by `csitemap_free`; NULL without memory.
///
/// - `text_bytes`: the longest text.
/// - `memory`: the most that expat may have allocated at a time, in bytes.
csitemap *_Nullable csitemap_make(
    size_t text_bytes, size_t memory, csitemap_visitor visitor, void *context);
void csitemap_free(csitemap *sitemap);

/// Reads the next bytes, at most 2 GiB. Entries are visited during the call.
///
/// After another status than `CSITEMAP_OK`, it must not be called again. The entries before are
/// valid.
csitemap_result csitemap_read(
    csitemap *sitemap, const void *_Nullable bytes, size_t count, bool is_last);

#pragma clang assume_nonnull end
