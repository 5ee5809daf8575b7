package import CacheStorage
package import PrefetchModel

extension Diagnosis {
    /// Returns the line about the database, which `wasLookedThrough` completely without damage.
    package static func database(
        size: ByteCount, isSuspected: Bool, wasLookedThrough: Bool
    ) -> Diagnosis {
        guard !isSuspected else {
            return .wrong(
                .database, "a command found it damaged",
                remedy: "`prefetch run` checks all of it, and salvages it if it is damaged")
        }
        let text = "\(size), schema \(StorageVersions.schema)"
        return .ok(
            .database,
            wasLookedThrough
                ? "\(text), whole" : "\(text); `prefetch verify` checks all of it")
    }

    /// A larger log means that a reader keeps runs from checkpointing it, every few seconds.
    private static let largestLog = ByteCount.mebibytes(64)

    /// Returns the line about the log and the rollback journal; nil stands for no such file.
    package static func log(_ log: ByteCount?, journal: ByteCount?, isHeld: Bool) -> Diagnosis {
        if let journal, journal.bytes > 0 {
            return isHeld
                ? .ok(.log, "a journal of \(journal) from the commit in progress")
                : .wrong(
                    .log, "a journal of \(journal) from an interrupted commit",
                    remedy: "the next run rolls it back")
        }
        guard let log, log.bytes > 0 else { return .ok(.log, "empty") }
        if log > largestLog {
            return .wrong(
                .log, "\(log)",
                remedy:
                    "end the process that has been reading the database; the next run then empties the log"
            )
        }
        return .ok(.log, isHeld ? "\(log), in use" : "\(log), to be checkpointed by the next run")
    }

    package static func lock(_ holder: LockHolder?) -> Diagnosis {
        guard let holder else { return .ok(.lock, "free") }
        return .ok(.lock, "held by pid \(holder.process) on \(holder.host) since \(holder.since)")
    }

    /// Returns the line about the runs, the latest first.
    package static func runs(
        _ runs: [(startedAt: Timestamp, ending: CacheCatalog.LoggedRun.End)]
    ) -> Diagnosis {
        guard let last = runs.first else { return .ok(.runs, "none yet") }
        let killed = runs.count { $0.ending == .killed }
        // The last run is described first.
        let others =
            killed > (last.ending == .killed ? 1 : 0)
            ? "; \(killed) of the last \(counted(runs.count, "run")) \(killed == 1 ? "was" : "were") killed"
            : ""
        switch last.ending {
        case .running: return .ok(.runs, "one has been running since \(last.startedAt)\(others)")
        case .killed:
            return .wrong(
                .runs, "the last one, of \(last.startedAt), was killed\(others)",
                remedy: "run it again: the next run cleans up what it left")
        case .ended(_, let status) where status == 2:
            return .wrong(
                .runs,
                "the last one, of \(last.startedAt), could not be completed (exit 2)\(others)",
                remedy: "run it again and read its message")
        case .ended(_, let status):
            return .ok(.runs, "the last one, of \(last.startedAt), ended with \(status)\(others)")
        }
    }

    /// Files left over by a run or a removal.
    struct Leftovers: Hashable, Sendable {
        var temporaries = 0
        var size = ByteCount(0)
        var removalIsUnfinished = false
        /// Whether content files are kept because a lost database may have referred to them.
        var orphansAreKept = false
        var damagedDatabases: [String] = []
        /// Files with a row that are missing with the folder `content`; 0 when it exists.
        var lostFiles = 0
    }

    static func leftovers(_ found: Leftovers, isHeld: Bool) -> Diagnosis {
        if found.lostFiles > 0 {
            return .wrong(
                .leftovers,
                "the folder content is missing, with \(counted(found.lostFiles, "file")) that the database refers to",
                remedy:
                    "restore the folder from a copy; otherwise the next run downloads the images of its lists"
            )
        }
        if found.temporaries > 0, !isHeld {
            return .wrong(
                .leftovers, "\(counted(found.temporaries, "file")) of \(found.size) in tmp",
                remedy: "the next run removes them")
        }
        if found.removalIsUnfinished, !isHeld {
            return .wrong(
                .leftovers, "a removal was interrupted, so there may be orphaned files",
                remedy: "the next run removes them")
        }
        if found.orphansAreKept {
            return .wrong(
                .leftovers, "orphaned files are kept, because a database was lost",
                remedy: "once your lists have been fetched again, run `prefetch verify --repair`")
        }
        if let name = found.damagedDatabases.first {
            let count = found.damagedDatabases.count
            return .wrong(
                .leftovers,
                "a damaged database was set aside: \(name)"
                    + (count > 1 ? " and \(count - 1) more" : ""),
                remedy: "remove it when it is no longer needed")
        }
        return .ok(
            .leftovers,
            found.temporaries > 0 ? "\(counted(found.temporaries, "file")) in progress" : "none")
    }

    /// Returns the line about hosts that are not requested, or have `impossible` waits.
    package static func hosts(
        _ cooling: [(host: String, until: Timestamp)], impossible: [String] = []
    ) -> Diagnosis {
        if let host = impossible.first {
            let others = impossible.count > 1 ? " and \(impossible.count - 1) more" : ""
            return .wrong(
                .hosts, "\(host)\(others): the stored pause or pace is impossible and ignored",
                remedy: "`prefetch hosts clear \(host)` forgets it")
        }
        guard let first = cooling.first else { return .ok(.hosts, "no host is given up") }
        let others = cooling.count > 1 ? " and \(cooling.count - 1) more" : ""
        return .wrong(
            .hosts,
            "\(first.host)\(others) \(cooling.count > 1 ? "are" : "is") not requested until \(first.until)",
            remedy:
                "check that they respond (--online); `prefetch run --retry-failed` requests them at once"
        )
    }

    package static func failures(_ counts: FailureCounts) -> Diagnosis {
        let excluded = counts.exclusions > 0 ? "; \(counts.exclusions) excluded" : ""
        guard counts.failures > 0 else { return .ok(.failures, "none\(excluded)") }
        return .ok(
            .failures,
            "\(counts.failures), \(counts.blacklisted) of them blacklisted\(excluded); "
                + "`prefetch failed list` says why")
    }
}
