/// The transfers that are paused for memory, and the bytes that all running ones hold.
///
/// The transfers keep it up to date, so that a turn of the loop costs the same however many run and
/// wait. Used on the loop's thread only.
final class WaitingTransfers {
    /// In the order of their starts.
    private var transfers: [ActiveTransfer] = []
    private var starts = 0
    /// The bytes that the bodies of running transfers have reserved.
    var heldBytes = 0
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
    }

    func remove(_ transfer: ActiveTransfer) {
        let index = index(of: transfer.start)
        guard index < transfers.count, transfers[index] === transfer else { return }
        transfers.remove(at: index)
    }

    /// Removes and returns the transfers with missing bytes that fit in `room`, the oldest first.
    func take(fitting room: Int) -> [ActiveTransfer] {
        var room = room
        var taken: [ActiveTransfer] = []
        transfers.removeAll { transfer in
            let missing = transfer.progress.missingBytes
            guard missing <= room else { return false }
            room -= missing
            taken.append(transfer)
            return true
        }
        return taken
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
