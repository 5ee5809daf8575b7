package import PrefetchModel

/// A number of bytes that threads share, in the order of their requests.
package final class MemoryBudget: Sendable {
    private struct Tickets {
        var free: Int
        var nextTicket = 0
        var serving = 0
    }

    package let total: ByteCount
    private let state: Monitor<Tickets>

    package init(total: ByteCount) {
        self.total = total
        state = Monitor(Tickets(free: total.bytes))
    }

    /// Runs `work` while it holds `need` bytes of the budget, after waiting for them. Returns nil
    /// at once when `need` exceeds the whole budget.
    package func withReservation<Result, Failure: Error>(
        of need: Int, _ work: () throws(Failure) -> Result
    ) throws(Failure) -> Result? {
        guard take(need) else { return nil }
        defer { giveBack(need) }
        return try work()
    }

    /// Takes `need` bytes, after waiting for them. Returns false at once when `need` exceeds the
    /// whole budget. ``giveBack(_:)`` follows.
    package func take(_ need: Int) -> Bool {
        guard need <= total.bytes else { return false }
        let ticket = state.update(wakes: { _ in false }) { state in
            defer { state.nextTicket += 1 }
            return state.nextTicket
        }
        // In order: small pictures must not starve a large one.
        state.wait { state, _ -> Monitor<Tickets>.Decision<Void> in
            guard state.serving == ticket, state.free >= need else { return .wait(until: nil) }
            state.free -= need
            state.serving += 1
            return .ready(())
        }
        state.wakeAll()
        return true
    }

    /// Takes `need` bytes if they are free and no other thread waits.
    package func takeAtOnce(_ need: Int) -> Bool {
        state.withLock { state in
            guard state.serving == state.nextTicket, state.free >= need else { return false }
            state.free -= need
            return true
        }
    }

    package func giveBack(_ bytes: Int) { state.update { $0.free += bytes } }
}
