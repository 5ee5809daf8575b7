package import PrefetchModel
package import URLParsing

/// The format of a manifest.
package enum ManifestFormat: String, CaseIterable, Sendable {
    /// The format that the name's extension and the beginning of the file show; refuses a file that
    /// begins like something else.
    case auto
    /// One URL per line with optional fields; see ``ManifestReader``.
    case text
    /// A table, see ``TableFormat``.
    case csv
    case tsv
    /// One JSON object per line, see ``JSONLinesFormat``.
    case jsonl
    /// A sitemap, see ``SitemapFormat``.
    case sitemap
}

/// The shard that a manifest's reader keeps.
package struct ShardFilter: Sendable {
    /// Finds the shard of an entry by its URL in normal form and its key.
    package typealias Selector = (
        _ url: UnsafeRawBufferPointer, _ key: () -> UnsafeRawBufferPointer
    ) -> Int

    package let index: Int
    /// Makes a selector for one thread.
    package let makeSelector: @Sendable () -> Selector

    package init(index: Int, makeSelector: @escaping @Sendable () -> Selector) {
        self.index = index
        self.makeSelector = makeSelector
    }
}

/// Options of reading a manifest.
package struct ManifestOptions: Sendable {
    package var format = ManifestFormat.auto
    /// The absolute `http` or `https` base URL of relative entries (RFC 3986 §5); without it a
    /// relative entry is a bad line.
    package var baseURL: String?
    /// The URL that a list was read from, without a redirect; nil for files. Sitemaps resolve
    /// against it.
    package var sourceURL: RequestURL?
    /// The schemes besides http and https that entries may have. A list by URL has no files.
    package var localSchemes: LocalSchemes = []
    /// The columns of tables and the members of JSON objects.
    package var columns = ColumnRules()
    /// Whether sitemaps list the URLs of pages, too.
    package var readsPages = false
    /// Whether the sitemaps in an index are collected as ``ManifestReader/sitemaps``. If not, they
    /// are bad entries.
    package var followsIndexes = false
    /// Whether each of several URLs in a cell, or of an array, is an entry with the row's columns.
    /// Without it an array has mirrors of one image, and such a cell is a bad entry.
    package var readsEachURL = false
    /// Whether rows without a picture are bad entries, so that each row is one.
    package var keepsEmptyRows = false
    /// Whether entries keep the columns that are no fields.
    package var keepsColumns = false
    /// Whether entries keep their URLs as the list spells them.
    package var keepsSpelling = false
    /// The entries that are wanted; the others are reported as excluded.
    package var selection = EntrySelection()
    /// The parameters of URLs' queries that keys leave out.
    package var ignoredQuery = IgnoredQuery.none
    /// The run's variants, against which the fields `variants` and `encode` are checked. Nil
    /// outside a run: only the syntax is checked, and `variants` selects nothing.
    package var variants: VariantSet?
    /// The wanted shard; others are skipped. Nil for all.
    package var shard: ShardFilter?
    /// Fields for all entries. Default none.
    package var listDefaults = HostDefaults()
    /// Weaker fields for the entries of some hosts. Default none.
    package var hostDefaults = HostTable<HostDefaults>()
    /// The most bytes of a source, after decompression.
    package var maximumBytes = Int.max
    /// The longest accepted line, without line end, and the longest row of a table; longer ones are
    /// bad entries. At least 1.
    package var maximumLineBytes = 16 << 20
    /// The most entries in a batch; at least 1.
    package var maximumBatchEntries = 4096
    /// The size of text and extras that ends a batch. At least 1 and at most 1 GiB, so ranges fit
    /// the 32 bits of a record even with one more entry.
    package var maximumBatchBytes = 1 << 20
    /// The most bytes to read or decompress in one call; at least 1.
    package var readBytes = 128 << 10

    package init() {}
}
