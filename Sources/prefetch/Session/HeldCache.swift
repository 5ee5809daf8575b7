import CacheStorage
import PrefetchModel
import Reporting

/// Opens a cache that another run may hold, and reports waiting and failure.
struct HeldCache {
    let path: String
    let lock: LockArgument
    /// Whether to print nothing about waiting or skipping.
    let isQuiet: Bool

    /// Opens the cache by `open`, which gets the time to wait and a callback for the lock's holder.
    ///
    /// - Precondition: `--lock skip` is refused.
    /// - Throws: also if another process holds the cache (status 75).
    func open(
        hint: String, by open: (OpenCache.LockWaiting, (LockHolder?) -> Void) throws -> OpenCache?
    ) throws -> OpenCache {
        guard let opened = try openUnlessSkipped(hint: hint, by: open) else {
            preconditionFailure("only --lock skip returns no cache")
        }
        return opened
    }

    /// Opens the cache that others are merged into, and tells of its damage.
    func openForMerge(at now: Timestamp) throws -> OpenCache {
        let opened = try open(hint: "--lock wait waits for it") {
            try OpenCache.openForRun(
                path: path, waiting: $0, keepsOrphans: true, at: now, whenHeld: $1)
        }
        SalvageText.lines(opened.repair, path: path).forEach(StandardError.write)
        return opened
    }

    /// Opens the cache like ``open(hint:by:)``.
    ///
    /// - Returns: nil if another process holds the cache and `--lock skip` was given.
    func openUnlessSkipped(
        hint: String, by open: (OpenCache.LockWaiting, (LockHolder?) -> Void) throws -> OpenCache?
    ) throws -> OpenCache? {
        let message = "\(path): another process holds this cache"
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
            let waited = lock == .fail ? "" : "; waited \(durationText(.now - start)) for it"
            throw UserError(
                .busy, message + description(of: holder) + waited,
                hint: lock == .fail ? hint : nil)
        }
        if let opened, opened.beginsWithoutLog, !isQuiet {
            let name = opened.directory.fileSystem.name
            StandardError.message(
                "\(path): on a network file system (\(name)), so the database has no write-ahead log",
                hint: "a directory on a local disk is faster: "
                    + "there readers and commits do not block each other")
        }
        return opened
    }

    private func description(of holder: LockHolder?) -> String {
        guard let holder else { return "" }
        let time = durationText(WallClock.now().timeSince(holder.since))
        return " (pid \(holder.process) on \(holder.host), for \(time))"
    }
}
