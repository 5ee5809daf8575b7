import CacheStorage
import FileOutput
import Glibc
import Pages
import Pipeline
import PrefetchModel
import Reporting
import Threading

struct RunOutput: Sendable {
    let reporter: RunReporter
    let status: StatusFile
    let showing: Flags<ShowingFlags>
    private let directory: CacheDirectory
    /// The cache's path as the user gave it.
    let cachePath: String
    /// The files of replaced images, for the page.
    private let replaced: HeldFiles
    private let repairs: [String]
    /// Messages that a quiet run prints only if it fails.
    private let notes = Monitor<[(text: String, remedy: String?)]>([])
    /// The end of the last run with exit status 0.
    private let lastSuccess: Timestamp?
    private let signals: SignalWatcher

    init(
        _ command: RunCommand, lists: [String], _ repairs: [String], _ cache: OpenCache,
        _ signals: SignalWatcher
    ) throws {
        showing = command.showing
        directory = cache.directory
        cachePath = try command.cache.path()
        let status = StatusFile(cache.directory)
        let replaced = HeldFiles(of: cache.directory)
        reporter = try command.showing.reporter(
            cacheDirectory: try command.cache.absolutePath(), lists: lists,
            ignoresKnown: command.result.countedFailures == .new,
            showingReplaced: { replaced.hold($0) },
            publishing: RunReporter.Publishing(process: getpid(), wallClock: WallClock.now) {
                status.write(json: $0.json, text: $0.text)
            })
        self.status = status
        self.replaced = replaced
        self.repairs = repairs
        self.signals = signals
        // The database is closed after the run. An error is dropped: the run itself finds damage,
        // and has it repaired.
        lastSuccess = showing.metrics.flatMap { _ in (try? cache.log.lastSuccess()) ?? nil }
    }

    /// Prints a message; a quiet run prints it only if it fails.
    func note(_ text: String, _ remedy: String? = nil) {
        if showing.quiet {
            notes.withLock { $0.append((text, remedy)) }
        } else {
            reporter.message(text, hint: remedy)
        }
    }

    /// Reports the run, writes the other files, and ends the process.
    func conclude(_ ended: RunSummary) -> Never {
        var summary = ended
        if showing.quiet, summary.exitStatus != 0 {
            repairs.forEach(StandardError.write)
            for note in notes.withLock({ $0 }) {
                reporter.message(note.text, hint: note.remedy)
            }
        }
        var exitStatus = summary.exitStatus
        do {
            try reporter.finish(summary, style: showing.summary)
        } catch {
            // A closed pipe ends quietly, with the run's exit status.
            if case .system = error {
                exitStatus = 2
                // The text summary names it.
                if showing.summary != .text { error.userError.report() }
            }
        }
        if !writePage() { exitStatus = 2 }
        if !runChangeCommand(&summary), exitStatus == 0 { exitStatus = 1 }
        summary.exitStatus = exitStatus
        if !writeMetrics(summary) { exitStatus = 2 }
        if let signal = summary.stoppedBySignal { ProcessEnd.die(of: signal) }
        // The database stays open: closing it would make SQLite checkpoint the log without syncing
        // files first.
        ProcessEnd.leave(exitStatus)
    }

    /// Writes the page of `--html`; returns false if it cannot be written.
    private func writePage() -> Bool {
        guard let path = showing.page, let record = reporter.record else { return true }
        return succeeds {
            let page = try ReportPage(
                record, after: nil, cache: CacheCatalog(directory: directory),
                replaced: replaced, at: WallClock.now())
            try OutputFile.replace(path, with: page.html())
        }
    }

    /// Runs the command of `--on-change`; returns false if it fails.
    private func runChangeCommand(_ summary: inout RunSummary) -> Bool {
        let count = summary.counters.variantsMade
        guard let command = showing.changeCommand, count > 0, summary.stoppedBySignal == nil else {
            return true
        }
        let (problem, signal) = ChangeCommand.run(command, count: count, signals: signals)
        summary.stoppedBySignal = signal
        if let problem { StandardError.message("--on-change: \(problem)") }
        return problem == nil
    }

    /// Writes the metrics; returns false if they cannot be written.
    private func writeMetrics(_ summary: RunSummary) -> Bool {
        guard let path = showing.metrics else { return true }
        let now = WallClock.now()
        let metrics = MetricsText(
            summary, endedAt: now, lastSuccess: summary.exitStatus == 0 ? now : lastSuccess)
        return succeeds { try OutputFile.replace(path, with: Array(metrics.text.utf8)) }
    }

    private func succeeds(_ write: () throws -> Void) -> Bool {
        do {
            try write()
            return true
        } catch {
            StandardError.message("\(error)")
            return false
        }
    }
}

extension RunSummary {
    /// A run that a list by URL has ended before it began.
    init(_ error: UserError, startedAt: Timestamp, _ lists: ListCounts?, in directory: String) {
        self.init(
            counters: RunCounters(), startedAt: startedAt,
            elapsed: WallClock.now().timeSince(startedAt), exitStatus: error.exitStatus(of: nil),
            cacheDirectory: directory, fatalMessage: error.description)
        fatalHint = error.hint
        self.lists = lists
        guard error.kind == .cancelled else { return }
        (fatalMessage, fatalHint, endedBy) = (nil, nil, .deadline)
    }

    /// Notes that the deadline has come. Failures decide the exit status.
    mutating func endAtDeadline() {
        endedBy = .deadline
        if exitStatus == 0 { exitStatus = 3 }
    }

    /// Notes that a signal has ended the run before it began.
    mutating func stop(by signal: Int32) {
        (fatalMessage, fatalHint, endedBy) = (nil, nil, nil)
        stoppedBySignal = signal
        exitStatus = 128 + signal
    }
}

enum ChangeCommand {
    /// Runs a command by the shell, and waits for its end. Its standard output is the standard
    /// error of this process: its standard output may be data. The variable `PREFETCH_CHANGED` has
    /// `count`. The next signal is passed on to the command and its children.
    ///
    /// - Returns: why it failed, nil if it has exited with 0, and the signal.
    static func run(
        _ command: String, count: Int, signals: SignalWatcher
    ) -> (problem: String?, signal: Int32?) {
        setenv("PREFETCH_CHANGED", "\(count)", 1)
        let child: ChildProcess
        do {
            child = try ChildProcess(shell: command, output: STDERR_FILENO)
        } catch {
            return (error.description, nil)
        }
        signals.hand { child.send($0) }
        return (child.wait(), signals.caught)
    }
}
