/// A block of manifest entries in the order of their lines, kept as bytes.
///
/// One array holds the text of all its entries, since a `String` an entry would cost more than
/// everything else that a run does with an entry that is warm already.
package struct EntryBatch: Sendable {
    /// One entry: a line of a manifest that is neither blank nor a comment.
    package struct Record: Sendable {
        /// 1 for the first line of the manifest.
        package let line: Int
        // Many records wait in queues: they take 32 bytes each, where `Int` would make it 64.
        private let urlStart: Int32
        private let urlEnd: Int32
        private let keyStart: Int32
        private let keyEnd: Int32
        /// Of the problem if ``isBad``, else of the extras; -1 for none.
        private let index: Int32
        package let priority: Priority
        private let isBad: Bool

        /// The URL to request, without fragment and normalised, in ``EntryBatch/text``; for a bad
        /// line the line's own beginning, as it is written (see ``problem``).
        package var url: Range<Int> { Int(urlStart)..<Int(urlEnd) }
        /// The cache key in ``EntryBatch/text``: the URL without user information, or what the
        /// entry's field `key` says.
        package var key: Range<Int> { Int(keyStart)..<Int(keyEnd) }
        /// Index into ``EntryBatch/problems``, or -1 for a good entry.
        package var problem: Int { isBad ? Int(index) : -1 }
        /// Index into ``EntryBatch/extras``, or -1 for an entry without any.
        package var extras: Int { isBad ? -1 : Int(index) }

        /// - Precondition: the ranges and indices are within `Int32`, and there is a problem or
        ///   there are extras, not both.
        package init(
            line: Int, url: Range<Int>, key: Range<Int>, priority: Priority, problem: Int = -1,
            extras: Int = -1
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
        }
    }

    /// Why a line cannot be an entry.
    package struct Problem: Error, Equatable, Sendable {
        /// `invalidEntry` or `unsupportedScheme`.
        package let reason: FailureReason
        /// One line, without the manifest's name and the line's number.
        package let message: String
        /// Whether it is about a field that the message names, so that the URL in front is enough to show the line by.
        package let isOfField: Bool

        package init(reason: FailureReason, message: String, isOfField: Bool = false) {
            self.reason = reason
            self.message = message
            self.isOfField = isOfField
        }
    }

    /// The manifest's path as the user gave it; `-` for standard input.
    package let manifest: String
    /// UTF-8 (URLs are ASCII) of less than 2 GiB; the ranges of the records lie in it.
    package var text: [UInt8]
    package var records: [Record]
    package var problems: [Problem]
    /// Of the entries that have any, in their order.
    package var extras: [EntryExtras]

    package init(
        manifest: String, text: [UInt8] = [], records: [Record] = [], problems: [Problem] = [],
        extras: [EntryExtras] = []
    ) {
        self.manifest = manifest
        self.text = text
        self.records = records
        self.problems = problems
        self.extras = extras
    }

    /// The URL of one of the batch's records.
    ///
    /// - Precondition: the record has no problem.
    package func url(of record: Record) -> RequestURL {
        RequestURL(normalized: String(decoding: text[record.url], as: UTF8.self))
    }

    /// The extras of one of the batch's records, or nil where it has none.
    package func extras(of record: Record) -> EntryExtras? {
        record.extras < 0 ? nil : extras[record.extras]
    }
}

/// The larger starts first; `-100…100`, `high` is 10, `normal` 0 and `low` -10.
package struct Priority: Hashable, Comparable, Sendable {
    package let value: Int8

    package static let high = Priority(unchecked: 10)
    package static let normal = Priority(unchecked: 0)
    package static let low = Priority(unchecked: -10)
    package static let range = -100...100

    /// Returns nil outside -100…100.
    package init?(_ value: Int) {
        guard Priority.range.contains(value) else { return nil }
        self.value = Int8(value)
    }

    private init(unchecked value: Int8) {
        self.value = value
    }

    package static func < (left: Priority, right: Priority) -> Bool { left.value < right.value }
}

/// Gives the entries of a run, batch by batch.
package protocol EntryReading: Sendable {
    /// The next entries in order, or nil at the end.
    ///
    /// Blocks while the source has nothing to give. A batch is never empty, and is given as soon
    /// as the source would block, so that lines written to a pipe are seen when they arrive.
    /// Called from one thread at a time, not from the cooperative pool.
    ///
    /// - Throws: when the source cannot be read on; what was given before stays valid. With an
    ///   ``EntryReadingError``, where there is something to be done about it.
    mutating func nextBatch() throws -> EntryBatch?

    /// The size of all that there is to read, as far as it is known at the beginning: a hint of how
    /// many entries will come.
    var sizeInBytes: Int? { get }
}

/// Why a source of entries cannot be read on, in one line.
package protocol EntryReadingError: Error, CustomStringConvertible {
    /// What can be done about it; nil where nothing is known.
    var hint: String? { get }
}
