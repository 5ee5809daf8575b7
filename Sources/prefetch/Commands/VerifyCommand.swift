import ArgumentParser
import CacheStorage
import PrefetchModel
import Reporting
import Upkeep

struct VerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Check the cache's files against their digests and rows.",
        discussion: """
            Reads the whole database and every content file, and prints one line per problem: missing \
            and damaged files, files that differ from their rows, orphaned files, and contradictory \
            rows. It can run during a run.

            --repair removes damaged files with their rows, and the next run downloads these images \
            again; it removes orphaned files, and recomputes derived rows. The next run salvages a \
            damaged database.

            --resume continues after --time-limit or a signal, to verify a large cache in parts.

            Exit status: 0 no problem in the part that was read, 1 a problem was found, repaired or \
            not, 2 the cache is missing or cannot be read, 64 wrong usage, 75 another process holds the cache \
            (--repair).

            Examples:
              prefetch verify
              prefetch verify --sample 5% -q                   # in cron, in between
              prefetch verify --resume --time-limit 10m -q     # each night a part
              prefetch verify --repair; prefetch images.txt
            """)

    @Flag(help: "Repair the problems.")
    var repair = false

    @Option(
        help: .value(
            "p%",
            "Read only this share of the files, chosen at random; check the sizes of the others."))
    var sample = Share.whole

    @Option(
        help: .value(
            "duration|date",
            """
            Read only files stored or changed within this time, or since this date in UTC \
            (2026-11-21); check the sizes of the others.
            """))
    var since: SinceArgument?

    @Option(help: .value("duration", "Stop after this time; --resume continues."))
    var timeLimit: Duration?

    @Flag(help: "Continue where the last verification stopped, or start again if it was complete.")
    var resume = false

    @Flag(help: "Print JSON Lines: one object per problem, and a summary.")
    var json = false

    @Flag(name: .shortAndLong, help: "Print only problems.")
    var quiet = false

    @OptionGroup var options: ChangeOptions

    func validate() throws {
        if let timeLimit, timeLimit <= .zero {
            throw ValidationError("--time-limit must be more than 0")
        }
    }

    func run() throws {
        let start = ContinuousClock.now
        let signals = try SignalWatcher()
        var lines = LineWriter.standardOutput()
        let totals =
            repair
            ? try verifyAndRepair(from: start, signals, &lines)
            : try verify(from: start, signals, &lines)
        let elapsed = ContinuousClock.now - start
        if json { try lines.write(JSONObject(totals, elapsed: elapsed)) }
        try lines.finish()
        // A signal behind the last file has stopped nothing.
        let caught = totals.isComplete ? nil : signals.caught
        if !quiet, !json {
            let text = text(totals, wasInterrupted: caught != nil, elapsed: elapsed)
            StandardError.write("prefetch: \(text)")
        }
        if let caught { ProcessEnd.die(of: caught) }
        if totals.findings > 0 { throw UserError(.incomplete, "") }
    }

    // MARK: The work

    private func verify(
        from start: ContinuousClock.Instant, _ signals: SignalWatcher, _ lines: inout LineWriter
    ) throws -> CacheVerification.Totals {
        let catalog = try options.cache.catalog()
        let place = try catalog.verifiedFolders()
        let verification = try CacheVerification(
            reading: catalog, extent(from: start, finishedFolders: place))
        let totals = try run(verification, signals, since: start, &lines)
        // Most verifications are complete and never write.
        if place > 0 || !totals.isComplete, !totals.isDatabaseDamaged { notePlace(totals) }
        return totals
    }

    private func verifyAndRepair(
        from start: ContinuousClock.Instant, _ signals: SignalWatcher, _ lines: inout LineWriter
    ) throws -> CacheVerification.Totals {
        // Locked first: no other verification moves the position then.
        try options.change { cache in
            let place = try options.cache.catalog().verifiedFolders()
            let verification = try CacheVerification(
                reading: CacheCatalog(cache), repairing: cache,
                extent(from: start, finishedFolders: place))
            let totals = try run(verification, signals, since: start, &lines)
            if totals.isComplete { try cache.endKeepingOrphans() }
            if !totals.isDatabaseDamaged { try cache.setVerifiedFolders(totals.place) }
            return totals
        }
    }

    private func extent(
        from start: ContinuousClock.Instant, finishedFolders: Int
    ) -> CacheVerification.Extent {
        let now = WallClock.now()
        var extent = CacheVerification.Extent(at: now)
        extent.sample = sample.fraction
        extent.changedSince = since?.moment(at: now)
        extent.deadline = timeLimit.map { start + $0 }
        extent.finishedFolders = resume ? finishedFolders : 0
        extent.workers = AvailableProcessors.count
        return extent
    }

    private func run(
        _ verification: CacheVerification, _ signals: SignalWatcher,
        since start: ContinuousClock.Instant, _ lines: inout LineWriter
    ) throws -> CacheVerification.Totals {
        signals.hand { signal in
            guard verification.stop() else { ProcessEnd.die(of: signal) }
        }
        var line = ProgressText(isWanted: !quiet)
        defer { line.clear() }
        var failure: (any Error)?
        let totals = try verification.run { event in
            guard failure == nil else { return }
            switch event {
            case .finding(let finding):
                line.clear()
                do {
                    if json {
                        try lines.write(JSONObject(finding))
                    } else {
                        try lines.write(line: VerifyCommand.text(finding))
                    }
                    try lines.flush()
                } catch {
                    failure = error
                }
            case .progress(let totals):
                let share = 100 * totals.folders / CacheInspection.folders.count
                let speed = rate(totals.bytes, .now - start)
                line.show(
                    "prefetch: \(share) %: \(totals.files) files, \(ByteCount(totals.bytes)), \(speed)"
                )
            }
        }
        if let failure { throw failure }
        return totals
    }

    /// The time to wait for a run that holds the cache, before giving up on storing the position.
    private static let longestWait = Duration.seconds(5)

    /// Stores the position for `--resume`. A failure is only a warning: the next verification then
    /// starts again.
    private func notePlace(_ totals: CacheVerification.Totals) {
        func warn(_ reason: String) {
            guard !totals.isComplete else { return }
            StandardError.write("prefetch: cannot store the position for --resume: \(reason)")
        }
        do {
            let opened = try OpenCache.open(
                path: try options.cache.path(), creates: false,
                waiting: .upTo(VerifyCommand.longestWait))
            guard let opened else { return warn("another process holds the cache") }
            let result = Result { try opened.setVerifiedFolders(totals.place) }
            try opened.synchronize()
            try result.get()
        } catch {
            warn("\(error)")
        }
    }

    // MARK: Text

    /// `content/ab/….jpg: damaged: its bytes do not match … (https://example.com/a.jpg): repaired`
    private static func text(_ finding: CacheVerification.Finding) -> String {
        var text = finding.path.map { "\($0): " } ?? ""
        text += "\(finding.kind.rawValue): \(finding.message)"
        if let key = finding.keys.first {
            let others = finding.keys.count - 1
            text += " (\(RedactedURL(key))\(others > 0 ? " and \(others) more" : ""))"
        }
        return printable(text + (finding.isRepaired ? ": repaired" : ""))
    }

    /// `3000 files, 180.2 MiB, in 0.4 s (450 MiB/s): no problems`
    private func text(
        _ totals: CacheVerification.Totals, wasInterrupted: Bool, elapsed: Duration
    ) -> String {
        let files = counted(totals.files, "file")
        let read = totals.filesRead == totals.files ? "" : " (\(totals.filesRead) read)"
        let head = """
            \(files)\(read), \(ByteCount(totals.bytes)), in \(durationText(elapsed)) \
            (\(rate(totals.bytes, elapsed)))
            """
        let problems = VerifyCommand.text(problemsOf: totals, isRepair: repair)
        guard !totals.isComplete, !totals.isDatabaseDamaged else {
            return "\(head): \(problems ?? "no problems")"
        }
        let cause = wasInterrupted ? "interrupted" : "stopped at the time limit"
        let folders = CacheInspection.folders.count
        return """
            \(head): \(cause) after \(totals.folders) of \(folders) folders, \
            \(problems ?? "no problems so far"); --resume continues from there
            """
    }

    private static func text(
        problemsOf totals: CacheVerification.Totals, isRepair: Bool
    ) -> String? {
        let (found, repaired) = (totals.findings, totals.repaired)
        guard found > 0 else { return nil }
        let head = found == 1 ? "1 problem found" : "\(found) problems found"
        if isRepair {
            let next = "the next run downloads removed images"
            return switch repaired {
            case found: "\(head) and repaired; \(next)"
            case 0: head + (found == 1 ? ", which cannot" : ", and none can") + " be repaired"
            case let some: "\(head), \(some) of them repaired; \(next)"
            }
        }
        return switch totals.repairable {
        case found: "\(head); --repair fixes \(found == 1 ? "it" : "them")"
        case 0:
            head + (found == 1 ? ", which --repair cannot fix" : "; --repair fixes none of them")
        case let some: "\(head); --repair fixes \(some) of them"
        }
    }

    private func rate(_ bytes: Int, _ elapsed: Duration) -> String {
        let seconds = elapsed / .seconds(1)
        return "\(ByteCount(seconds > 0 ? Int(Double(bytes) / seconds) : 0))/s"
    }
}

extension CacheVerification.Totals {
    /// The position for the next verification; nil after a complete one.
    fileprivate var place: Int? { isComplete ? nil : folders }
}

extension JSONObject {
    fileprivate init(_ finding: CacheVerification.Finding) {
        self.init()
        add("type", "finding")
        add("kind", finding.kind.rawValue)
        add("path", finding.path)
        add("keys", finding.keys.map { RedactedURL($0).description })
        add("message", finding.message)
        add("repaired", finding.isRepaired)
    }

    fileprivate init(_ totals: CacheVerification.Totals, elapsed: Duration) {
        self.init()
        add("type", "summary")
        add("files", totals.files)
        add("files_read", totals.filesRead)
        add("bytes_read", totals.bytes)
        add("findings", totals.findings)
        add("repairable", totals.repairable)
        add("repaired", totals.repaired)
        add("folders", totals.folders)
        add("complete", totals.isComplete)
        add("elapsed_ms", elapsed)
    }
}
