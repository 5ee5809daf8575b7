/// A block of manifest entries in the order of their lines, kept as bytes.
///
/// One array holds the text of all its entries, since a `String` an entry would cost more than
/// everything else that a run does with an entry that is warm already.
package struct EntryBatch: Sendable {
    /// One entry: a line of a manifest that is neither blank nor a comment.
    package struct Record: Sendable {
        /// 1 for the first line of the manifest.
        package let line: Int
        /// The URL to request, without fragment and normalised, in ``EntryBatch/text``; for a bad line the
        /// line's own beginning (see ``problem``).
        package let url: Range<Int>
        /// The cache key in ``EntryBatch/text``: the URL without user information, or what the
        /// entry's field `key` says.
        package let key: Range<Int>
        package let priority: Priority
        /// Index into ``EntryBatch/problems``, or -1 for a good entry.
        package let problem: Int

        package init(
            line: Int, url: Range<Int>, key: Range<Int>, priority: Priority, problem: Int = -1
        ) {
            self.line = line
            self.url = url
            self.key = key
            self.priority = priority
            self.problem = problem
        }
    }

    /// Why a line cannot be an entry.
    package struct Problem: Error, Equatable, Sendable {
        /// `invalidEntry` or `unsupportedScheme`.
        package let reason: FailureReason
        /// One line, without the manifest's name and the line's number.
        package let message: String

        package init(reason: FailureReason, message: String) {
            self.reason = reason
            self.message = message
        }
    }

    /// The manifest's path as the user gave it; `-` for standard input.
    package let manifest: String
    /// UTF-8 (URLs are ASCII); the ranges of the records lie in it.
    package var text: [UInt8]
    package var records: [Record]
    package var problems: [Problem]

    package init(
        manifest: String, text: [UInt8] = [], records: [Record] = [], problems: [Problem] = []
    ) {
        self.manifest = manifest
        self.text = text
        self.records = records
        self.problems = problems
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
    /// - Throws: when the source cannot be read on; what was given before stays valid.
    mutating func nextBatch() throws -> EntryBatch?
}
