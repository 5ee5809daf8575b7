package import PrefetchModel
import Threading

/// The room that a run's new content files may take, so that the cache stays within its bound while the run
/// goes on.
///
/// Whoever stores asks for room first, and waits in turn until there is some: the writer removes images that
/// the run's lists do not name. Once nothing is left that may go, what does not fit is refused.
package final class RoomBudget: Sendable {
    package enum Answer: Sendable {
        case given
        /// Nothing more can go, and it does not fit.
        case full
        /// It is more than the cache may have in all.
        case tooLarge
        /// The run ends.
        case closed
    }

    private struct State {
        /// Of the files that rows name.
        var committed: Int
        /// Promised to entries whose rows are not committed yet, in blocks, and all of that.
        var reserved: [Int: Int] = [:]
        var allReserved = 0
        /// What those that wait want, by the order in which they came; as few as there are workers.
        var waiting: [Int: Int] = [:]
        var nextWaiting = 0
        /// Whether nothing more can go.
        var isExhausted = false
        var isClosed = false

        /// Whether there are blocks for somebody, whom nobody waits before who may get some.
        func has(_ blocks: Int, for number: Int?, limit: Int) -> Bool {
            let first = waiting.keys.min()
            return committed + allReserved + blocks <= limit
                && (first == nil || first == number || isExhausted)
        }

        mutating func giveBack(_ token: Int) {
            allReserved -= reserved.removeValue(forKey: token) ?? 0
        }
    }

    /// In blocks of ``DiskUsage/blockSize``.
    private let limit: Int
    /// What a file took on average before the run; 1 at least.
    private let typicalBlocks: Int
    private let state: Monitor<State>
    private let onShortage: @Sendable () -> Void

    /// - Parameters:
    ///   - limit: for all content files.
    ///   - usage: what they take now.
    ///   - onShortage: somebody waits, and something has changed.
    package init(
        limit: ByteCount, usage: DiskUsage, onShortage: @escaping @Sendable () -> Void
    ) {
        self.limit = limit.bytes / DiskUsage.blockSize
        typicalBlocks = usage.files > 0 ? max(1, usage.blocks / usage.files) : 1
        state = Monitor(State(committed: usage.blocks))
        self.onShortage = onShortage
    }

    /// Whether somebody waits for room: what is downloaded meanwhile may be downloaded in vain.
    package var isShort: Bool { state.withLock { !$0.waiting.isEmpty } }

    /// Whether something has been refused for want of room, and what is left is less than a file takes on average: what
    /// is downloaded now would mostly be downloaded in vain.
    package var isFull: Bool {
        state.withLock { state in
            state.isExhausted && state.committed + state.allReserved + typicalBlocks > limit
        }
    }

    /// Whether something has been refused for want of room.
    var isExhausted: Bool { state.withLock { $0.isExhausted } }

    // MARK: Those that store

    /// Takes room for the files of an entry, and waits for it.
    ///
    /// - Parameters:
    ///   - sizes: of the files; those that are there already count, too, until ``settle(_:usage:)``.
    ///   - replaced: of files whose rows go with the commit of these, so that their room is given back by it.
    ///   - token: of the entry, which has none yet.
    /// - Returns: whether it has it now.
    package func reserve(
        _ sizes: some Sequence<ByteCount>, replacing replaced: some Sequence<ByteCount> = [],
        for token: Int
    ) -> Answer {
        let wanted = sizes.reduce(0) { $0 + DiskUsage.blocks(of: $1) }
        guard wanted <= limit else { return .tooLarge }
        let blocks = wanted - replaced.reduce(0) { $0 + DiskUsage.blocks(of: $1) }
        guard blocks > 0 else { return .given }
        var number: Int?
        while true {
            let answer = state.wait { state, _ -> Monitor<State>.Decision<Answer?> in
                if let answer = decide(blocks, for: token, number, &state) {
                    if let number { state.waiting[number] = nil }
                    return .ready(answer)
                }
                guard number == nil else { return .wait(until: nil) }
                state.nextWaiting += 1
                number = state.nextWaiting
                state.waiting[state.nextWaiting] = blocks
                return .ready(nil)
            }
            if let answer {
                // Who waits behind may have its turn now, or be short of room.
                if number != nil { tellOthers() }
                return answer
            }
            onShortage()
        }
    }

    /// - Returns: nil while it is open.
    private func decide(
        _ blocks: Int, for token: Int, _ number: Int?, _ state: inout State
    ) -> Answer? {
        if state.isClosed { return .closed }
        if state.has(blocks, for: number, limit: limit) {
            state.reserved[token] = blocks
            state.allReserved += blocks
            return .given
        }
        return state.isExhausted ? .full : nil
    }

    private func tellOthers() {
        if state.update({ !$0.waiting.isEmpty }) { onShortage() }
    }

    /// Gives room back that was not used.
    package func giveBack(_ token: Int) {
        let isShort = state.update { state in
            state.giveBack(token)
            return !state.waiting.isEmpty
        }
        if isShort { onShortage() }
    }

    /// Turns all away that wait: the run ends.
    package func close() {
        state.update { $0.isClosed = true }
    }

    // MARK: The writer

    /// What content files may take so that the first of those that wait gets its room; nil when nobody waits, or
    /// room that others have taken has to come back first.
    var bound: ByteCount? {
        state.withLock { state in
            guard let first = state.waiting.keys.min(), let wanted = state.waiting[first],
                !state.isExhausted, limit - state.allReserved - wanted >= 0
            else { return nil }
            return ByteCount((limit - state.allReserved - wanted) * DiskUsage.blockSize)
        }
    }

    /// Notes a commit.
    ///
    /// - Parameters:
    ///   - tokens: of the entries that were committed.
    ///   - usage: by the rows of now.
    func settle(_ tokens: [Int], usage: DiskUsage) {
        let isShort = state.update { state in
            for token in tokens { state.giveBack(token) }
            state.committed = usage.blocks
            return !state.waiting.isEmpty
        }
        if isShort { onShortage() }
    }

    /// Notes what was left after ``bound`` was pruned to; when the first of those that wait still finds no
    /// room, and nobody has any to give back, there will be none.
    func notePruned(to usage: DiskUsage) {
        state.update { state in
            state.committed = usage.blocks
            guard let first = state.waiting.keys.min(), let wanted = state.waiting[first],
                !state.has(wanted, for: first, limit: limit), state.allReserved == 0
            else { return }
            state.isExhausted = true
        }
    }
}
