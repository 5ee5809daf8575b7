import PrefetchModel
import Threading

/// Holds answers until the test lets them go; may be used by any number of answers and from any thread.
package final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var permits = 0
        var waiting: [@Sendable () -> Void] = []
    }

    private let state = Monitor(State())

    package init() {}

    /// Lets everything go, now and later.
    package func open() {
        let released = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for resume in released { resume() }
    }

    /// Lets the next `count` go, in the order in which they came, those still to come included.
    package func release(_ count: Int = 1) {
        let released = state.withLock { state in
            let now = min(count, state.waiting.count)
            state.permits += count - now
            defer { state.waiting.removeFirst(now) }
            return state.waiting.prefix(now)
        }
        for resume in released { resume() }
    }

    /// Calls `resume` once when the gate lets it through, at once or later on another thread.
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
