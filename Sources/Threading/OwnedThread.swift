internal import CLinux
import Glibc
package import PrefetchModel

/// A dedicated thread for blocking work, which must not run on the cooperative pool.
package final class OwnedThread: Sendable {
    private let identifier: pthread_t

    private final class ThreadBody {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Starts a thread. The name has at most 15 bytes; debuggers and `top -H` show it.
    package init(
        name: String, _ body: @escaping @Sendable () -> Void
    ) throws(UserError) {
        let work = Unmanaged.passRetained(ThreadBody(body))
        let start: @convention(c) @Sendable (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? =
            { context in
                if let context {
                    Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue().body()
                }
                return nil
            }
        var identifier = pthread_t()
        let code = pthread_create(&identifier, nil, start, work.toOpaque())
        guard code == 0 else {
            work.release()
            throw UserError(
                "thread \"\(name)\"", "cannot be started: \(String(cString: strerror(code)))",
                hint: "raise the limits of processes (ulimit -u, TasksMax= of systemd) and memory "
                    + "(ulimit -v)")
        }
        self.identifier = identifier
        pthread_setname_np(identifier, name)
    }

    /// Detaches the thread, in place of ``join()``.
    package func detach() {
        pthread_detach(identifier)
    }

    /// Waits for the thread to end. Call once.
    package func join() {
        pthread_join(identifier, nil)
    }
}
