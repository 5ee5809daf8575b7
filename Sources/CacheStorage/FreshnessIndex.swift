internal import GRDB
import PrefetchModel

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
    private enum State {
        /// With the number of look-ups so far.
        case looking(Int)
        /// Every thread that comes along takes a piece of the table, until none is left.
        case reading(Pieces)
        case read([FreshnessTable])
        /// The table is too large for memory.
        case tooLarge
    }

    private struct Pieces {
        /// The next one that nobody has taken yet.
        var next = 0
        var tables = [FreshnessTable?](repeating: nil, count: FreshnessTable.pieces)

        var areComplete: Bool { !tables.contains { $0 == nil } }
    }

    private enum Step {
        case look
        case readPiece(Int)
        case use([FreshnessTable])
    }

    private let state: Monitor<State>
    private let expectedRows: Int
    private let lookupsBeforeScan: Int

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
            try PreparedStatement(database, sql: "SELECT max(id) FROM resource")
                .first { Int(truncatingIfNeeded: max(0, try $0.optionalInteger(0) ?? 0)) } ?? 0
        }
        lookupsBeforeScan =
            expectedRows > FreshnessTable.largestCount
            ? .max
            : max(FreshnessIndex.leastLookups, expectedRows / FreshnessIndex.rowsPerLookup)
        state = Monitor(.looking(expectedLookups >= lookupsBeforeScan ? lookupsBeforeScan : 0))
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
            switch nextStep(lookups: fingerprints.count) {
            case .look:
                return try reader.freshnessRecords(of: fingerprints)
            case .readPiece(let piece):
                let table = try reader.freshnessTable(piece: piece, expectedRows: expectedRows)
                keep(table, piece)
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

    private func nextStep(lookups: Int) -> Step {
        state.withLock { state in
            switch state {
            case .looking(let count) where count >= lookupsBeforeScan:
                state = .reading(Pieces(next: 1))
                return .readPiece(0)
            case .looking(let count):
                state = .looking(count + lookups)
                return .look
            case .reading(var pieces) where pieces.next < FreshnessTable.pieces:
                defer {
                    pieces.next += 1
                    state = .reading(pieces)
                }
                return .readPiece(pieces.next)
            case .reading, .tooLarge:
                // Another thread has its piece still to finish.
                return .look
            case .read(let tables):
                return .use(tables)
            }
        }
    }

    /// Keeps a piece of the table, or gives up where it is too large.
    private func keep(_ table: FreshnessTable?, _ piece: Int) {
        state.withLock { state in
            guard case .reading(var pieces) = state else { return }
            guard let table else {
                state = .tooLarge
                return
            }
            pieces.tables[piece] = table
            let tables = pieces.tables.compactMap(\.self)
            state = pieces.areComplete ? .read(tables) : .reading(pieces)
        }
    }
}
