import Glibc
package import PrefetchModel
import URLParsing

/// Reads a manifest, plain or gzipped, line by line, in one of the formats of ``ManifestFormat``.
///
/// The text format: UTF-8, one URL per line.
/// - Lines end with LF or CR LF, or with CR if the beginning has no LF; the last line needs no end.
///   A byte order mark is skipped.
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
///
/// `@unchecked Sendable`: one thread at a time reads. In runs and plans, the threads of
/// `EntryLookup` take turns: its `read(as:)` takes the list out of a monitor for each batch. Other
/// commands read on their main thread. `isRegularFile` and `sizeInBytes` are constants.
package final class ManifestReader: EntryReading, @unchecked Sendable {
    private let options: ManifestOptions
    private let buffer: LineBuffer
    private let entries: EntryAppender
    /// Nil until the beginning of the source has shown it.
    private var lines: (any LineFormat)?
    /// The number of the present line.
    private var line = 0
    /// Whether the beginning of the present line was taken, because it is long.
    private var isInLongLine = false
    /// Whether the format has taken the end.
    private var isFinished = false
    /// Whether the beginning of a table was tried, or need not be.
    private var isTried = false
    private var encoding = EncodingCheck()
    private var failure: ManifestError?
    /// An error during ``recognise()`` that isn't thrown yet.
    private var readError: ManifestError?
    private var source: ByteSource { buffer.source }

    /// The format; nil until it is known.
    package private(set) var format: ManifestFormat?
    /// Whether the source is a regular file, which has an end.
    package var isRegularFile: Bool { source.isRegularFile }
    /// Whether the source is compressed; false before it is known.
    package var isCompressed: Bool { source.isCompressed }
    /// The size of a regular file at opening, compressed or not; nil for other sources.
    package var sizeInBytes: Int? { source.sizeInBytes }
    /// The unusual forms of the lines so far: the text, without the manifest's name, and the
    /// remedy.
    package var notes: [(text: String, remedy: String)] {
        entries.notes.texts + ((lines as? any ColumnFormat)?.named.notes ?? [])
            + ((lines as? SitemapFormat)?.notes ?? []) + encoding.notes
    }
    /// The rows without a picture so far, which are skipped.
    package var skipped: CountedLines { entries.notes.skipped }
    /// The reason that no row so far is an entry, if all lack the column of the URL.
    package var missingColumn: String? { (lines as? JSONLinesFormat)?.missingMember }
    /// The entries of other shards so far.
    package var otherShards: Int { entries.otherShards }
    package var gap: ListGap? { entries.gap }
    /// The sitemaps of an index so far, with ``ManifestOptions/followsIndexes``.
    package var sitemaps: [ListedSitemap] { (lines as? SitemapFormat)?.sitemaps ?? [] }
    /// The pages of a sitemap so far that are no entries, without ``ManifestOptions/readsPages``.
    package var skippedPages: Int { (lines as? SitemapFormat)?.skippedPages ?? 0 }

    private init(_ source: ByteSource, _ options: ManifestOptions) throws(ManifestError) {
        self.options = options
        buffer = LineBuffer(source, options)
        entries = EntryAppender(
            try ManifestReader.parser(options), manifest: source.name, options: options)
        if options.format != .auto { use(options.format) }
        // Other sources may have no data yet.
        if isRegularFile { try recognise() }
    }

    /// Opens a manifest; `-` is standard input.
    ///
    /// - Throws: ``ManifestError`` if the file can't be opened, is a directory or isn't a list, or
    ///   if the base URL is invalid.
    package convenience init(
        path: String, options: ManifestOptions = ManifestOptions()
    ) throws(ManifestError) {
        try self.init(ByteSource(path: path, readBytes: options.readBytes), options)
    }

    /// Reads from an open descriptor, which the caller closes after the reader's last use.
    ///
    /// `name` replaces the path in batches and errors.
    ///
    /// - Throws: ``ManifestError`` if the descriptor is a directory or not open, a regular file
    ///   isn't a list, or the base URL is invalid.
    package convenience init(
        descriptor: Int32, name: String, options: ManifestOptions = ManifestOptions()
    ) throws(ManifestError) {
        let source = try ByteSource(
            descriptor: descriptor, name: name, closesDescriptor: false,
            readBytes: options.readBytes)
        try self.init(source, options)
    }

    /// Reads lines in memory, such as a command's arguments; `name` replaces the path in batches
    /// and errors.
    ///
    /// - Throws: ``ManifestError`` if the base URL is invalid.
    package convenience init(
        lines: [String], name: String, options: ManifestOptions = ManifestOptions()
    ) throws(ManifestError) {
        // A line end inside a line would split it.
        let text = lines.map { $0.replacing("\n", with: " ") + "\n" }.joined()
        var options = options
        options.format = .text
        try self.init(
            ByteSource(Array(text.utf8), name: name, readBytes: options.readBytes), options)
    }

    private static func parser(_ options: ManifestOptions) throws(ManifestError) -> URLParser {
        do {
            return try URLParser(baseURL: options.baseURL, allowing: options.localSchemes)
        } catch {
            throw ManifestError(
                path: options.baseURL ?? "", operation: .configure, message: error.message,
                hint: error.hint)
        }
    }

    private func use(_ name: ManifestFormat) {
        format = name
        let path = source.name
        lines =
            switch name {
            case .auto, .text: TextFormat()
            case .csv: TableFormat(name: path, usesTabs: false, options: options)
            case .tsv: TableFormat(name: path, usesTabs: true, options: options)
            case .jsonl: JSONLinesFormat(options: options)
            case .sitemap: SitemapFormat(name: path, options: options)
            }
    }

    /// Returns the next entries; nil at the end.
    ///
    /// - Throws: ``ManifestError``, after all entries before the error, and then at every call: the
    ///   source can't be read, its gzip data is damaged or incomplete, its text is UTF-16, or it
    ///   isn't a list.
    package func nextBatch() throws(ManifestError) -> EntryBatch? {
        let lines = try recognise()
        if !isTried { tryBeginning(lines) }
        do {
            try collect(lines)
        } catch {
            var failure = failure(error)
            failure.line = [.inflate, .read].contains(failure.operation) ? line : nil
            self.failure = failure
            if entries.isEmpty { throw failure }
        }
        return entries.isEmpty ? nil : entries.take()
    }

    private func failure(_ error: any Error) -> ManifestError {
        if let error = error as? ManifestError { return error }
        let missing = error as? URLParsingError
        return ManifestError(
            path: source.name, operation: .parse, message: missing?.message ?? "\(error)",
            hint: missing?.hint)
    }

    /// Finds the format, before the first line is parsed. Reads at least one line, and more if that
    /// takes no waiting, or if a NUL says that it may be no text: pipes and files are judged alike.
    ///
    /// - Throws: ``ManifestError`` if it is another kind of file, also at every later call.
    @discardableResult
    private func recognise() throws(ManifestError) -> any LineFormat {
        if let failure { throw failure }
        if let lines { return lines }
        let wanted = min(ForeignContent.headBytes, options.maximumLineBytes)
        while !buffer.hasEnded, readError == nil, buffer.unread.count < wanted,
            source.isReady || !hasContentLine || buffer.unread.contains(0)
        {
            do {
                try readOn()
            } catch {
                // The bytes before the error may be the start of a list.
                readError = error
            }
        }
        let head = UnsafeRawBufferPointer(rebasing: buffer.unread.prefix(wanted))
        switch FormatDetection.content(of: head, name: source.name, options.columns) {
        case .list(let name): use(name)
        case .other(let name, let hint):
            let error = ManifestError(
                path: source.name, operation: .recognise,
                message: "looks like \(name), not a list", hint: hint)
            failure = error
            throw error
        }
        return try recognise()
    }

    /// Reads the beginning of a list with columns twice, if columns have the names of fields or
    /// several may be the URL's: a value that is not a field's, and the column that has URLs, must
    /// be known before the first row. Waits for one line at most.
    private func tryBeginning(_ lines: any LineFormat) {
        isTried = true
        guard let own = lines as? any ColumnFormat, let format else { return }
        while !buffer.hasEnded, readError == nil,
            buffer.unread.count < ManifestReader.triedBytes && source.isReady
                || !hasContentLine && buffer.unread.count <= options.maximumLineBytes
        {
            do { try readOn() } catch { readError = error }
        }
        let unread = buffer.unread
        let end =
            buffer.hasEnded
            ? unread.endIndex : unread.lastIndex(of: buffer.lineEndByte).map { $0 + 1 }
        let whole = unread[..<(end ?? unread.startIndex)]
        var rules = ManifestOptions()
        (rules.format, rules.columns, rules.baseURL) = (format, options.columns, options.baseURL)
        (rules.variants, rules.maximumLineBytes) = (options.variants, options.maximumLineBytes)
        (rules.readsEachURL, rules.maximumBatchEntries) = (options.readsEachURL, 64)
        let bytes = ByteSource(Array(whole), name: source.name, readBytes: options.readBytes)
        guard let trial = try? ManifestReader(bytes, rules),
            let tried = trial.lines as? any ColumnFormat
        else { return }
        trial.isTried = true
        tried.named.isTrial = true
        repeat {
            // An error has its place in the list.
            guard let batch = try? trial.nextBatch(), !batch.records.isEmpty else { break }
        } while tried.hasDoubt
        own.named = tried.named
        own.named.isTrial = false
    }

    private static let triedBytes = 256 << 10

    /// Whether a whole line was read that is neither blank nor a comment.
    private var hasContentLine: Bool {
        let lineEnd = buffer.lineEndByte
        guard let last = buffer.unread.lastIndex(of: lineEnd) else { return false }
        let lines = UnsafeRawBufferPointer(rebasing: buffer.unread[..<last])
            .assumingMemoryBound(to: UInt8.self)[...].withoutByteOrderMark
        return lines.split(separator: lineEnd).contains { !$0.isBlankOrComment }
    }

    /// Adds entries until the batch is full or the source would block or has ended.
    private func collect(_ format: any LineFormat) throws {
        while !entries.isFull, !isFinished {
            if let end = buffer.nextLineEnd() {
                try take(buffer.unread[...end], endsLine: true, format)
                buffer.discard(through: end)
            } else if buffer.unread.count > longestPiece(format) {
                try take(buffer.unread, endsLine: false, format)
                buffer.discardAll()
            } else if buffer.hasEnded {
                if !buffer.unread.isEmpty {
                    try take(buffer.unread, endsLine: true, format)
                    buffer.discardAll()
                }
                isFinished = true
                try format.finish(entries)
            } else {
                // The batch is delivered before the next read waits.
                if !entries.isEmpty, !source.isReady { return }
                try readOn()
            }
        }
    }

    /// The most bytes of a line that are taken together. Memory for whole lines is for formats that
    /// parse them at one time.
    private func longestPiece(_ format: any LineFormat) -> Int {
        format.takesPieces ? min(options.maximumLineBytes, 64 << 10) : options.maximumLineBytes
    }

    private func readOn() throws(ManifestError) {
        if let readError { throw readError }
        try buffer.readOn()
    }

    /// Takes a line with its line end, or the next piece of a long one.
    private func take(
        _ unparsed: UnsafeRawBufferPointer.SubSequence, endsLine: Bool, _ format: any LineFormat
    ) throws {
        let isContinued = isInLongLine
        isInLongLine = !endsLine
        if !isContinued { line += 1 }
        if isContinued, !format.takesPieces { return }
        var bytes = UnsafeRawBufferPointer(rebasing: unparsed).assumingMemoryBound(to: UInt8.self)
        let textCount = bytes.count - (bytes.last == buffer.lineEndByte ? 1 : 0)
        let isLong = isContinued || !endsLine || textCount > options.maximumLineBytes
        if isLong, !format.takesPieces {
            bytes = UnsafeBufferPointer(rebasing: bytes[..<options.maximumLineBytes])
        }
        if line == 1, !isContinued, !format.readsByteOrderMark {
            bytes = try withoutByteOrderMark(bytes)
        }
        if buffer.hasOtherBytes, !format.readsByteOrderMark,
            format is TableFormat || !bytes[...].isBlankOrComment
        {
            encoding.examine(
                bytes, line: line, isContinued: isContinued,
                endsLine: endsLine && (format.takesPieces || !isLong))
        }
        try format.take(ListLine(number: line, bytes: bytes, isLong: isLong), to: entries)
    }

    private func withoutByteOrderMark(
        _ bytes: UnsafeBufferPointer<UInt8>
    ) throws(ManifestError) -> UnsafeBufferPointer<UInt8> {
        if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) {
            throw ManifestError(
                path: source.name, operation: .decode,
                message: "UTF-16 is not supported; manifests must be UTF-8",
                hint: "convert it with iconv -f UTF-16 -t UTF-8")
        }
        return UnsafeBufferPointer(rebasing: bytes[...].withoutByteOrderMark)
    }
}

extension Slice<UnsafeBufferPointer<UInt8>> {
    fileprivate var withoutByteOrderMark: Self {
        starts(with: [0xEF, 0xBB, 0xBF]) ? dropFirst(3) : self
    }
}
