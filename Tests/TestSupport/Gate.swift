import PrefetchModel
import Threading

/// Delays responses until the test releases them. Thread-safe; any number of responses may share
/// it.
package final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var permits = 0
        var waiting: [@Sendable () -> Void] = []
    }

    private let state = Monitor(State())

    package init() {}

    /// Releases all waiting and future responses.
    package func open() {
        let released = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for resume in released { resume() }
    }

    /// Releases the next `count` responses in order of arrival, including future ones.
    package func release(_ count: Int = 1) {
        let released = state.withLock { state in
            let now = min(count, state.waiting.count)
            state.permits += count - now
            defer { state.waiting.removeFirst(now) }
            return state.waiting.prefix(now)
        }
        for resume in released { resume() }
    }

    /// Calls `resume` once when the gate opens, immediately or later on another thread.
    func pass(_ resume: @escaping @Sendable () -> Void) {
        let passes = state.withLock { state in
            if state.isOpen { return true }
            if state.permits > 0 {
                state.permits -= 1
                return true
            }
            state.waiting.append(resume)
            return false
        }
        if passes { resume() }
    }
}
