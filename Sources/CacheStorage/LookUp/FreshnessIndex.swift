import PrefetchModel
internal import SQLite

/// Answers for every entry of a run what the table `freshness` says of it, at a cost that fits the
/// list: a short list costs a few look-ups however large the cache is, a long one a single scan.
///
/// Look-ups in the table cost one or two microseconds, sorted and in a batch; a scan costs an eighth
/// of that a row (both measured with 1 and 10 million rows). As soon as the look-ups so far have cost
/// about as much as a scan would, the table is read into memory: whatever the length of the list
/// turns out to be, the whole costs at most twice the better way. Where that many are expected
/// anyway, from the size of the manifest, it is read at once. Tables beyond
/// ``FreshnessTable/largestCount`` rows are never read.
///
/// Every thread that looks up has a ``CacheReader`` of its own; what they share is here.
package final class FreshnessIndex: Sendable {
    private let scan: SharedScan<FreshnessTable>
    private let expectedRows: Int

    /// How many look-ups cost as much as the scan of a row, and the least that are made: below
    /// them neither way is worth a thought.
    private static let rowsPerLookup = 8
    private static let leastLookups = 20_000

    /// `expectedLookups` is a guess of how many there will be, 0 without one.
    ///
    /// - Throws: when the database cannot be read.
    package init(_ database: CacheDatabase, expectedLookups: Int = 0) throws(StorageError) {
        // Where the last row stands is known at once; a count would be a scan. Rows that were
        // removed make the guess too large, which only delays the scan.
        expectedRows = try database.read("reading the index") { database in
            try Statement(database, sql: "SELECT max(id) FROM resource")
                .first { Int(truncatingIfNeeded: max(0, try $0.optionalInteger(0) ?? 0)) } ?? 0
        }
        scan = SharedScan(
            pieces: FreshnessTable.pieces,
            lookupsBefore: expectedRows > FreshnessTable.largestCount
                ? .max
                : max(FreshnessIndex.leastLookups, expectedRows / FreshnessIndex.rowsPerLookup),
            expectedLookups: expectedLookups)
    }

    /// Whether nothing was stored when it was made.
    package var isEmpty: Bool { expectedRows == 0 }

    /// The records of `fingerprints`, in their order.
    ///
    /// - Throws: when the database cannot be read.
    package func records(
        of fingerprints: [VariantFingerprint], with reader: CacheReader
    ) throws(StorageError) -> [FreshnessRecord?] {
        while true {
            switch scan.nextStep(lookups: fingerprints.count) {
            case .look:
                return try reader.freshnessRecords(of: fingerprints)
            case .readPiece(let piece):
                let table = try reader.freshnessTable(piece: piece, expectedRows: expectedRows)
                scan.keep(table, piece)
            case .use(let tables):
                return FreshnessIndex.records(of: fingerprints, in: tables)
            }
        }
    }

    /// Looks up in memory, in two passes: the loads of each do not wait for one another, so that the
    /// processor has many of its cache misses under way at once.
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
