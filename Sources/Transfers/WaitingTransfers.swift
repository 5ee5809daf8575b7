/// The transfers that wait for memory, and what all that run hold of it.
///
/// Kept up to date by the transfers, so that a turn of the loop costs the same however many run
/// and wait. Used on the loop's thread only.
final class WaitingTransfers {
    /// In the order of their starts.
    private var transfers: [ActiveTransfer] = []
    private var starts = 0
    /// What the bodies of running transfers have reserved.
    private(set) var heldBytes = 0
    /// Whether one of them may take memory beyond the budget.
    var hasOverdraft = false

    /// The one that was started first.
    var oldest: ActiveTransfer? { transfers.first }

    /// The number of a transfer that starts now.
    func nextStart() -> Int {
        starts += 1
        return starts
    }

    /// Newer ones pause later as a rule, so that this moves few.
    func insert(_ transfer: ActiveTransfer) {
        transfers.insert(transfer, at: index(of: transfer.start))
    }

    func remove(_ transfer: ActiveTransfer) {
        let index = index(of: transfer.start)
        guard index < transfers.count, transfers[index] === transfer else { return }
        transfers.remove(at: index)
    }

    /// Takes out those that find what they wait for in `room` bytes, the oldest first.
    func take(fitting room: Int) -> [ActiveTransfer] {
        var room = room
        var taken: [ActiveTransfer] = []
        transfers.removeAll { transfer in
            guard transfer.missingBytes <= room else { return false }
            room -= transfer.missingBytes
            taken.append(transfer)
            return true
        }
        return taken
    }

    func holds(_ change: Int) {
        heldBytes += change
    }

    /// The place of the first transfer that was not started before.
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
