package import PrefetchModel
import URLParsing

/// Reads a manifest, plain or gzipped, line by line.
///
/// The text format: UTF-8, one URL a line.
/// - Lines end with LF or CR LF; the last one needs no end. A byte order mark in front is skipped.
/// - Spaces and tabs around a line do not count. A line that begins with `#` is a comment, an empty
///   one is skipped; both count as lines. So is what follows a `#` behind a space or tab.
/// - The URL ends at the first space or tab; ``URLParser`` says which are good.
/// - Fields `name=value` follow, separated by spaces or tabs: `priority`, `key`, `ttl`,
///   `encode`, `quality`, `variants`, `header` and `attr.NAME`; ``EntryFields`` says what they take. No
///   other name is known, and none but `header` may stand twice.
/// - A line with control bytes other than tabs is bad, as is one longer than
///   ``ManifestOptions/maximumLineBytes``, comments excepted.
///
/// A bad line is an entry with a problem; its text is the line's beginning, see ``LineExcerpt``.
/// Gzip is told by its first two bytes, from every source; members may follow one another. With
/// ``ManifestFormat/auto`` a source that begins like something else (an image, XML, JSON, a table with
/// a head) is refused as a whole.
/// Memory is bounded whatever the source holds.
package struct ManifestReader: EntryReading {
    private let reading: LineReading

    /// Whether the source is a regular file, whose end is known to come.
    package var isRegularFile: Bool { reading.isRegularFile }
    /// The source's size when it was opened, compressed or not; nil when it is no regular file.
    package var sizeInBytes: Int? { reading.sizeInBytes }

    /// Opens a manifest; `-` is standard input.
    ///
    /// - Throws: when the file cannot be opened, is a directory or shows by its beginning that it is
    ///   no list, or the base URL is not valid.
    package init(path: String, options: ManifestOptions = ManifestOptions()) throws(ManifestError) {
        reading = LineReading(
            try ByteSource(path: path, readBytes: options.readBytes),
            try ManifestReader.parser(options), options: options)
        // Of others nothing may have come yet.
        if isRegularFile { try reading.recognise() }
    }

    /// Reads from an open descriptor, which stays the caller's to close, after the reader's last
    /// use.
    ///
    /// `name` stands for the path in batches and errors.
    ///
    /// - Throws: when the descriptor is a directory's or not open, or the base URL is not valid.
    package init(
        descriptor: Int32, name: String, options: ManifestOptions = ManifestOptions()
    ) throws(ManifestError) {
        let source = try ByteSource(
            descriptor: descriptor, name: name, closesDescriptor: false,
            readBytes: options.readBytes)
        reading = LineReading(
            source, try ManifestReader.parser(options), options: options)
    }

    /// Reads lines that are in memory already, such as a command's arguments; `name` stands for the
    /// path in batches and errors.
    ///
    /// - Throws: when the base URL is not valid.
    package init(
        lines: [String], name: String, options: ManifestOptions = ManifestOptions()
    ) throws(ManifestError) {
        // A line end inside of one would make two of it.
        let text = lines.map { $0.replacing("\n", with: " ") + "\n" }.joined()
        var options = options
        options.format = .text
        reading = LineReading(
            ByteSource(Array(text.utf8), name: name, readBytes: options.readBytes),
            try ManifestReader.parser(options), options: options)
    }

    private static func parser(
        _ options: ManifestOptions
    ) throws(ManifestError) -> URLParser {
        do throws(URLParsingError) {
            return try URLParser(baseURL: options.baseURL)
        } catch {
            throw ManifestError(
                path: options.baseURL ?? "", operation: .configure, message: error.message,
                hint: error.hint)
        }
    }

    /// - Throws: once everything read before has been given, and then at every call: when the
    ///   source cannot be read, its gzip data is damaged or cut, its text is UTF-16, or its beginning
    ///   shows that it is no list.
    package mutating func nextBatch() throws(ManifestError) -> EntryBatch? {
        try reading.nextBatch()
    }
}
