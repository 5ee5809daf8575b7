import PrefetchModel
import Threading

/// Decides whether a run's threads look up single rows of a table or read it into memory: once
/// look-ups have cost about as much as a scan, each thread reads one piece.
final class SharedScan<Piece: Sendable>: Sendable {
    enum ScanStep {
        case look
        /// The caller must call ``keep(_:_:)`` afterwards.
        case readPiece(Int)
        case use([Piece])
    }

    private enum ScanProgress {
        /// The payload is the number of look-ups.
        case looking(Int)
        /// Each thread takes the next piece.
        case reading(next: Int, [Piece?])
        case read([Piece])
        case tooLarge
    }

    private let state: Monitor<ScanProgress>
    private let pieces: Int
    private let lookupsBefore: Int

    /// Scanned rows that cost as much as a look-up, and look-ups before a scan is considered.
    private static var rowsPerLookup: Int { 8 }
    private static var leastLookups: Int { 20_000 }

    /// Creates a scan of about this many rows in `pieces`, 1 or more. With more `expectedLookups`
    /// than the threshold, the table is read immediately; with more than `mostRows` rows, never.
    init(pieces: Int, rows: Int, mostRows: Int, expectedLookups: Int) {
        self.pieces = pieces
        lookupsBefore =
            rows > mostRows
            ? .max : max(SharedScan.leastLookups, rows / SharedScan.rowsPerLookup)
        state = Monitor(.looking(expectedLookups >= lookupsBefore ? lookupsBefore : 0))
    }

    /// The next step of a thread that wants `lookups` rows; call again after reading a piece.
    func nextStep(lookups: Int) -> ScanStep {
        state.withLock { state in
            switch state {
            case .looking(let count) where count >= lookupsBefore:
                state = .reading(next: 1, [Piece?](repeating: nil, count: pieces))
                return .readPiece(0)
            case .looking(let count):
                state = .looking(count + lookups)
                return .look
            case .reading(let next, let read) where next < pieces:
                state = .reading(next: next + 1, read)
                return .readPiece(next)
            case .reading, .tooLarge:
                // Another thread is still reading its piece.
                return .look
            case .read(let pieces):
                return .use(pieces)
            }
        }
    }

    /// Stores a piece; nil abandons the scan because the table is too large.
    func keep(_ piece: Piece?, _ number: Int) {
        state.withLock { state in
            guard case .reading(let next, var read) = state else { return }
            guard let piece else {
                state = .tooLarge
                return
            }
            read[number] = piece
            let whole = read.compactMap(\.self)
            state = whole.count == read.count ? .read(whole) : .reading(next: next, read)
        }
    }
}
