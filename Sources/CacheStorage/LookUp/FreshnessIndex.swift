package import PrefetchModel
internal import SQLite

/// Looks up the freshness of a run's entries at a cost proportional to the list. Each thread has
/// its own ``CacheReader`` and shares this index.
///
/// A look-up in the table costs one or two microseconds, sorted and in a batch; a scan costs an
/// eighth of that per row (measured with 1 and 10 million rows). When the look-ups have cost about
/// as much as a scan, the table is read into memory. So the total is at most twice the cost of the
/// better strategy. If the size of the manifest suggests that many look-ups, the table is read
/// immediately; beyond ``FreshnessTable/largestCount`` rows it never is.
package final class FreshnessIndex: Sendable {
    private let scan: SharedScan<FreshnessTable>
    private let expectedRows: Int
    private let keyed: MarkedResources
    private let redirected: MarkedResources

    /// Creates the index; `expectedLookups` is an estimate, 0 if unknown. `marksRedirects`: whether
    /// ``FreshnessRecord/isRedirected`` is used.
    package init(
        _ source: CacheCatalog, expectedLookups: Int = 0, marksRedirects: Bool = false
    ) throws(StorageError) {
        // The largest identifier is read in constant time; a count would be a scan. Removed rows
        // make the estimate too large, which only delays the scan.
        (expectedRows, keyed, redirected) = try source.database.read("reading the index") {
            database in
            (
                Int(truncatingIfNeeded: max(0, try ListingLog.largestResource(in: database))),
                try MarkedResources(
                    where: MarkedResources.keyed, expectedLookups: expectedLookups, in: database),
                try marksRedirects
                    ? MarkedResources(
                        where: MarkedResources.redirected, expectedLookups: expectedLookups,
                        in: database) : .none
            )
        }
        scan = SharedScan(
            pieces: FreshnessTable.pieces, rows: expectedRows,
            mostRows: FreshnessTable.largestCount, expectedLookups: expectedLookups)
    }

    /// Whether the cache was empty when the index was created.
    package var isEmpty: Bool { expectedRows == 0 }

    package func records(
        of fingerprints: [VariantFingerprint], with reader: CacheReader
    ) throws(StorageError) -> [FreshnessRecord?] {
        while true {
            switch scan.nextStep(lookups: fingerprints.count) {
            case .look:
                return marked(try reader.freshnessRecords(of: fingerprints))
            case .readPiece(let piece):
                let table = try reader.freshnessTable(piece: piece, expectedRows: expectedRows)
                scan.keep(table, piece)
            case .use(let tables):
                return marked(FreshnessIndex.records(of: fingerprints, in: tables))
            }
        }
    }

    private func marked(_ found: [FreshnessRecord?]) -> [FreshnessRecord?] {
        var records = found
        for index in records.indices {
            guard let resource = records[index]?.resourceID else { continue }
            if keyed.mayContain(resource) { records[index]?.isKeyed = true }
            if redirected.mayContain(resource) { records[index]?.isRedirected = true }
        }
        return records
    }

    /// Looks up in two passes. The loads of each are independent, so their cache misses overlap.
    private static func records(
        of fingerprints: [VariantFingerprint], in tables: [FreshnessTable]
    ) -> [FreshnessRecord?] {
        tables.withUnsafeBufferPointer { tables in
            let starts = fingerprints.map { tables[FreshnessTable.piece(of: $0)].start(of: $0) }
            return fingerprints.indices.map { index in
                let fingerprint = fingerprints[index]
                return tables[FreshnessTable.piece(of: fingerprint)]
                    .record(of: fingerprint, from: starts[index])
            }
        }
    }
}

/// The resources that look-ups treat in another way than most, read once for an index.
struct MarkedResources: Sendable {
    private enum Found: Sendable {
        case few(ResourceSet)
        /// Any resource may be one.
        case many
    }

    private let found: Found

    static let none = MarkedResources(found: .few(ResourceSet()))
    /// Keys that are not the URLs of their images.
    static let keyed = "url <> key"
    /// Images that redirects led to.
    static let redirected = "final_url IS NOT NULL"

    private static let mostFew = 4096

    private init(found: Found) { self.found = found }

    /// Reads the resources of a condition with a partial index, which costs a tenth of a look-up
    /// for each; no more than are looked up.
    init(where condition: String, expectedLookups: Int, in database: Connection) throws {
        let most = max(MarkedResources.mostFew, expectedLookups)
        var (resources, count) = (ResourceSet(), 0)
        try database.forEach("SELECT id FROM resource WHERE \(condition) LIMIT \(most)") { row in
            resources.insert(try row.integer(0))
            count += 1
        }
        found = count < most ? .few(resources) : .many
    }

    func mayContain(_ resource: Int64) -> Bool {
        switch found {
        case .few(let resources): resources.contains(resource)
        case .many: true
        }
    }
}

/// A piece of the table `freshness` in memory: about 44 bytes a row, some 50 ns a look-up. The
/// first bits of the primary key divide the table into four pieces, which several threads can read
/// at the same time. Rows are in the order of the primary key. It is a part of a SHA-256 and so
/// evenly distributed: a directory by its first bits leads to within a row or two of the right one.
/// Times are whole seconds, rounded down and clamped to 1970–2106, so that no row counts as fresh
/// for too long.
struct FreshnessTable: Sendable {
    /// The fields of a look-up are adjacent, so it costs one or two cache misses.
    private struct PackedRow {
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

    private var rows: [PackedRow] = []
    private var varies: [VaryFingerprint] = []
    private var numbers: [VaryFingerprint: UInt16] = [:]
    /// The index of the first row with the entry's bits at the start of its key, or of the next.
    private var directory: [UInt32] = []
    private var directoryShift: UInt64 = 0

    /// The most rows that are held, in 700 MB; only a list of millions of entries reaches it.
    static let largestCount = 16_000_000

    private static let pieceBits: UInt64 = 2
    static let pieces = 1 << pieceBits

    static func piece(of fingerprint: VariantFingerprint) -> Int {
        Int(ordered(fingerprint.upper) >> (64 - pieceBits))
    }

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

    /// Adds the next row in order; false if there are too many rows or Vary fingerprints.
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
            PackedRow(
                upper: FreshnessTable.ordered(upper), lower: lower,
                resourceID: record.resourceID,
                validatedAt: FreshnessTable.seconds(record.validatedAt),
                // An expired row must not become 0, which means "validate at every use".
                expiresAt: record.expiresAt.milliseconds > 0
                    ? max(1, FreshnessTable.seconds(record.expiresAt)) : 0,
                varyNumber: varyNumber, isSuperseded: record.isSuperseded,
                isMain: record.isMain))
        return true
    }

    /// Builds the directory after the last row.
    mutating func seal() {
        // One bucket per row, rounded down to a power of two.
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

    /// The bits after the first ones, which are equal in the whole piece.
    private func bucket(of upper: UInt64) -> Int {
        Int((upper << FreshnessTable.pieceBits) >> directoryShift)
    }

    /// The index where the variant's row would begin; it must belong to this piece.
    func start(of fingerprint: VariantFingerprint) -> UInt32 {
        directory[bucket(of: FreshnessTable.ordered(fingerprint.upper))]
    }

    /// The row of the variant, searched from its ``start(of:)``; nil without one.
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

    /// Maps the order of SQLite's signed integers to unsigned integers.
    private static func ordered(_ upper: Int64) -> UInt64 {
        UInt64(bitPattern: upper) ^ 1 << 63
    }

    private static func seconds(_ time: Timestamp) -> UInt32 {
        UInt32(clamping: max(0, time.milliseconds) / 1000)
    }
}

/// A row of the table `freshness`, as far as a run needs it to decide whether an entry is warm.
package struct FreshnessRecord: Hashable, Sendable {
    package let resourceID: Int64
    /// The time of the origin's last confirmation.
    package let validatedAt: Timestamp
    /// Zero if it must be validated at every use.
    package let expiresAt: Timestamp
    /// The fingerprint of the response's Vary values; nil without Vary.
    let vary: VaryFingerprint?
    /// Whether a later run used another variant of the resource by its name.
    package let isSuperseded: Bool
    /// Whether it is or was in use as `main`.
    package private(set) var isMain = true
    /// Whether its resource's key may not be its URL: a field `key` was given, parameters were left
    /// out, or a mirror delivered it.
    package fileprivate(set) var isKeyed = false
    /// Whether redirects may have led to it.
    package fileprivate(set) var isRedirected = false

    package func isInUse(as name: VariantName) -> Bool {
        // Only `main` needs the distinction: its recipe may differ between entries.
        !isSuperseded && (isMain || name != .main)
    }
}
