internal import CLinux
import Glibc

/// A thread of our own for work that blocks, which the cooperative pool has no room for.
package final class OwnedThread {
    private var identifier = pthread_t()

    private final class Work {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// The name has at most 15 bytes; debuggers and `top -H` show it.
    ///
    /// - Precondition: the system has room for another thread.
    package init(name: String, _ body: @escaping @Sendable () -> Void) {
        let context = Unmanaged.passRetained(Work(body)).toOpaque()
        let start: @convention(c) @Sendable (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? =
            { context in
                if let context {
                    Unmanaged<Work>.fromOpaque(context).takeRetainedValue().body()
                }
                return nil
            }
        let code = pthread_create(&identifier, nil, start, context)
        precondition(code == 0, "no thread: \(String(cString: strerror(code)))")
        pthread_setname_np(identifier, name)
    }

    /// Lets the thread go: its end is nobody's business. In place of ``join()``.
    package func detach() {
        pthread_detach(identifier)
    }

    /// Waits for the thread's end. Called once.
    package func join() {
        pthread_join(identifier, nil)
    }
}
