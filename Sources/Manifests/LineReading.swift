import Glibc
import PrefetchModel
import URLParsing

/// The state of a ``ManifestReader``: source, unparsed bytes, line number and format.
///
/// `@unchecked Sendable`: `EntryReading` promises that one thread at a time calls it, and only the
/// reader has access.
final class LineReading: @unchecked Sendable {
    private let options: ManifestOptions
    private let buffer: LineBuffer
    private let entries: EntryAppender
    /// Nil until the beginning of the source has shown it.
    private var format: (any LineFormat)?
    /// The number of the present line.
    private var line = 0
    /// Whether the beginning of the present line was taken, because it is long.
    private var isInLongLine = false
    /// Whether the format has taken the end.
    private var isFinished = false
    private var failure: ManifestError?
    /// An error during ``recognise()`` that isn't thrown yet.
    private var readError: ManifestError?
    /// The format's name; nil until it is known.
    private(set) var formatName: ManifestFormat?

    private var source: ByteSource { buffer.source }
    var isRegularFile: Bool { source.isRegularFile }
    var sizeInBytes: Int? { source.sizeInBytes }
    var isCompressed: Bool { source.isCompressed }
    var sitemaps: [ListedSitemap] { (format as? SitemapFormat)?.sitemaps ?? [] }
    var skippedPages: Int { (format as? SitemapFormat)?.skippedPages ?? 0 }
    var otherShards: Int { entries.otherShards }
    var gap: ListGap? { entries.gap }
    var oddLines: OddLines { (format as? TextFormat)?.oddLines ?? OddLines() }

    init(_ source: ByteSource, _ parser: URLParser, options: ManifestOptions) {
        self.options = options
        buffer = LineBuffer(source, options)
        entries = EntryAppender(parser, manifest: source.name, options: options)
        if options.format != .auto { use(options.format) }
    }

    private func use(_ name: ManifestFormat) {
        formatName = name
        let path = source.name
        format =
            switch name {
            case .auto, .text: TextFormat()
            case .csv: TableFormat(name: path, usesTabs: false, options: options)
            case .tsv: TableFormat(name: path, usesTabs: true, options: options)
            case .jsonl: JSONLinesFormat(options: options)
            case .sitemap: SitemapFormat(name: path, options: options)
            }
    }

    func nextBatch() throws(ManifestError) -> EntryBatch? {
        let format = try recognise()
        do {
            try collect(format)
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
    /// takes no waiting.
    ///
    /// - Throws: ``ManifestError`` if it is another kind of file, also at every later call.
    @discardableResult
    func recognise() throws(ManifestError) -> any LineFormat {
        if let failure { throw failure }
        if let format { return format }
        let wanted = min(ForeignContent.headBytes, options.maximumLineBytes)
        while !buffer.hasEnded, readError == nil, buffer.unread.count < wanted,
            source.isReady || !hasContentLine
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

    /// Whether a whole line was read that is neither blank nor a comment.
    private var hasContentLine: Bool {
        guard let last = buffer.unread.lastIndex(of: 0x0A) else { return false }
        let lines = UnsafeRawBufferPointer(rebasing: buffer.unread[..<last])
            .assumingMemoryBound(to: UInt8.self)
        return lines.split(separator: 0x0A).contains { !$0.isBlankOrComment }
    }

    /// Adds entries until the batch is full or the source would block or has ended.
    private func collect(_ format: any LineFormat) throws {
        while !entries.isFull, !isFinished {
            if let end = buffer.nextLineEnd() {
                try take(buffer.unread[...end], endsLine: true, format)
                buffer.discard(through: end)
            } else if buffer.unread.count > options.maximumLineBytes {
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

    private func readOn() throws(ManifestError) {
        if let readError { throw readError }
        try buffer.readOn()
    }

    /// Takes a line with its line feed, or the next piece of a long one.
    private func take(
        _ unparsed: UnsafeRawBufferPointer.SubSequence, endsLine: Bool, _ format: any LineFormat
    ) throws {
        let isContinued = isInLongLine
        isInLongLine = !endsLine
        if !isContinued { line += 1 }
        if isContinued, !format.takesPieces { return }
        var bytes = UnsafeRawBufferPointer(rebasing: unparsed).assumingMemoryBound(to: UInt8.self)
        let textCount = bytes.count - (bytes.last == 0x0A ? 1 : 0)
        let isLong = isContinued || textCount > options.maximumLineBytes
        if isLong, !format.takesPieces {
            bytes = UnsafeBufferPointer(rebasing: bytes[..<options.maximumLineBytes])
        }
        if line == 1, !isContinued, !format.readsByteOrderMark {
            bytes = try withoutByteOrderMark(bytes)
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
        guard bytes.starts(with: [0xEF, 0xBB, 0xBF]) else { return bytes }
        return UnsafeBufferPointer(rebasing: bytes.dropFirst(3))
    }
}
