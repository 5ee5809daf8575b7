import PrefetchModel
import Threading

/// Counts the bytes that bodies hold in memory, from the first byte that arrives to the moment a
/// codec worker lets go of the body.
///
/// It only counts: a transfer that gets no share pauses, and ``TransferLoop`` sees to it that one
/// of them can always go on. Any thread may call it.
final class BodyBudget: Sendable {
    private struct State {
        var used = 0
        /// Whether a transfer waits for a release.
        var isAwaited = false
    }

    private let capacity: Int
    private let state = Monitor(State())
    /// Called on the releasing thread when a waiting transfer may try again.
    private let released: @Sendable () -> Void

    init(capacity: Int, released: @escaping @Sendable () -> Void) {
        self.capacity = capacity
        self.released = released
    }

    /// Takes `count` more bytes if they fit; otherwise takes nothing, and the next release calls back.
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

    /// Takes `count` more bytes whether they fit or not.
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

    /// The bytes that are free; the next release calls back, for those that do not find enough.
    func awaitedRoom() -> Int {
        state.withLock { state in
            state.isAwaited = true
            return max(0, capacity - state.used)
        }
    }

    var used: Int { state.withLock { $0.used } }
}
