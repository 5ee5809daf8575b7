import Glibc
// Import order matters: depending on the files compiled before, the compiler (6.3) attributes the
// fields of `timespec` to this module or to Glibc.
import SwiftOverlayShims

/// A mutex-protected value with a condition variable, the basis of the queues between stages.
///
/// `Synchronization.Mutex` has no condition variable, and the thread sanitizer on Linux does not
/// recognise it (Swift 6.3) and reports every use as a race. A wait blocks its thread, so never
/// wait on the cooperative pool. Deadlines use the monotonic clock.
///
/// `@unchecked Sendable`: `value` is accessed only with the mutex held.
package final class Monitor<Value: ~Copyable>: @unchecked Sendable {
    package enum Decision<Result> {
        case ready(Result)
        /// Nil waits for a change without time limit.
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
        // The wall clock may jump; deadlines must not.
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

    /// Accesses the value. Changes must not affect waiting threads.
    package func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&value)
    }

    /// Changes the value and wakes all waiting threads, unless `wakes` returns false because no
    /// thread can use the new value. A wake-up costs two context switches.
    package func update<Result>(
        wakes: (borrowing Value) -> Bool = { _ in true }, _ change: (inout Value) -> Result
    ) -> Result {
        pthread_mutex_lock(mutex)
        let result = change(&value)
        let isOfUse = wakes(value)
        pthread_mutex_unlock(mutex)
        // After unlocking, since a woken thread needs the mutex first.
        if isOfUse { pthread_cond_broadcast(changed) }
        return result
    }

    /// Changes the value and wakes one waiting thread, for changes that any single one can use.
    package func updateForOne<Result>(_ change: (inout Value) -> Result) -> Result {
        pthread_mutex_lock(mutex)
        let result = change(&value)
        pthread_mutex_unlock(mutex)
        pthread_cond_signal(changed)
        return result
    }

    /// Wakes all waiting threads, after a change made inside ``wait(_:)``.
    package func wakeAll() {
        // With the mutex, so that no thread is between its check and its wait.
        pthread_mutex_lock(mutex)
        pthread_mutex_unlock(mutex)
        pthread_cond_broadcast(changed)
    }

    /// Calls `decide` first, after every change and at each deadline, until it is ready.
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
