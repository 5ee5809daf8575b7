internal import Glibc

/// A connection that several threads share: one of them has it at a time, and the others wait.
///
/// `@unchecked Sendable`: `connection` is touched with the mutex held only, but for `interrupt`.
package final class SerializedConnection: @unchecked Sendable {
    private let connection: Connection
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    package init(_ connection: consuming sending Connection) {
        self.connection = connection
        // Whoever asks for the connection inside an access to it is told so, and waits not for ever.
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

    /// Waits until nobody else has the connection, and lends it to `body`, which must not keep it.
    ///
    /// - Precondition: the caller is not inside another `body` of this connection.
    package func access<Result, Failure: Error>(
        _ body: (Connection) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let code = pthread_mutex_lock(mutex)
        precondition(code == 0, "the connection is asked for inside an access to it")
        defer { pthread_mutex_unlock(mutex) }
        connection.takeOwnership()
        return try body(connection)
    }

    /// Ends what another thread is doing with the connection: it gets `SQLITE_INTERRUPT`, and a
    /// transaction in which it writes is rolled back. Does nothing where nobody does anything.
    ///
    /// - Precondition: nobody closes the connection meanwhile.
    package func interrupt() { connection.interrupt() }
}
