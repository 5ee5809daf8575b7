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
        opened.repair.salvageMessages(in: path).forEach(StandardError.write)
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
            let system = opened.directory.fileSystem
            let reason =
                system.isNetwork
                ? "on a network file system (\(system.name))"
                : "the file system (\(system.name)) shares no memory between processes"
            StandardError.message(
                "\(path): \(reason), so the database has no write-ahead log",
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

// Messages about a cache that a run has opened

extension OpenCache.Repair {
    /// Lines about damage by an unclean shutdown or the disk.
    func messages(in path: String, _ freshness: Flags<FreshnessFlags>) -> [String] {
        var lines = salvageMessages(in: path)
        if let untidy {
            lines.append("prefetch: \(untidy.description); left in place")
            if let hint = untidy.hint { lines.append("hint: \(hint)") }
        }
        if tornImages > 0 {
            lines.append(
                """
                prefetch: \(path): \(counted(tornImages, "file")) \
                damaged by an unclean shutdown; will be downloaded again
                """)
        }
        if missingImages > 0 {
            let files = missingImages == 1 ? "file is" : "files are"
            let state = freshness.fileCheck == .always ? "missing or truncated" : "missing"
            let rest = freshness.offline ? "" : "; listed images will be downloaded again"
            lines.append("prefetch: \(path): \(missingImages) cached \(files) \(state)\(rest)")
        }
        return lines
    }

    /// A message about a damaged or missing database that a run has replaced, and a hint; empty if
    /// the database was good.
    func salvageMessages(in path: String) -> [String] {
        let isEmpty = salvage.map { $0.salvaged.isEmpty && $0.restored.isEmpty } ?? true
        let end = salvage.map(\.text) ?? "starting a new one"
        if let (name, message) = damage {
            return [
                "prefetch: \(path)/prefetch.sqlite: damaged (\(message)); renamed to \(name); \(end)",
                isEmpty
                    ? "hint: images are downloaded again; identical files are kept"
                    : "hint: missing images are downloaded again; identical files are kept; "
                        + "`prefetch verify --repair` removes the rest",
            ]
        }
        guard hadNoDatabase else { return [] }
        return [
            "prefetch: \(path): contains images but no database; \(end)",
            "hint: \(isEmpty ? "images" : "missing images") are downloaded again; "
                + "identical files are kept",
        ]
    }
}

extension HostLog {
    /// Lines about the hosts that make a run wait for more than a day; none without any.
    static func messages(about waits: [LongWait]) -> [String] {
        guard let first = waits.first else { return [] }
        let others = waits.count > 1 ? " and \(counted(waits.count - 1, "other host"))" : ""
        let event =
            first.pausedUntil.map { "not requested until \($0), by its own request" }
            ?? "its stored pause or pace is impossible and ignored"
        return [
            printable("prefetch: \(first.host)\(others): \(event)"),
            printable("hint: `prefetch hosts clear \(first.host)` forgets it"),
        ]
    }
}

extension SalvageReport {
    /// `salvaged 1998 images, 3 failures; 2 images from the snapshot of 2026-11-23T03:00:00Z`
    var text: String {
        var parts: [String] = []
        if !salvaged.isEmpty { parts.append("salvaged \(text(salvaged))") }
        if let time = snapshotTime {
            parts.append("\(text(restored)) from the snapshot of \(time)")
        }
        if parts.isEmpty { parts.append("nothing could be salvaged; starting a new one") }
        if isMixed {
            parts.append("ignored its images: it contains pages of another database")
        }
        if lostFiles > 0 {
            parts.append("\(counted(lostFiles, "file")) missing")
        }
        return parts.joined(separator: "; ")
    }

    private func text(_ counts: Counts) -> String {
        [
            (counts.images, "image"), (counts.failures, "failure"), (counts.hosts, "host"),
            (counts.runs, "run"),
        ].filter { $0.0 > 0 }.map { counted($0.0, $0.1) }.joined(separator: ", ")
    }
}
