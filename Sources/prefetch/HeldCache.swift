import CacheStorage
import Glibc
import PrefetchModel
import Reporting

/// Opening a cache that another run may hold, and what is said about that.
struct HeldCache {
    let path: String
    let lock: LockArgument
    /// Whether nothing is said of a lock that is waited for or respected.
    let isQuiet: Bool

    /// Opens the cache by `open`, which gets how long to wait and whom to tell who holds it.
    ///
    /// - Returns: nil when another run holds it and that is to be left at that (`--lock skip`).
    /// - Throws: with exit status 75 when another run holds it.
    func open(
        hint: String, by open: (OpenCache.Waiting, (LockHolder?) -> Void) throws -> OpenCache?
    ) throws -> OpenCache? {
        let message = "\(path): another run holds this cache"
        var holder: LockHolder?
        let start = ContinuousClock.now
        let opened = try open(lock.waiting) { found in
            holder = found
            guard !isQuiet else { return }
            let message = message + description(of: found)
            switch lock {
            case .fail: break
            case .skip: StandardError.write("prefetch: \(message); skipping this run (--lock skip)")
            case .wait: StandardError.write("prefetch: \(message); waiting for it")
            }
        }
        if opened == nil, lock != .skip {
            let waited =
                lock == .fail ? "" : "; waited \(durationText(.now - start)) for it"
            throw CommandFailure(
                exitStatus: EX_TEMPFAIL, message: message + description(of: holder) + waited,
                hint: lock == .fail ? hint : nil)
        }
        if let opened, opened.beginsWithoutLog, !isQuiet {
            let name = opened.directory.fileSystem.name
            StandardError.write(
                "prefetch: \(path): lies on a network file system (\(name)); its database has no write-ahead log there"
            )
            StandardError.write(
                "hint: commits and readers wait for each other; a directory on a local disk is faster"
            )
        }
        return opened
    }

    private func description(of holder: LockHolder?) -> String {
        guard let holder else { return "" }
        let time = durationText(WallClock.now().timeSince(holder.since))
        return " (pid \(holder.process) on \(holder.host), for \(time))"
    }
}
