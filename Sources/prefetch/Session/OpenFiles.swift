import Glibc
import Pipeline
import PrefetchModel

/// The limit of open files and sockets.
enum OpenFiles {
    private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)

    /// Raises the soft limit to the number that a run may need, within the hard limit.
    static func raiseLimit() {
        guard var limit = limits() else { return }
        limit.rlim_cur = RunConfiguration.openFiles(soft: limit.rlim_cur, hard: limit.rlim_max)
        // On failure the run gets by with the old limit.
        setrlimit(resource, &limit)
    }

    /// The limit and the number of free descriptors; nil if the system doesn't tell.
    private static func available() -> (limit: Int, left: Int)? {
        guard let limit = limits().map({ Int(clamping: $0.rlim_cur) }) else { return nil }
        // Descriptors open at the start have low numbers. One call shows which are in use.
        var entries = (0..<Int32(min(limit, 1024))).map { pollfd(fd: $0, events: 0, revents: 0) }
        guard poll(&entries, nfds_t(entries.count), 0) >= 0 else { return nil }
        let used = entries.count { $0.revents & Int16(POLLNVAL) == 0 }
        return (limit, limit - used)
    }

    /// The number of free descriptors; nil if the system doesn't tell.
    static var left: Int? { available()?.left }

    /// Checks that `count` descriptors are free, and that `fits` accepts the number of free ones.
    static func require(_ count: Int, fits: (Int) -> Bool = { _ in true }) throws {
        guard let available = available() else { return }
        guard available.left >= count, fits(available.left) else {
            throw UserError(
                """
                open files: the limit of \(available.limit) leaves \(available.left), and \
                at least \(count) are needed
                """,
                hint:
                    "raise the limit: ulimit -n \(max(64, available.limit - available.left + count))"
            )
        }
    }

    private static func limits() -> rlimit? {
        var limit = rlimit()
        return getrlimit(resource, &limit) == 0 ? limit : nil
    }
}
