internal import Glibc

/// A connection shared by several threads, used by one at a time. `@unchecked Sendable`: `init`
/// takes the only reference (`sending`). ``access(_:)`` lends it with the mutex held, so one thread
/// at a time uses it, and sees the changes of the last one. No `body` keeps it; a use after another
/// thread's access would trap in `checkOwner`. The deinitialiser runs when no thread has a
/// reference.
package final class SerializedConnection: @unchecked Sendable {
    private let connection: Connection
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    package init(_ connection: consuming sending Connection) {
        self.connection = connection
        // A nested access is reported as an error instead of a deadlock.
        var attributes = pthread_mutexattr_t()
        pthread_mutexattr_init(&attributes)
        pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_ERRORCHECK))
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, &attributes)
        pthread_mutexattr_destroy(&attributes)
    }

    deinit {
        connection.takeOwnership()
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Waits for exclusive access and lends the connection to `body`, which must not keep it.
    ///
    /// - Precondition: The caller is not inside another `body` of this connection.
    package func access<Result, Failure: Error>(
        _ body: (Connection) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let code = pthread_mutex_lock(mutex)
        precondition(code == 0, "nested access to a connection")
        defer { pthread_mutex_unlock(mutex) }
        connection.takeOwnership()
        return try body(connection)
    }
}
