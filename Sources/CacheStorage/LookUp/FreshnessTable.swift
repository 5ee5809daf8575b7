package import PrefetchModel

/// A row of the table `freshness`, as far as a run needs it to decide whether an entry is warm.
package struct FreshnessRecord: Hashable, Sendable {
    package let resourceID: Int64
    /// When the origin last said that the copy is good.
    package let validatedAt: Timestamp
    /// Zero when it has to be validated at every use.
    package let expiresAt: Timestamp
    /// What the response varies on, or nil without Vary.
    let vary: VaryFingerprint?
    /// Whether a later run used another variant of the resource by its name.
    package let isSuperseded: Bool
    /// Whether it is in use as `main`, if it is in use.
    package let isMain: Bool

    /// Whether a run that uses the variant by that name finds it in use.
    package func isInUse(as name: VariantName) -> Bool {
        // Only `main` has to be told from the others: what it is made by may differ between entries.
        !isSuperseded && (isMain || name != .main)
    }

    /// Takes what `freshness.superseded` says for `mark`.
    init(
        resourceID: Int64, validatedAt: Timestamp, expiresAt: Timestamp, vary: VaryFingerprint?,
        mark: Int64
    ) {
        self.init(
            resourceID: resourceID, validatedAt: validatedAt, expiresAt: expiresAt, vary: vary,
            isSuperseded: mark == 1, isMain: mark == 0)
    }

    init(
        resourceID: Int64, validatedAt: Timestamp, expiresAt: Timestamp, vary: VaryFingerprint?,
        isSuperseded: Bool, isMain: Bool = true
    ) {
        self.resourceID = resourceID
        self.validatedAt = validatedAt
        self.expiresAt = expiresAt
        self.vary = vary
        self.isSuperseded = isSuperseded
        self.isMain = isMain
    }
}

/// A piece of the table `freshness` in memory: about 44 bytes a row, some 50 ns a look-up.
///
/// The table is cut in four by the first bits of its primary key, so that several threads may read
/// it at once.
///
/// Rows lie in the order of the table's primary key. The keys are parts of a SHA-256 and so spread
/// evenly: a directory by their first bits leads to within a row or two of the right one.
///
/// Times are kept as whole seconds, rounded down; what lies before 1970 or after 2106 is kept as
/// these ends, so that nothing counts as fresh for longer than its row says.
struct FreshnessTable: Sendable {
    /// All that a look-up needs lies together: it costs a miss of the processor's cache or two.
    private struct Row {
        let upper: UInt64
        let lower: Int64
        let resourceID: Int64
        let validatedAt: UInt32
        let expiresAt: UInt32
        /// 0 for none, else an index into ``varies`` plus one.
        let varyNumber: UInt16
        let isSuperseded: Bool
        let isMain: Bool
    }

    private var rows: [Row] = []
    private var varies: [VaryFingerprint] = []
    private var numbers: [VaryFingerprint: UInt16] = [:]
    /// Where the rows begin whose key begins with the bits of the index, or the next ones.
    private var directory: [UInt32] = []
    private var directoryShift: UInt64 = 0

    /// Rows of the whole table beyond which it is not worth its memory, which is some 700 MB then.
    /// A run comes to that only with a list of millions of entries.
    static let largestCount = 16_000_000

    private static let pieceBits: UInt64 = 2
    static let pieces = 1 << pieceBits

    /// The piece that the variant is in.
    static func piece(of fingerprint: VariantFingerprint) -> Int {
        Int(ordered(fingerprint.upper) >> (64 - pieceBits))
    }

    /// The primary keys of a piece.
    static func keys(ofPiece piece: Int) -> ClosedRange<Int64> {
        let first = UInt64(piece) << (64 - pieceBits)
        let last = first | (UInt64.max >> pieceBits)
        return Int64(bitPattern: first ^ 1 << 63)...Int64(bitPattern: last ^ 1 << 63)
    }

    var count: Int { rows.count }

    init(expectedCount: Int) {
        let expectedCount = min(expectedCount, FreshnessTable.largestCount) / FreshnessTable.pieces
        rows.reserveCapacity(expectedCount)
    }

    /// Adds the next row in the order of `freshness.fingerprint`.
    ///
    /// - Returns: false when the table is too large to be held, or what responses vary on too
    ///   various.
    mutating func append(upper: Int64, lower: Int64, _ record: FreshnessRecord) -> Bool {
        guard count < FreshnessTable.largestCount / FreshnessTable.pieces else { return false }
        var varyNumber: UInt16 = 0
        if let vary = record.vary {
            if let known = numbers[vary] {
                varyNumber = known
            } else {
                guard varies.count < UInt16.max else { return false }
                varies.append(vary)
                varyNumber = UInt16(varies.count)
                numbers[vary] = varyNumber
            }
        }
        rows.append(
            Row(
                upper: FreshnessTable.ordered(upper), lower: lower,
                resourceID: record.resourceID,
                validatedAt: FreshnessTable.seconds(record.validatedAt),
                // What is over must not become what has to be validated at every use, which is 0.
                expiresAt: record.expiresAt.milliseconds > 0
                    ? max(1, FreshnessTable.seconds(record.expiresAt)) : 0,
                varyNumber: varyNumber, isSuperseded: record.isSuperseded,
                isMain: record.isMain))
        return true
    }

    /// Makes the directory, after the last row.
    mutating func seal() {
        // As many buckets as rows, rounded down to a power of two.
        let bits = UInt64(max(1, Int.bitWidth - 1 - count.leadingZeroBitCount))
        directoryShift = 64 - bits
        directory = [UInt32](repeating: UInt32(count), count: 1 << bits)
        var next = 0
        for (index, row) in rows.enumerated() {
            let own = bucket(of: row.upper)
            while next <= own {
                directory[next] = UInt32(index)
                next += 1
            }
        }
    }

    /// By the bits behind those that are the same in the whole piece.
    private func bucket(of upper: UInt64) -> Int {
        Int((upper << FreshnessTable.pieceBits) >> directoryShift)
    }

    /// Where a row of the variant, which belongs to this piece, would begin.
    func start(of fingerprint: VariantFingerprint) -> UInt32 {
        directory[bucket(of: FreshnessTable.ordered(fingerprint.upper))]
    }

    /// The row of the variant, found from its ``start(of:)``; nil where there is none.
    func record(of fingerprint: VariantFingerprint, from start: UInt32) -> FreshnessRecord? {
        let upper = FreshnessTable.ordered(fingerprint.upper)
        var index = Int(start)
        while index < rows.count, rows[index].upper < upper { index += 1 }
        guard index < rows.count, rows[index].upper == upper,
            rows[index].lower == fingerprint.lower
        else { return nil }
        let row = rows[index]
        return FreshnessRecord(
            resourceID: row.resourceID, validatedAt: Timestamp(seconds: Int64(row.validatedAt)),
            expiresAt: Timestamp(seconds: Int64(row.expiresAt)),
            vary: row.varyNumber == 0 ? nil : varies[Int(row.varyNumber) - 1],
            isSuperseded: row.isSuperseded, isMain: row.isMain)
    }

    subscript(fingerprint: VariantFingerprint) -> FreshnessRecord? {
        record(of: fingerprint, from: start(of: fingerprint))
    }

    /// The order of SQLite's signed integers as one of unsigned ones.
    private static func ordered(_ upper: Int64) -> UInt64 {
        UInt64(bitPattern: upper) ^ 1 << 63
    }

    private static func seconds(_ time: Timestamp) -> UInt32 {
        UInt32(clamping: max(0, time.milliseconds) / 1000)
    }
}
