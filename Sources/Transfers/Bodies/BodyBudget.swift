import PrefetchModel
import Threading

/// Counts the bytes of bodies in memory, from their first byte until a codec worker releases them.
///
/// It only counts. A transfer without a share pauses, and ``TransferLoop`` makes sure that one of
/// them can always continue. Any thread may call it.
final class BodyBudget: Sendable {
    private struct Reserved {
        var used = 0
        var isAwaited = false
    }

    private let capacity: Int
    private let state = Monitor(Reserved())
    /// Called on the releasing thread when a waiting transfer may try again.
    private let released: @Sendable () -> Void

    init(capacity: Int, released: @escaping @Sendable () -> Void) {
        self.capacity = capacity
        self.released = released
    }

    /// Reserves `count` bytes if they fit. If not, reserves nothing, and the next release calls
    /// back.
    func reserve(_ count: Int) -> Bool {
        state.withLock { state in
            guard state.used + count <= capacity else {
                state.isAwaited = true
                return false
            }
            state.used += count
            return true
        }
    }

    /// Reserves `count` bytes, beyond the capacity if need be.
    func overdraw(_ count: Int) {
        state.withLock { $0.used += count }
    }

    func release(_ count: Int) {
        let isAwaited = state.withLock { state in
            state.used -= count
            defer { state.isAwaited = false }
            return state.isAwaited
        }
        if isAwaited { released() }
    }

    /// The free bytes. The next release calls back, for transfers that need more.
    func awaitedRoom() -> Int {
        state.withLock { state in
            state.isAwaited = true
            return max(0, capacity - state.used)
        }
    }

    var used: Int { state.withLock { $0.used } }
}
