internal import CLinux
import Glibc

/// A thread of our own for work that blocks, which the cooperative pool has no room for.
package final class OwnedThread: Sendable {
    private let identifier: pthread_t

    private final class Work {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// The name has at most 15 bytes; debuggers and `top -H` show it.
    ///
    /// - Throws: when the system has no room for another thread.
    package init(
        name: String, _ body: @escaping @Sendable () -> Void
    ) throws(ThreadError) {
        let work = Unmanaged.passRetained(Work(body))
        let start: @convention(c) @Sendable (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? =
            { context in
                if let context {
                    Unmanaged<Work>.fromOpaque(context).takeRetainedValue().body()
                }
                return nil
            }
        var identifier = pthread_t()
        let code = pthread_create(&identifier, nil, start, work.toOpaque())
        guard code == 0 else {
            work.release()
            throw ThreadError(name: name, code: code)
        }
        self.identifier = identifier
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

/// The system has no room for another thread.
package struct ThreadError: Error, CustomStringConvertible {
    /// The thread's.
    package let name: String
    /// An `errno`.
    package let code: Int32

    package var description: String {
        "thread \"\(name)\": cannot be started: \(String(cString: strerror(code)))"
    }

    package var hint: String {
        "raise the limits of processes (ulimit -u, TasksMax= of systemd) and memory (ulimit -v)"
    }
}
