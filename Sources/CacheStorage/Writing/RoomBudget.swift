package import PrefetchModel
import Threading

/// The disk space for a run's new content files, within the cache's size limit. Entries request
/// room before they store files, and wait in turn while the writer evicts images that are not in
/// the run's lists. When none is left, requests that do not fit are refused.
package final class RoomBudget: Sendable {
    package enum Answer: Sendable {
        case given
        /// The cache is full and nothing can be evicted.
        case full
        /// The request exceeds the limit of the whole cache.
        case tooLarge
        case closed
    }

    private struct Accounts {
        /// The blocks of the files that rows name.
        var committed: Int
        /// The blocks reserved by entries with uncommitted rows, by token, and their sum.
        var reserved: [Int: Int] = [:]
        var allReserved = 0
        /// The blocks of waiting requests by arrival number; at most one per worker.
        var waiting: [Int: Int] = [:]
        var nextWaiting = 0
        /// The average size of a file in blocks; at least 1.
        var typical: Int
        /// Whether nothing more can be evicted.
        var isExhausted = false
        /// The requests for new files refused since then, and the blocks of the smallest.
        var refused = (count: 0, least: Int.max)
        var isClosed = false

        /// Whether a request fits and no earlier one is waiting that could still be served.
        func has(_ blocks: Int, for number: Int?, limit: Int) -> Bool {
            let first = waiting.keys.min()
            return committed + allReserved + blocks <= limit
                && (first == nil || first == number || isExhausted)
        }

        init(_ usage: DiskUsage) {
            committed = usage.blocks
            typical = usage.typicalBlocks
        }

        mutating func note(_ usage: DiskUsage) {
            committed = usage.blocks
            typical = usage.typicalBlocks
        }

        mutating func giveBack(_ token: Int) {
            allReserved -= reserved.removeValue(forKey: token) ?? 0
        }
    }

    /// The limit in blocks of ``DiskUsage/blockSize``.
    private let limit: Int
    private let state: Monitor<Accounts>
    private let onShortage: @Sendable () -> Void

    /// `onShortage` is called when a request waits and the state has changed.
    package init(limit: ByteCount, usage: DiskUsage, onShortage: @escaping @Sendable () -> Void) {
        self.limit = limit.bytes / DiskUsage.blockSize
        state = Monitor(Accounts(usage))
        self.onShortage = onShortage
    }

    /// Whether a request waits for room. Downloads started now may be wasted.
    package var isShort: Bool { state.withLock { !$0.waiting.isEmpty } }

    /// Whether downloads of new images are wasted: a request was refused although nothing more can
    /// be evicted. A single one may have been for an unusually large image, unless an average file
    /// has no room either.
    package var isFull: Bool {
        state.withLock { state in
            state.refused.count > 1
                || state.refused.count == 1
                    && state.committed + state.allReserved + state.typical > limit
        }
    }

    /// The number of refused new images, and the disk space of the smallest; nil without any.
    package var refused: (count: Int, least: ByteCount)? {
        state.withLock { state in
            let (count, least) = state.refused
            return count == 0 ? nil : (count, ByteCount(least * DiskUsage.blockSize))
        }
    }

    var isExhausted: Bool { state.withLock { $0.isExhausted } }

    /// Reserves room for files of these sizes, and waits for it. Files that exist already count
    /// until ``settle(_:usage:)``. `replaced` are the sizes of files that the entry's commit frees.
    /// The entry, named by `token`, has no reservation yet.
    package func reserve(
        _ sizes: some Sequence<ByteCount>, replacing replaced: some Sequence<ByteCount> = [],
        for token: Int
    ) -> Answer {
        let wanted = sizes.reduce(0) { $0 + DiskUsage.blocks(of: $1) }
        guard wanted <= limit else { return .tooLarge }
        let freed = replaced.reduce(0) { $0 + DiskUsage.blocks(of: $1) }
        let blocks = wanted - freed
        guard blocks > 0 else { return .given }
        var number: Int?
        while true {
            let answer = state.wait { state, _ -> Monitor<Accounts>.Decision<Answer?> in
                if let answer = decide(blocks, for: token, number, isNew: freed == 0, &state) {
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
                // The next waiting request may be served now, or report a shortage.
                if number != nil { change() }
                return answer
            }
            onShortage()
        }
    }

    /// Decides a request; nil while it must wait.
    private func decide(
        _ blocks: Int, for token: Int, _ number: Int?, isNew: Bool, _ state: inout Accounts
    ) -> Answer? {
        if state.isClosed { return .closed }
        if state.has(blocks, for: number, limit: limit) {
            state.reserved[token] = blocks
            state.allReserved += blocks
            return .given
        }
        guard state.isExhausted else { return nil }
        if isNew {
            state.refused = (state.refused.count + 1, min(state.refused.least, blocks))
        }
        return .full
    }

    /// Lets the waiting requests look again, after a change.
    private func change(_ body: (inout Accounts) -> Void = { _ in }) {
        let isShort = state.update { state in
            body(&state)
            return !state.waiting.isEmpty
        }
        if isShort { onShortage() }
    }

    package func giveBack(_ token: Int) { change { $0.giveBack(token) } }

    /// Refuses all waiting requests, because the run ends.
    package func close() {
        state.update { $0.isClosed = true }
    }

    /// The limit to evict by to serve the first waiting request; images are removed down to
    /// ``PruneRule/defaultLowWater`` of it. Nil without one, or if reserved room must return first.
    var evictionLimit: ByteCount? {
        state.withLock { state in
            guard let first = state.waiting.keys.min(), let wanted = state.waiting[first],
                !state.isExhausted, limit - state.allReserved - wanted >= 0
            else { return nil }
            return ByteCount((limit - state.allReserved - wanted) * DiskUsage.blockSize)
        }
    }

    /// Records the commit of entries; `usage` is that of the current rows.
    func settle(_ tokens: [Int], usage: DiskUsage) {
        change { state in
            for token in tokens { state.giveBack(token) }
            state.note(usage)
        }
    }

    /// Records the usage after evicting by ``evictionLimit``. If the first waiting request still
    /// does not fit and no room is reserved, the budget is exhausted.
    func notePruned(to usage: DiskUsage) {
        state.update { state in
            state.note(usage)
            guard let first = state.waiting.keys.min(), let wanted = state.waiting[first],
                !state.has(wanted, for: first, limit: limit), state.allReserved == 0
            else { return }
            state.isExhausted = true
        }
    }
}
