import Glibc
import Pipeline

/// How many files and sockets the process may have open.
enum OpenFiles {
    private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)

    /// Takes what a run may need of what the system allows.
    static func raiseLimit() {
        guard var limit = limits() else { return }
        limit.rlim_cur = RunConfiguration.openFiles(soft: limit.rlim_cur, hard: limit.rlim_max)
        // Left as it was where this fails; then there is less to share out.
        setrlimit(resource, &limit)
    }

    /// The limit and how many it leaves; nil where the system does not say.
    private static func available() -> (limit: Int, left: Int)? {
        guard let limit = limits().map({ Int(clamping: $0.rlim_cur) }) else { return nil }
        // What was open from the start has low numbers. One call tells which are in use.
        var entries = (0..<Int32(min(limit, 1024))).map { pollfd(fd: $0, events: 0, revents: 0) }
        guard poll(&entries, nfds_t(entries.count), 0) >= 0 else { return nil }
        let used = entries.count { $0.revents & Int16(POLLNVAL) == 0 }
        return (limit, limit - used)
    }

    /// How many more the process may open; nil where the system does not say.
    static var left: Int? { available()?.left }

    /// Makes sure that `count` more can be opened; `fits` is told how many there are.
    ///
    /// - Throws: with exit status 2 when there are fewer, or `fits` says that they are too few.
    static func require(_ count: Int, fits: (Int) -> Bool = { _ in true }) throws {
        guard let available = available() else { return }
        guard available.left >= count, fits(available.left) else {
            throw CommandFailure.unusable(
                """
                open files: the limit of \(available.limit) leaves \(available.left), and \
                at least \(count) are needed
                """,
                hint: "raise it: ulimit -n \(max(64, available.limit - available.left + count))")
        }
    }

    private static func limits() -> rlimit? {
        var limit = rlimit()
        return getrlimit(resource, &limit) == 0 ? limit : nil
    }
}
