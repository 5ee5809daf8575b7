package import CacheStorage
import Codecs
import Decoding
package import Pipeline
package import PrefetchModel
import Transfers
import URLParsing

/// The result of one check of the cache, the program or the network, for `doctor`.
package struct Diagnosis: Hashable, Sendable {
    /// The checks, in this order; the JSON has the same names.
    package enum Check: String, CaseIterable, Sendable {
        case directory, owner, modes
        case fileSystem = "file-system"
        case space, database, log, lock, runs, leftovers, hosts, failures
        case openFiles = "open-files"
        case libraries, sandbox, requests, origin, clock
    }

    package enum DiagnosisState: String, Sendable {
        case ok, wrong
        /// The check could not be made.
        case unknown
    }

    package let check: Check
    package let state: DiagnosisState
    package let message: String
    /// A way to fix it; nil without a problem, or when none is known.
    package let remedy: String?

    package static func ok(_ check: Check, _ message: String) -> Diagnosis {
        Diagnosis(check: check, state: .ok, message: message, remedy: nil)
    }

    package static func wrong(_ check: Check, _ message: String, remedy: String?) -> Diagnosis {
        Diagnosis(check: check, state: .wrong, message: message, remedy: remedy)
    }

    package static func unknown(
        _ check: Check, _ message: String, remedy: String? = nil
    ) -> Diagnosis {
        Diagnosis(check: check, state: .unknown, message: message, remedy: remedy)
    }
}

extension Diagnosis {
    /// Takes an error as a problem where it says so, otherwise as unknown.
    package init(_ check: Check, _ error: StorageError) {
        self =
            switch error.code {
            case .missing:
                .wrong(check, error.message, remedy: error.hint ?? "`prefetch run` fills it")
            case .refused:
                .wrong(
                    check, error.message,
                    remedy: error.hint ?? "name another directory with --cache-dir")
            case .database where error.isDamage:
                .wrong(check, "is damaged: \(error.message)", remedy: error.hint)
            case .system, .database:
                .unknown(check, "\(error.operation): \(error.message)", remedy: error.hint)
            }
    }

    package static func owner(_ ownership: CacheDirectory.Ownership) -> Diagnosis {
        ownership.isOwn
            ? .ok(.owner, "it is yours (uid \(ownership.owner))")
            : .ok(.owner, "it belongs to uid \(ownership.owner): you can read it but not change it")
    }

    /// Returns the line about permissions. `remembered` is the mode stored in the cache, if known;
    /// `others` are names of files with another mode, or without a stored mode, that others may
    /// write. `content` is a content file with another mode than new ones, with its mode, and
    /// `withoutAccess` names files that the owner may not read and write.
    package static func modes(
        _ ownership: CacheDirectory.Ownership, remembered: FileMode?, others: [String],
        content: String? = nil, withoutAccess: [String] = []
    ) -> Diagnosis {
        guard withoutAccess.isEmpty else {
            let names = withoutAccess.map { $0.prefix { $0 != " " } }.joined(separator: " ")
            return .wrong(
                .modes,
                "a run may not read and write: \(withoutAccess.joined(separator: ", "))",
                remedy: "`chmod u+rwX \(names)` in the directory")
        }
        if ownership.groupWrites {
            return .wrong(
                .modes, "the group may write the folder (\(ownership.bits))",
                remedy: "chmod g-w on the folder, or `prefetch chmod 0640`")
        }
        guard let remembered else {
            guard others.isEmpty else {
                return .wrong(
                    .modes, "others may write to: \(others.joined(separator: ", "))",
                    remedy: "`prefetch chmod 0600` by the owner")
            }
            if let content { return differing(content, from: .ownersAlone) }
            return .ok(.modes, "the folder has \(ownership.bits)")
        }
        guard others.isEmpty else {
            return .wrong(
                .modes,
                "these do not have the remembered mode \(remembered): \(others.joined(separator: ", "))",
                remedy: "`prefetch chmod \(remembered)` by the owner")
        }
        if let content { return differing(content, from: remembered) }
        return .ok(
            .modes,
            remembered.isShared
                ? "files have \(remembered): others may read them"
                : "files have \(remembered): only the owner may read them")
    }

    private static func differing(_ content: String, from mode: FileMode) -> Diagnosis {
        .wrong(
            .modes, "content files have another mode than \(mode), like \(content)",
            remedy: "`prefetch chmod \(mode)` by the owner")
    }

    /// Returns the line about the file system; `elsewhere` names folders that are on others.
    package static func fileSystem(
        _ fileSystem: FileSystem, isReadOnly: Bool, hasJournal: Bool = false,
        elsewhere: [String]
    ) -> Diagnosis {
        if let name = elsewhere.first {
            return .wrong(
                .fileSystem, "\(name) is on another file system, so files cannot be moved there",
                remedy: "mount the whole cache, and make content and tmp plain folders")
        }
        if isReadOnly {
            return .wrong(
                .fileSystem, "\(fileSystem.name), mounted read-only: nothing can be stored",
                remedy: "mount it read-write, or name another directory with --cache-dir")
        }
        if fileSystem.isNetwork {
            return .ok(
                .fileSystem, "\(fileSystem.name), a network file system: the database has no log")
        }
        return .ok(
            .fileSystem,
            hasJournal
                ? "\(fileSystem.name), without shared memory: the database has no log"
                : fileSystem.name)
    }

    private static let growthPeriod = Duration.seconds(28 * 86400)

    /// Returns the bytes stored a day, by the start and the stored bytes of runs; runs before the
    /// period do not count. `now` is by the wall clock. Bytes that replaced other images count too,
    /// so this is an upper limit. The growth of a cache younger than a day is taken as one day's.
    package static func growth(
        _ runs: [(startedAt: Timestamp, stored: ByteCount)], at now: Timestamp
    ) -> Double {
        let start = now.advanced(by: .zero - growthPeriod)
        let recent = runs.filter { $0.startedAt >= start && $0.startedAt <= now }
        let bytes = recent.reduce(0.0) { $0 + Double($1.stored.bytes) }
        let earliest = recent.map(\.startedAt).min() ?? now
        return bytes / max(1, now.timeSince(earliest) / .seconds(86400))
    }

    /// The minimum of days that the free space should last.
    private static let minimumDays = 7.0
    /// The size of one commit, which a run needs to make progress.
    private static let minimumRoom = MetadataWriter.WriterConfiguration().groupBytes
    /// The same size in files of 16 KiB.
    private static let minimumFiles = 4096

    package static func space(_ room: CacheDirectory.Room?, _ bytesADay: Double) -> Diagnosis {
        guard let room else { return .unknown(.space, "the system does not say") }
        let remedy = "make room, or name a directory elsewhere with --cache-dir"
        if room.free < minimumRoom {
            return .wrong(.space, "only \(room.free) of \(room.total) free", remedy: remedy)
        }
        if let files = room.freeFiles, files < minimumFiles {
            return .wrong(
                .space, "only \(counted(files, "file")) can be added (inodes)", remedy: remedy)
        }
        guard bytesADay >= 1 else {
            return .ok(.space, "\(room.free) of \(room.total) free")
        }
        let pace = "runs store \(ByteCount(Int(min(bytesADay, 1e18)))) a day on average"
        let days = Double(room.free.bytes) / bytesADay
        if days < minimumDays {
            return .wrong(
                .space, "\(room.free) free, for \(counted(Int(days), "day")) at this pace: \(pace)",
                remedy: remedy)
        }
        let text = days > 3650 ? "years" : "\(Int(days)) days"
        return .ok(.space, "\(room.free) of \(room.total) free, for \(text): \(pace)")
    }

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

    /// Returns the line about hosts that are not requested, have `impossible` waits, or were `down`
    /// in the last run.
    package static func hosts(
        _ cooling: [(host: String, until: Timestamp)], impossible: [String] = [],
        down: [(place: String, reason: FailureReason, since: Timestamp)] = []
    ) -> Diagnosis {
        if let host = impossible.first {
            let others = impossible.count > 1 ? " and \(impossible.count - 1) more" : ""
            return .wrong(
                .hosts, "\(host)\(others): the stored pause or pace is impossible and ignored",
                remedy: "`prefetch hosts clear \(host)` forgets it")
        }
        guard let first = cooling.first else {
            guard let first = down.first else { return .ok(.hosts, "no host is down or given up") }
            let others = down.count > 1 ? " and \(down.count - 1) more" : ""
            return .wrong(
                .hosts,
                "\(first.place)\(others): down since \(first.since), \(first.reason.rawValue)",
                remedy: "check the origin (--online); `prefetch failed list` shows the failures")
        }
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

    package static func openFiles(available: Int?, _ configuration: RunConfiguration) -> Diagnosis {
        guard let available else { return .unknown(.openFiles, "the system does not say") }
        let budget = DescriptorBudget(
            codecWorkers: configuration.codecWorkers, transfers: configuration.maximumTransfers)
        let remedy = "raise the limit: ulimit -n \(2 * budget.total), or LimitNOFILE= of systemd"
        guard let fitted = budget.fitted(to: available) else {
            return .wrong(
                .openFiles,
                "\(available) left, too few for any run, which needs \(RunConfiguration.minimumDescriptors)",
                remedy: remedy)
        }
        guard fitted == budget else {
            return .wrong(
                .openFiles,
                """
                \(available) left, and \(budget.total) are needed for \
                \(configuration.maximumTransfers) transfers at once (--jobs): a run makes do with \(fitted.transfers)
                """, remedy: remedy)
        }
        return .ok(
            .openFiles,
            "\(available) left; \(configuration.maximumTransfers) transfers at once need \(budget.total)"
        )
    }

    /// Returns the text that tells libraries of the system from carried ones:
    /// `; from the system: libcurl.so.4; from /usr/local/libexec/prefetch: libavif.so.15`.
    static func origins(of files: [String]) -> String {
        let parts = files.map { file in
            let slash = file.lastIndex(of: "/") ?? file.startIndex
            return (folder: file[..<slash], name: file[slash...].drop { $0 == "/" })
        }
        let carried = parts.filter { $0.folder.hasSuffix("/libexec/prefetch") }
        let ofSystem = parts.filter { !$0.folder.hasSuffix("/libexec/prefetch") }
        return [("the system", ofSystem), (carried.first.map { String($0.folder) } ?? "", carried)]
            .filter { !$0.1.isEmpty }
            .map { "; from \($0.0): \($0.1.map(\.name).joined(separator: " "))" }.joined()
    }

    /// Checks whether the libraries that are loaded on first use can be loaded, and whether each
    /// decoder decodes a picture.
    package static func libraries() -> Diagnosis {
        do {
            let curl = try CurlVersion.text()
            // The line of a missing library gives the reason.
            if let missing = CodecLibraries.optional.first(where: {
                $0.contains("cannot be loaded")
            }) {
                let images =
                    missing.hasPrefix("libavif") ? "AVIF images" : "images with colour profiles"
                return .wrong(.libraries, missing, remedy: "install it; \(images) fail without it")
            }
            return decoders(
                failing: CodecLibraries.failingDecoders(),
                "libcurl \(curl), SQLite \(StorageVersions.sqlite)"
                    + origins(of: CodecLibraries.loadedFiles))
        } catch {
            return .wrong(
                .libraries, "libcurl cannot be loaded: \(error.message)", remedy: error.hint)
        }
    }
}

extension Diagnosis {
    /// Starts a worker, and names the walls around it.
    package static func sandbox() -> Diagnosis {
        switch BudgetedImageProcessor.trySandbox() {
        case .workers(let missing):
            let holding = Wall.allCases.filter { missing[$0] == nil }.map(\.name)
            let text = "decoders can be behind \(holding.joined(separator: ", "))"
            let rest = missing.isEmpty ? "" : "; not \(SandboxState.text(of: missing))"
            let others = CodecLibraries.sandboxed
            let more = others.isEmpty ? "" : "; there alone: \(others.joined(separator: ", "))"
            return .ok(.sandbox, text + rest + more)
        case .none(let reason):
            return .ok(.sandbox, "decoders run in this process: \(reason)")
        case .off, .unused:
            return .ok(.sandbox, "this build decodes images in this process")
        }
    }

    /// Returns the line about libraries that could be loaded, with the decoders that fail on a tiny
    /// picture.
    static func decoders(failing: [String], _ libraries: String) -> Diagnosis {
        let decoders = CodecLibraries.own.joined(separator: " ")
        guard failing.isEmpty else {
            return .wrong(
                .libraries, "\(failing.joined(separator: "; ")); it fails on a right picture",
                remedy: "update the library, or report it with `prefetch --version`")
        }
        return .ok(.libraries, "\(libraries); decoded a picture each: \(decoders)")
    }
}

extension [Diagnosis] {
    /// 0 without problems, 1 with a problem, 2 if only some check could not be made.
    package var exitStatus: Int32 {
        if contains(where: { $0.state == .wrong }) { return 1 }
        return contains { $0.state == .unknown } ? 2 : 0
    }
}
