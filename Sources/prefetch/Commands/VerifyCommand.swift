import ArgumentParser
import CacheStorage
import Glibc
import PrefetchModel
import Reporting
import Threading
import Upkeep

/// `prefetch verify`
struct VerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Check the cache's files against their digests and rows.",
        discussion: """
            Reads the whole database and every content file, and prints a line for each thing that is not \
            as it should be: files that are missing, damaged or not what their rows say, files that no row \
            refers to, rows that contradict each other. It can run while a run is changing the cache.

            With --repair what is wrong is mended: the rows of bad files are removed with them, so that the \
            next run downloads their images again; files that no row refers to are removed; what is derived \
            is made anew. A database that is damaged itself is salvaged by the next run.

            What --time-limit or a signal has stopped goes on with --resume, so that a large cache can be \
            verified bit by bit.

            Exit status: 0 nothing is wrong as far as it got, 1 something was found, mended or not, 2 the \
            cache is missing or cannot be read, 64 wrong usage, 75 a run holds the cache (--repair).

            Examples:
              prefetch verify
              prefetch verify --sample 5% -q                   # in cron, in between
              prefetch verify --resume --time-limit 10m -q     # each night a part
              prefetch verify --repair; prefetch images.txt
            """)

    @Flag(help: "Mend what is found.")
    var repair = false

    @Option(
        help: ArgumentHelp(
            "Read only this share of the files, chosen at random; of all others check the sizes.",
            valueName: "p%"))
    var sample = ShareArgument(.whole)

    @Option(
        help: ArgumentHelp(
            """
            Read only the files that were stored or changed within this time, or since this date in UTC \
            (2026-11-21); of all others check the sizes.
            """, valueName: "duration|date"))
    var since: SinceArgument?

    @Option(
        name: .customLong("time-limit"),
        help: ArgumentHelp(
            "Stop after this time, with what was found so far.", valueName: "duration"))
    var timeLimit: DurationArgument?

    @Flag(help: "Go on where the last one was stopped; begin anew if it was not.")
    var resume = false

    @Flag(help: "Print JSON Lines: an object for each finding, and a summary.")
    var json = false

    @Flag(name: .shortAndLong, help: "Print only what is wrong.")
    var quiet = false

    @OptionGroup var options: ChangeOptions

    func validate() throws {
        if let timeLimit, timeLimit.duration <= .zero {
            throw ValidationError("--time-limit must be more than 0")
        }
    }

    func run() throws {
        let start = ContinuousClock.now
        let signals = try watchSignals()
        var lines = LineWriter(OutputFile(borrowing: STDOUT_FILENO, name: "standard output"))
        let signal = Monitor<Int32?>(nil)
        let totals =
            repair
            ? try verifyAndRepair(from: start, signals, signal, &lines)
            : try verify(from: start, signals, signal, &lines)
        let elapsed = ContinuousClock.now - start
        try writing {
            if json { try lines.write(JSONObject(totals, elapsed: elapsed)) }
            try lines.finish()
        }
        let caught = signal.withLock { $0 }
        if !quiet, !json {
            let text = text(totals, wasInterrupted: caught != nil, elapsed: elapsed)
            StandardError.write("prefetch: \(text)")
        }
        if let caught { ProcessEnd.die(of: caught) }
        if totals.findings > 0 { throw CommandFailure(exitStatus: 1, message: "") }
    }

    private func watchSignals() throws -> SignalWatcher {
        do throws(ThreadError) {
            return try SignalWatcher()
        } catch {
            throw CommandFailure.unusable(error.description, hint: error.hint)
        }
    }

    // MARK: The work

    private func verify(
        from start: ContinuousClock.Instant, _ signals: SignalWatcher, _ signal: Monitor<Int32?>,
        _ lines: inout LineWriter
    ) throws -> CacheVerification.Totals {
        let totals: CacheVerification.Totals
        let wasStopped: Bool
        do {
            let catalog = try options.cache.catalog()
            let place = try catalog.verifiedFolders()
            wasStopped = place > 0
            let verification = try CacheVerification(
                reading: catalog, extent(from: start, finishedFolders: place))
            totals = try run(verification, signals, signal, since: start, &lines)
        } catch let error as StorageError {
            throw CommandFailure(error)
        }
        // Most have nothing to note, and so never write.
        if wasStopped || !totals.isComplete, !totals.isDatabaseDamaged { notePlace(totals) }
        return totals
    }

    private func verifyAndRepair(
        from start: ContinuousClock.Instant, _ signals: SignalWatcher, _ signal: Monitor<Int32?>,
        _ lines: inout LineWriter
    ) throws -> CacheVerification.Totals {
        // Opened before, so that an older cache is brought up to date.
        try options.change(missingStatus: 2) { cache in
            let place = try options.cache.catalog().verifiedFolders()
            let verification = try CacheVerification(
                repairing: cache, extent(from: start, finishedFolders: place))
            let totals = try run(verification, signals, signal, since: start, &lines)
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
        extent.sample = sample.share.fraction
        extent.changedSince = since?.moment(at: now)
        extent.deadline = timeLimit.map { start + $0.duration }
        extent.finishedFolders = resume ? finishedFolders : 0
        extent.workers = Processors.available
        return extent
    }

    private func run(
        _ verification: CacheVerification, _ signals: SignalWatcher, _ signal: Monitor<Int32?>,
        since start: ContinuousClock.Instant, _ lines: inout LineWriter
    ) throws -> CacheVerification.Totals {
        signals.hand { number in
            guard verification.stop() else { ProcessEnd.die(of: number) }
            signal.withLock { $0 = number }
        }
        var line = ProgressText(isWanted: !quiet && StandardError.isCapableTerminal)
        defer { line.clear() }
        var failure: (any Error)?
        let totals = try verification.run { event in
            guard failure == nil else { return }
            switch event {
            case .finding(let finding):
                line.clear()
                do {
                    try writing {
                        if json {
                            try lines.write(JSONObject(finding))
                        } else {
                            try lines.write(line: VerifyCommand.text(finding))
                        }
                        try lines.flush()
                    }
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

    /// How long a run that holds the cache is waited for before the place is given up.
    private static let longestWait = Duration.seconds(5)

    /// Keeps how far it has come, for `--resume`. That is no part of what was asked for: without it the next one looks
    /// at everything.
    private func notePlace(_ totals: CacheVerification.Totals) {
        func warn(_ reason: String) {
            guard !totals.isComplete else { return }
            StandardError.write(
                "prefetch: the place where it stopped is not kept for --resume: \(reason)")
        }
        do {
            let opened = try OpenCache.openExisting(
                path: try options.cache.path(), waiting: .upTo(VerifyCommand.longestWait))
            guard let opened else { return warn("a run holds the cache") }
            let result = Result { try opened.setVerifiedFolders(totals.place) }
            try opened.synchronize()
            try result.get()
        } catch {
            warn("\(error)")
        }
    }

    // MARK: Words

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

    /// `3000 files, 180.2 MiB, in 0.4 s (450 MiB/s): nothing is wrong`
    private func text(
        _ totals: CacheVerification.Totals, wasInterrupted: Bool, elapsed: Duration
    ) -> String {
        let files = totals.files == 1 ? "1 file" : "\(totals.files) files"
        let read = totals.filesRead == totals.files ? "" : " (\(totals.filesRead) read)"
        let head = """
            \(files)\(read), \(ByteCount(totals.bytes)), in \(durationText(elapsed)) \
            (\(rate(totals.bytes, elapsed)))
            """
        let problems = VerifyCommand.text(problemsOf: totals, isRepair: repair)
        guard !totals.isComplete, !totals.isDatabaseDamaged else {
            return "\(head): \(problems ?? "nothing is wrong")"
        }
        let cause = wasInterrupted ? "interrupted" : "stopped at the time limit"
        let folders = CacheInspection.folders.count
        return """
            \(head): \(cause) after \(totals.folders) of \(folders) folders, \
            \(problems ?? "nothing is wrong so far"); --resume goes on from there
            """
    }

    /// Nil without any.
    private static func text(
        problemsOf totals: CacheVerification.Totals, isRepair: Bool
    ) -> String? {
        let (found, repaired) = (totals.findings, totals.repaired)
        guard found > 0 else { return nil }
        let head = found == 1 ? "1 problem found" : "\(found) problems found"
        if isRepair {
            let next = "the next run downloads what is gone"
            return switch repaired {
            case found: "\(head) and repaired; \(next)"
            case 0: head + (found == 1 ? ", which cannot" : ", none of which can") + " be repaired"
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
    /// Where the next one goes on; nil after one that came to its end.
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
