/// The transfers that are paused for memory, and the bytes that all running ones hold.
///
/// The transfers keep it up to date, so that a turn of the loop costs the same however many run and
/// wait. Used on the loop's thread only.
final class WaitingTransfers {
    /// In the order of their starts.
    private var transfers: [ActiveTransfer] = []
    private var starts = 0
    /// The bytes that the bodies of running transfers have reserved, paused ones included.
    var heldBytes = 0
    /// The part of them that paused transfers have reserved.
    private(set) var pausedBytes = 0
    /// Whether one of the transfers may exceed the budget.
    var hasOverdraft = false

    var oldest: ActiveTransfer? { transfers.first }

    /// Numbers a transfer that starts now.
    func nextStart() -> Int {
        starts += 1
        return starts
    }

    /// Newer transfers usually pause later: this moves few.
    func insert(_ transfer: ActiveTransfer) {
        transfers.insert(transfer, at: index(of: transfer.start))
        pausedBytes += transfer.progress.body.reserved
    }

    func remove(_ transfer: ActiveTransfer) {
        let index = index(of: transfer.start)
        guard index < transfers.count, transfers[index] === transfer else { return }
        transfers.remove(at: index)
        pausedBytes -= transfer.progress.body.reserved
    }

    /// Removes and returns the oldest transfers, as many as have missing bytes that fit in `room`
    /// together: none overtakes an older one.
    func take(fitting room: Int) -> [ActiveTransfer] {
        var room = room
        let taken = Array(
            transfers.prefix { transfer in
                room -= transfer.progress.missingBytes
                return room >= 0
            })
        transfers.removeFirst(taken.count)
        pausedBytes -= taken.reduce(0) { $0 + $1.progress.body.reserved }
        return taken
    }

    /// Whether the oldest waiting transfer has to exceed the budget while all bodies use `used`
    /// bytes: no release would follow, because the waiting transfers hold them all. If it has
    /// waited for long, other transfers may hold some: a slow host must not delay the run.
    ///
    /// While a body has left its transfer, its release is near. So the next overdraft waits until
    /// the body of the last one is released, and all bodies exceed the budget by one at most.
    func needsOverdraft(used: Int, isLongPaused: Bool) -> Bool {
        !hasOverdraft && (isLongPaused ? heldBytes : pausedBytes) >= used
    }

    /// The index of the first transfer that was not started before `start`.
    private func index(of start: Int) -> Int {
        var range = 0..<transfers.count
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            if transfers[middle].start < start {
                range = (middle + 1)..<range.upperBound
            } else {
                range = range.lowerBound..<middle
            }
        }
        return range.lowerBound
    }
}
