package import PrefetchModel
import URLParsing

/// Reads a manifest, plain or gzipped, line by line, in one of the formats of ``ManifestFormat``.
///
/// The text format: UTF-8, one URL per line.
/// - Lines end with LF or CR LF; the last line needs no end. A byte order mark is skipped.
/// - Spaces and tabs around a line are ignored. A line that begins with `#` is a comment; comments
///   and empty lines are skipped but counted. A `#` after a space or tab begins a comment, too.
/// - The URL ends at the first space or tab; ``URLParser`` has the rules.
/// - Fields `name=value` follow, separated by spaces or tabs; ``EntryFields`` has their names and
///   values. Other names are errors. A value in quotation marks may have spaces and tabs; `\"` and
///   `\\` stand for `"` and `\` in it.
/// - A line with control bytes other than tabs is bad, as is a line longer than
///   ``ManifestOptions/maximumLineBytes``, except for comments.
///
/// A bad line is an entry with a problem; its text is an excerpt, see ``LineExcerpt``. Gzip, also
/// with several members, is recognised by its first two bytes in every source. Memory is limited
/// for every source.
package struct ManifestReader: EntryReading {
    private let reading: LineReading

    /// The format; nil until it is known.
    package var format: ManifestFormat? { reading.formatName }
    /// Whether the source is a regular file, which has an end.
    package var isRegularFile: Bool { reading.isRegularFile }
    /// Whether the source is compressed; false before it is known.
    package var isCompressed: Bool { reading.isCompressed }
    /// The size of a regular file at opening, compressed or not; nil for other sources.
    package var sizeInBytes: Int? { reading.sizeInBytes }

    /// Opens a manifest; `-` is standard input.
    ///
    /// - Throws: ``ManifestError`` if the file can't be opened, is a directory or isn't a list, or
    ///   if the base URL is invalid.
    package init(path: String, options: ManifestOptions = ManifestOptions()) throws(ManifestError) {
        reading = LineReading(
            try ByteSource(path: path, readBytes: options.readBytes),
            try ManifestReader.parser(options), options: options)
        // Other sources may have no data yet.
        if isRegularFile { try reading.recognise() }
    }

    /// Reads from an open descriptor, which the caller closes after the reader's last use.
    ///
    /// `name` replaces the path in batches and errors.
    ///
    /// - Throws: ``ManifestError`` if the descriptor is a directory or not open, a regular file
    ///   isn't a list, or the base URL is invalid.
    package init(
        descriptor: Int32, name: String, options: ManifestOptions = ManifestOptions()
    ) throws(ManifestError) {
        let source = try ByteSource(
            descriptor: descriptor, name: name, closesDescriptor: false,
            readBytes: options.readBytes)
        reading = LineReading(
            source, try ManifestReader.parser(options), options: options)
        if isRegularFile { try reading.recognise() }
    }

    /// Reads lines in memory, such as a command's arguments; `name` replaces the path in batches
    /// and errors.
    ///
    /// - Throws: ``ManifestError`` if the base URL is invalid.
    package init(
        lines: [String], name: String, options: ManifestOptions = ManifestOptions()
    ) throws(ManifestError) {
        // A line end inside a line would split it.
        let text = lines.map { $0.replacing("\n", with: " ") + "\n" }.joined()
        var options = options
        options.format = .text
        reading = LineReading(
            ByteSource(Array(text.utf8), name: name, readBytes: options.readBytes),
            try ManifestReader.parser(options), options: options)
    }

    /// The unusual forms of the lines so far: the text, without the manifest's name, and the
    /// remedy.
    package var notes: [(text: String, remedy: String)] { reading.oddLines.notes }

    /// The entries of other shards so far.
    package var otherShards: Int { reading.otherShards }

    package var gap: ListGap? { reading.gap }

    /// The sitemaps of an index so far, with ``ManifestOptions/followsIndexes``.
    package var sitemaps: [ListedSitemap] { reading.sitemaps }

    /// The pages of a sitemap so far that are no entries, without ``ManifestOptions/readsPages``.
    package var skippedPages: Int { reading.skippedPages }

    private static func parser(
        _ options: ManifestOptions
    ) throws(ManifestError) -> URLParser {
        do {
            return try URLParser(baseURL: options.baseURL)
        } catch {
            throw ManifestError(
                path: options.baseURL ?? "", operation: .configure, message: error.message,
                hint: error.hint)
        }
    }

    /// Returns the next entries; nil at the end.
    ///
    /// - Throws: ``ManifestError``, after all entries before the error, and then at every call: the
    ///   source can't be read, its gzip data is damaged or incomplete, its text is UTF-16, or it
    ///   isn't a list.
    package mutating func nextBatch() throws(ManifestError) -> EntryBatch? {
        try reading.nextBatch()
    }
}
