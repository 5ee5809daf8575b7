import PrefetchModel
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

    /// Creates the index; `expectedLookups` is an estimate, 0 if unknown.
    package init(_ source: CacheCatalog, expectedLookups: Int = 0) throws(StorageError) {
        // The largest identifier is read in constant time; a count would be a scan. Removed rows
        // make the estimate too large, which only delays the scan.
        expectedRows = try source.database.read("reading the index") { database in
            Int(truncatingIfNeeded: max(0, try ListingLog.largestResource(in: database)))
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
                return try reader.freshnessRecords(of: fingerprints)
            case .readPiece(let piece):
                let table = try reader.freshnessTable(piece: piece, expectedRows: expectedRows)
                scan.keep(table, piece)
            case .use(let tables):
                return FreshnessIndex.records(of: fingerprints, in: tables)
            }
        }
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
