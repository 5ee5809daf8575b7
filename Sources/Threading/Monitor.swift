import Glibc
// The compiler (6.3) takes the fields of `timespec` for this module's when it has seen certain
// other files before this one, and for Glibc's else.
import SwiftOverlayShims

/// A value behind a mutex, and the wait for its changes: what the queues between stages are made
/// of.
///
/// `Synchronization.Mutex` has no condition variable, and the thread sanitizer does not see it on
/// Linux (Swift 6.3), so that every use of it is reported as a race. A wait blocks its thread, so
/// it has no place on the cooperative pool; its deadlines are by the monotonic clock.
///
/// `@unchecked Sendable`: `value` is touched with the mutex held only.
package final class Monitor<Value: ~Copyable>: @unchecked Sendable {
    package enum Decision<Result> {
        case ready(Result)
        /// Nil waits for a change however long it takes.
        case wait(until: ContinuousClock.Instant?)
    }

    private var value: Value
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    package init(_ value: consuming sending Value) {
        self.value = value
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        // The wall clock may step; deadlines must not.
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        changed.initialize(to: pthread_cond_t())
        pthread_cond_init(changed, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
    }

    /// Looks at the value, or changes it in a way that nobody waits for.
    package func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&value)
    }

    /// Changes the value and wakes those who wait, unless `wakes` says that the new value can be
    /// of use to none of them: a wake-up costs two switches of context.
    package func update<Result>(
        wakes: (borrowing Value) -> Bool = { _ in true }, _ change: (inout Value) -> Result
    ) -> Result {
        pthread_mutex_lock(mutex)
        let result = change(&value)
        let isOfUse = wakes(value)
        pthread_mutex_unlock(mutex)
        // Who is woken wants the mutex at once.
        if isOfUse { pthread_cond_broadcast(changed) }
        return result
    }

    /// Changes the value in a way that is of use to one of those who wait, whichever: all of them
    /// wait for the same. The others sleep on.
    package func updateForOne<Result>(_ change: (inout Value) -> Result) -> Result {
        pthread_mutex_lock(mutex)
        let result = change(&value)
        pthread_mutex_unlock(mutex)
        pthread_cond_signal(changed)
        return result
    }

    /// Lets everybody who waits look again, after a change that ``wait(_:)`` made itself.
    package func wakeAll() {
        // With the mutex, so that nobody is between a look and the wait for the next one.
        pthread_mutex_lock(mutex)
        pthread_mutex_unlock(mutex)
        pthread_cond_broadcast(changed)
    }

    /// Asks `decide` at once, after every change and at every deadline it gives, until it is ready.
    package func wait<Result>(
        _ decide: (inout Value, ContinuousClock.Instant) -> Decision<Result>
    ) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            let now = ContinuousClock.now
            switch decide(&value, now) {
            case .ready(let result):
                return result
            case .wait(until: nil):
                pthread_cond_wait(changed, mutex)
            case .wait(until: let deadline?):
                var time = timespec()
                clock_gettime(CLOCK_MONOTONIC, &time)
                let delay = max(.zero, deadline - now)
                let (seconds, attoseconds) = delay.components
                time.tv_sec += Int(seconds)
                time.tv_nsec += Int(attoseconds / 1_000_000_000)
                if time.tv_nsec >= 1_000_000_000 {
                    time.tv_sec += 1
                    time.tv_nsec -= 1_000_000_000
                }
                pthread_cond_timedwait(changed, mutex, &time)
            }
        }
    }
}
