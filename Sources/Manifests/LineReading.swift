import Glibc
import PrefetchModel
import URLParsing

/// The state of a ``ManifestReader``: source, unparsed bytes and line number.
///
/// `@unchecked Sendable`: `EntryReading` promises that one thread at a time calls it, and only the
/// reader has access.
final class LineReading: @unchecked Sendable {
    private let source: ByteSource
    private let parser: URLParser
    private let options: ManifestOptions
    private let buffer: LineBuffer
    /// The number of the last parsed line.
    private var line = 0
    /// Whether the rest of a too long line is being skipped.
    private var isSkipping = false
    private var hasEnded = false
    /// Approximate memory of the batch's extras, which count towards its limit like its text.
    private var extrasBytes = 0
    private var failure: ManifestError?
    /// An error during ``recognise()`` that isn't thrown yet.
    private var readError: ManifestError?
    /// Whether ``recognise()`` has run.
    private var isRecognised: Bool
    private(set) var oddLines = OddLines()

    var isRegularFile: Bool { source.isRegularFile }
    var sizeInBytes: Int? { source.sizeInBytes }

    init(_ source: ByteSource, _ parser: URLParser, options: ManifestOptions) {
        self.source = source
        self.parser = parser
        self.options = options
        buffer = LineBuffer(capacity: options.maximumLineBytes + options.readBytes)
        isRecognised = options.format == .text
    }

    func nextBatch() throws(ManifestError) -> EntryBatch? {
        try recognise()
        var batch = EntryBatch(manifest: source.name)
        extrasBytes = 0
        do throws(ManifestError) {
            try collect(&batch)
        } catch {
            failure = error
            failure?.line = error.operation == .inflate || error.operation == .read ? line : nil
            if batch.records.isEmpty, let failure { throw failure }
        }
        return batch.records.isEmpty ? nil : batch
    }

    /// Checks that the source may be a list, before the first line is parsed. Reads at least one
    /// line, and more if that takes no waiting.
    ///
    /// - Throws: ``ManifestError`` if it is another kind of file, also at every later call.
    func recognise() throws(ManifestError) {
        if let failure { throw failure }
        guard !isRecognised else { return }
        isRecognised = true
        let wanted = min(ForeignContent.headBytes, options.maximumLineBytes)
        while !hasEnded, readError == nil, buffer.unread.count < wanted,
            source.isReady || buffer.nextLineEnd() == nil
        {
            do throws(ManifestError) {
                try readOn()
            } catch {
                // The bytes before the error may be the start of a list.
                readError = error
            }
        }
        let head = UnsafeRawBufferPointer(rebasing: buffer.unread.prefix(wanted))
        if let name = ForeignContent.name(of: head) {
            let error = ManifestError(
                path: source.name, operation: .recognise,
                message: "looks like \(name), not a list with one URL per line")
            failure = error
            throw error
        }
    }

    /// Adds entries until the batch is full or the source would block or has ended.
    private func collect(_ batch: inout EntryBatch) throws(ManifestError) {
        while batch.records.count < options.maximumBatchEntries,
            batch.text.count + extrasBytes < options.maximumBatchBytes
        {
            if let end = buffer.nextLineEnd() {
                try take(buffer.unread[..<end], to: &batch)
                buffer.discard(through: end)
            } else if isSkipping {
                buffer.discardAll()
                if hasEnded { return }
                guard try refill(batch) else { return }
            } else if buffer.unread.count > options.maximumLineBytes {
                try take(buffer.unread, to: &batch)
                isSkipping = true
                buffer.discardAll()
            } else if hasEnded {
                guard !buffer.unread.isEmpty else { return }
                try take(buffer.unread, to: &batch)
                buffer.discardAll()
            } else {
                guard try refill(batch) else { return }
            }
        }
    }

    /// Reads more bytes; false if the batch has entries and reading would wait.
    private func refill(_ batch: EntryBatch) throws(ManifestError) -> Bool {
        if !batch.records.isEmpty, !source.isReady { return false }
        try readOn()
        return true
    }

    private func readOn() throws(ManifestError) {
        if let readError { throw readError }
        if let count = try source.read(into: buffer.room()) {
            buffer.add(count)
        } else {
            hasEnded = true
        }
    }

    /// Parses one line without its line feed, or the beginning of a too long line.
    private func take(
        _ unparsed: UnsafeRawBufferPointer.SubSequence, to batch: inout EntryBatch
    ) throws(ManifestError) {
        if isSkipping {
            isSkipping = false
            return
        }
        line += 1
        var bytes = UnsafeRawBufferPointer(rebasing: unparsed).assumingMemoryBound(to: UInt8.self)
        let isTooLong = bytes.count > options.maximumLineBytes
        if isTooLong { bytes = UnsafeBufferPointer(rebasing: bytes[..<options.maximumLineBytes]) }
        if line == 1 { bytes = try withoutByteOrderMark(bytes) }
        if !isTooLong, bytes.last == 0x0D {
            bytes = UnsafeBufferPointer(rebasing: bytes.dropLast())
        }
        var start = 0
        while start < bytes.count, bytes[start].isBlank { start += 1 }
        if start == bytes.count ? !isTooLong : bytes[start] == UInt8(ascii: "#") { return }
        let text = UnsafeBufferPointer(rebasing: bytes[start...])
        oddLines.examine(text, number: line)
        do throws(LineFailure) {
            if isTooLong {
                throw .problem(
                    LineProblem("the line is longer than \(options.maximumLineBytes) bytes"))
            }
            try append(text, to: &batch)
        } catch {
            switch error {
            case .problem(let problem):
                let isHeader = batch.records.isEmpty && ForeignContent.isColumnOfURLs(text)
                appendBad(text, isHeader ? .header : problem, to: &batch)
            case .missingLibrary(let missing):
                throw ManifestError(
                    path: source.name, operation: .parse, message: missing.description,
                    hint: missing.hint)
            }
        }
    }

    /// Appends an invalid line. Its key is its text, which may be a key in the cache.
    private func appendBad(
        _ line: UnsafeBufferPointer<UInt8>, _ problem: LineProblem,
        to batch: inout EntryBatch
    ) {
        func append(_ excerpt: [UInt8]) -> Range<Int> {
            let start = batch.text.count
            batch.text += excerpt
            return start..<batch.text.count
        }
        let key = append(LineExcerpt.make(line))
        let url = problem.namesField ? line.firstIndex(where: \.isBlank) : nil
        batch.records.append(
            EntryBatch.Record(
                line: self.line,
                url: url.map {
                    append(LineExcerpt.make(UnsafeBufferPointer(rebasing: line[..<$0])))
                } ?? key, key: key, priority: .normal, problem: batch.problems.count))
        batch.problems.append(problem.failure)
    }

    /// Appends the entry of a line that begins with its URL. The batch is unchanged if it throws.
    private func append(
        _ bytes: UnsafeBufferPointer<UInt8>, to batch: inout EntryBatch
    ) throws(LineFailure) {
        guard let start = bytes.baseAddress else { return }
        let canonical = parser.canonicalPrefix(start, count: bytes.count)
        if canonical == bytes.count {
            let text = batch.text.count
            batch.text.append(contentsOf: bytes)
            let range = text..<batch.text.count
            batch.records.append(
                EntryBatch.Record(line: line, url: range, key: range, priority: .normal))
            return
        }
        guard !bytes.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) else {
            throw .problem(LineProblem("the line contains a control character"))
        }
        let end = bytes.firstIndex(where: \.isBlank) ?? bytes.count
        let fields: EntryFields
        do throws(LineProblem) {
            fields = try EntryFields(bytes, from: end, variants: options.variants)
        } catch {
            throw .problem(error)
        }
        let url = UnsafeBufferPointer(rebasing: bytes[..<end])
        let urlRange: Range<Int>
        let normalizedKey: Range<Int>
        do throws(URLParsingError) {
            (urlRange, normalizedKey) = try parser.append(url.span, to: &batch.text)
        } catch {
            throw LineFailure(error)
        }
        var keyRange = normalizedKey
        if let key = fields.key {
            batch.text.removeSubrange(urlRange.upperBound...)
            batch.text.append(contentsOf: bytes[key])
            keyRange = urlRange.upperBound..<batch.text.count
        }
        var extrasIndex = -1
        if let extras = fields.extras {
            extrasIndex = batch.extras.count
            batch.extras.append(extras)
            extrasBytes += extras.approximateBytes
        }
        batch.records.append(
            EntryBatch.Record(
                line: line, url: urlRange, key: keyRange, priority: fields.priority ?? .normal,
                extras: extrasIndex))
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

extension EntryExtras {
    /// Approximate memory, including allocation headers.
    fileprivate var approximateBytes: Int {
        let blockHead = 32
        let withVariants = ownVariants.reduce(MemoryLayout<EntryExtras>.stride + blockHead) {
            $0 + MemoryLayout<RequestedVariant>.stride + 2 * blockHead + $1.name.text.utf8.count
                + $1.recipeText.utf8.count
                + $1.recipe.transformations.count * MemoryLayout<Transformation>.stride
        }
        let withSteps = (steps ?? []).reduce(withVariants) { bytes, _ in
            bytes + MemoryLayout<Transformation>.stride
        }
        let withAttributes = attributes.reduce(withSteps) {
            $0 + MemoryLayout<EntryAttribute>.stride + $1.name.utf8.count + $1.value.count
                + blockHead
        }
        return headers.reduce(withAttributes) {
            $0 + MemoryLayout<HeaderField>.stride + $1.name.utf8.count + $1.value.utf8.count
                + blockHead
        }
    }
}
