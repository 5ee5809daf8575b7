/// The transfers that wait for memory, and what all that run hold of it.
///
/// Kept up to date by the transfers, so that a turn of the loop costs the same however many run
/// and wait. Used on the loop's thread only.
final class WaitingTransfers {
    /// By the identifiers of their requests, which the oldest has the lowest of.
    private var transfers: [ActiveTransfer] = []
    /// What the bodies of running transfers have reserved.
    private(set) var heldBytes = 0
    /// Whether one of them may take memory beyond the budget.
    var hasOverdraft = false

    var oldest: ActiveTransfer? { transfers.first }

    /// Newer ones pause later as a rule, so that this moves few.
    func insert(_ transfer: ActiveTransfer) {
        transfers.insert(transfer, at: index(of: transfer.request.id))
    }

    func remove(_ transfer: ActiveTransfer) {
        let index = index(of: transfer.request.id)
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

    /// The place of the first transfer whose identifier is not lower.
    private func index(of identifier: Int) -> Int {
        var range = 0..<transfers.count
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            if transfers[middle].request.id < identifier {
                range = (middle + 1)..<range.upperBound
            } else {
                range = range.lowerBound..<middle
            }
        }
        return range.lowerBound
    }
}
