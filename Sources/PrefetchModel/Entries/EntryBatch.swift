/// A block of consecutive manifest entries, stored as bytes.
///
/// One array holds the text of all entries: a `String` per entry would cost more than all other
/// work on a warm entry.
package struct EntryBatch: Sendable {
    /// One entry: a line of a manifest that is neither blank nor a comment.
    package struct Record: Sendable {
        package let line: Int
        // Many records wait in queues: 32 bytes each, where `Int` would make it 64.
        private let urlStart: Int32
        private let urlEnd: Int32
        private let keyStart: Int32
        private let keyEnd: Int32
        /// The index of the problem if ``isBad``, else of the extras; -1 for none.
        private let index: Int32
        package let priority: Priority
        private let isBad: Bool
        /// Whether an ``IgnoredQuery`` applies to the key: URLs with other parameters request the
        /// same image.
        package let ignoresQuery: Bool

        /// The normalised URL to request, without fragment, in ``EntryBatch/text``. For a bad line
        /// the beginning of the line as written (see ``problem``).
        package var url: Range<Int> { Int(urlStart)..<Int(urlEnd) }
        /// The cache key in ``EntryBatch/text``: the URL without user information, or the value of
        /// the entry's field `key`.
        package var key: Range<Int> { Int(keyStart)..<Int(keyEnd) }
        /// Whether the key was given, or shortened, so that it is not the URL.
        package var hasOwnKey: Bool {
            keyStart != urlStart || keyEnd != urlEnd
        }
        package var problem: Int { isBad ? Int(index) : -1 }
        package var extras: Int { isBad ? -1 : Int(index) }

        /// - Precondition: The ranges and indices are within `Int32`.
        package init(
            line: Int, url: Range<Int>, key: Range<Int>, priority: Priority, problem: Int = -1,
            extras: Int = -1, ignoresQuery: Bool = false
        ) {
            precondition(problem < 0 || extras < 0, "a bad entry has no extras")
            self.line = line
            urlStart = Int32(url.lowerBound)
            urlEnd = Int32(url.upperBound)
            keyStart = Int32(key.lowerBound)
            keyEnd = Int32(key.upperBound)
            isBad = problem >= 0
            index = Int32(isBad ? problem : extras)
            self.priority = priority
            self.ignoresQuery = ignoresQuery
        }
    }

    package struct Problem: Sendable {
        /// `invalidEntry` or `unsupportedScheme` of a rejected line, `notSelected` of an excluded
        /// one. The message is one line without the manifest's name and the line number.
        package let failure: Failure
        package let columns: [UInt8]?
        /// Whether the last run had the same failure.
        package let isKnown: Bool

        package init(_ failure: Failure, columns: [UInt8]? = nil, isKnown: Bool = false) {
            self.failure = failure
            self.columns = columns
            self.isKnown = isKnown
        }
    }

    /// The manifest's path as the user gave it; `-` for standard input.
    package let manifest: String

    /// The shown URL of a bad line without any.
    package static let missingURL = "(none)"

    package static let nameOfArguments = "arguments"
    /// UTF-8 (URLs are ASCII) of less than 2 GiB that holds the ranges of the records.
    package var text: [UInt8] = []
    package var records: [Record] = []
    package var problems: [Problem] = []
    package var extras: [EntryExtras] = []
    /// The cache keys of entries of other shards, in ``text``.
    package var otherKeys: [Range<Int>] = []

    package init(manifest: String) {
        self.manifest = manifest
    }

    /// The URL of one of the batch's records, which has no problem.
    package func url(of record: Record) -> RequestURL {
        RequestURL(normalized: String(decoding: text[record.url], as: UTF8.self))
    }

    package func extras(of record: Record) -> EntryExtras? {
        record.extras < 0 ? nil : extras[record.extras]
    }

    /// Whether a stored image is that of a record with its key, see ``StoredURLs``.
    package func isImage(of record: Record, at stored: StoredURLs) -> Bool {
        stored.areOfImage(at: url(of: record), mirrors: extras(of: record)?.alternatives ?? [])
    }

    /// Returns why the image that a record's own key has is not the record's; nil if it is, and for
    /// a record without a key of its own.
    package func absence(
        of record: Record, key: String, at stored: StoredURLs?
    ) -> String? {
        guard record.hasOwnKey, record.problem < 0, let stored, !isImage(of: record, at: stored)
        else { return nil }
        return ReusedKeys.text(key, has: stored.requested)
    }
}

/// A start priority in `-100…100`; larger starts first. `high` is 10, `normal` 0 and `low` -10.
package struct Priority: Hashable, Comparable, BitwiseCopyable, Sendable {
    package let value: Int8

    package static let high = Priority(unchecked: 10)
    package static let normal = Priority(unchecked: 0)
    package static let low = Priority(unchecked: -10)
    package static let range = -100...100

    package init?(_ value: Int) {
        guard Priority.range.contains(value) else { return nil }
        self.value = Int8(value)
    }

    private init(unchecked value: Int8) {
        self.value = value
    }

    package static func < (left: Priority, right: Priority) -> Bool { left.value < right.value }
}

/// A source of a run's entries, batch by batch.
package protocol EntryReading: Sendable {
    /// Returns the next entries in order, or nil at the end.
    ///
    /// Blocks until the source has data. A batch has records or other keys. It is returned as soon
    /// as the source would block, so that lines written to a pipe are processed when they arrive.
    /// Called from one thread at a time, not from the cooperative pool. Throws a
    /// ``ReportableError`` if the user can fix it; batches returned before stay valid.
    mutating func nextBatch() throws -> EntryBatch?

    /// The total size of the sources if known at the start: a hint of the number of entries.
    var sizeInBytes: Int? { get }

    /// The first part so far that hides images; nil for whole lists.
    var gap: ListGap? { get }
}
