package import PrefetchModel
import Threading

/// The room that a run's new content files may take, so that the cache stays within its bound while the run
/// goes on.
///
/// Whoever stores asks for room first, and waits until there is some: the writer removes images that the
/// run's lists do not name. Once nothing is left that may go, what does not fit is refused.
package final class RoomBudget: Sendable {
    private struct State {
        /// Of the files that rows name.
        var committed: Int
        /// Promised to entries whose rows are not committed yet, in blocks.
        var reserved: [Int: Int] = [:]
        /// What those that wait want, by the order in which they came.
        var waiting: [Int: Int] = [:]
        var nextWaiting = 0
        /// Whether nothing more can go.
        var isExhausted = false
        var isClosed = false

        var used: Int { reserved.values.reduce(committed, +) }
    }

    /// In blocks of ``DiskUsage/blockSize``.
    private let limit: Int
    private let state: Monitor<State>
    private let onShortage: @Sendable () -> Void

    /// - Parameters:
    ///   - limit: for all content files.
    ///   - usage: what they take now.
    ///   - onShortage: somebody begins to wait.
    package init(
        limit: ByteCount, usage: DiskUsage, onShortage: @escaping @Sendable () -> Void
    ) {
        self.limit = limit.bytes / DiskUsage.blockSize
        state = Monitor(State(committed: usage.blocks))
        self.onShortage = onShortage
    }

    /// Whether something has been refused for want of room.
    package var isExhausted: Bool { state.withLock { $0.isExhausted } }

    // MARK: Those that store

    /// Takes room for the files of an entry, and waits for it.
    ///
    /// - Parameters:
    ///   - sizes: of the files; those that are there already count, too, until ``settle(_:usage:)``.
    ///   - token: of the entry, which has none yet.
    /// - Returns: false when there is none, and none will be.
    package func reserve(_ sizes: some Sequence<ByteCount>, for token: Int) -> Bool {
        let blocks = sizes.reduce(0) { $0 + DiskUsage.blocks(of: $1) }
        var number: Int?
        while true {
            let answer = state.wait { state, _ -> Monitor<State>.Decision<Bool?> in
                if let answer = take(blocks, for: token, &state) {
                    if let number { state.waiting[number] = nil }
                    return .ready(answer)
                }
                guard number == nil else { return .wait(until: nil) }
                state.nextWaiting += 1
                number = state.nextWaiting
                state.waiting[state.nextWaiting] = blocks
                return .ready(nil)
            }
            if let answer { return answer }
            onShortage()
        }
    }

    /// - Returns: nil while it is open.
    private func take(_ blocks: Int, for token: Int, _ state: inout State) -> Bool? {
        guard state.used + blocks > limit else {
            state.reserved[token] = blocks
            return true
        }
        return state.isExhausted || state.isClosed || blocks > limit ? false : nil
    }

    /// Gives room back that was not used.
    package func giveBack(_ token: Int) {
        state.update { $0.reserved[token] = nil }
    }

    /// Refuses all that wait: the run ends.
    package func close() {
        state.update { $0.isClosed = true }
    }

    // MARK: The writer

    /// What content files may take so that one of those that wait gets its room; nil when nobody waits.
    var bound: ByteCount? {
        state.withLock { state in
            guard let wanted = state.waiting.values.min(), !state.isExhausted else { return nil }
            let others = state.used - state.committed
            return ByteCount(max(0, limit - others - wanted) * DiskUsage.blockSize)
        }
    }

    /// Notes what rows name now.
    ///
    /// - Parameters:
    ///   - tokens: of the entries that were committed.
    ///   - usage: by the rows of now.
    func settle(_ tokens: [Int], usage: DiskUsage) {
        state.update { state in
            for token in tokens { state.reserved[token] = nil }
            state.committed = usage.blocks
        }
    }

    /// Refuses what does not fit from now on.
    func noteExhaustion() {
        state.update { if !$0.waiting.isEmpty { $0.isExhausted = true } }
    }
}
