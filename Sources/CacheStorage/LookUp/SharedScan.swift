import PrefetchModel
import Threading

/// Whether a run looks single rows of a table up or reads all of it into memory, shared by the threads
/// that ask: look-ups are made until they have cost about as much as the reading, which is done in
/// pieces then, by every thread that comes along.
final class SharedScan<Piece: Sendable>: Sendable {
    enum Step {
        case look
        /// To be followed by ``keep(_:_:)``.
        case readPiece(Int)
        case use([Piece])
    }

    private enum State {
        /// With the number of look-ups so far.
        case looking(Int)
        /// Every thread that comes along takes a piece of the table, until none is left.
        case reading(next: Int, [Piece?])
        case read([Piece])
        /// The table is too large for memory.
        case tooLarge
    }

    private let state: Monitor<State>
    private let pieces: Int
    private let lookupsBefore: Int

    /// - Parameters:
    ///   - pieces: into which the table is cut; at least 1.
    ///   - lookupsBefore: after which it is read; `Int.max` for never.
    ///   - expectedLookups: a guess; where it comes to `lookupsBefore`, the table is read at once.
    init(pieces: Int, lookupsBefore: Int, expectedLookups: Int) {
        self.pieces = pieces
        self.lookupsBefore = lookupsBefore
        state = Monitor(.looking(expectedLookups >= lookupsBefore ? lookupsBefore : 0))
    }

    /// What a thread does that wants so many rows; after a piece it asks again.
    func nextStep(lookups: Int) -> Step {
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
                // Another thread has its piece still to finish.
                return .look
            case .read(let pieces):
                return .use(pieces)
            }
        }
    }

    /// Keeps a piece, or with nil gives up: the table is too large.
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
