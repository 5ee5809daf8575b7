import CacheStorage
import Glibc
import PrefetchModel
import Reporting
import Threading

// The end of a run: the summary, the other files, and the exit status.

extension RunCommand {
    /// The outputs of a run.
    struct Output: Sendable {
        let reporter: RunReporter
        let directory: CacheDirectory
        /// Files of replaced images, for the page.
        let replaced: HeldFiles
        /// Lines about damage.
        let repairs: [String]
        /// Messages that a quiet run prints only if it fails.
        let notes = Monitor<[(text: String, remedy: String?)]>([])
        /// The end of the last run with exit status 0.
        let lastSuccess: Timestamp?
        let signals: SignalWatcher
    }

    /// Reports the run, and ends the process.
    func end(_ ended: RunSummary, _ output: Output) -> Never {
        var summary = ended
        var exitStatus = summary.exitStatus
        if showing.quiet, exitStatus != 0 {
            output.repairs.forEach(StandardError.write)
            for note in output.notes.withLock({ $0 }) {
                output.reporter.message(note.text, hint: note.remedy)
            }
        }
        do throws(ReportingError) {
            try output.reporter.finish(summary, style: showing.summary)
        } catch {
            // A closed pipe ends quietly, with the run's exit status.
            if case .system = error {
                exitStatus = 2
                // The text summary names it.
                if showing.summary != .text { StandardError.write("prefetch: \(error)") }
            }
        }
        exitStatus = writePage(output, exitStatus: exitStatus)
        exitStatus = conclude(&summary, exitStatus: exitStatus, output)
        if let signal = summary.stoppedBySignal { ProcessEnd.die(of: signal) }
        // The database stays open: closing it would make SQLite checkpoint the log without syncing
        // files first.
        ProcessEnd.leave(exitStatus)
    }

    /// Runs the command of `--on-change`, and writes the metrics.
    ///
    /// - Returns: the exit status.
    private func conclude(
        _ summary: inout RunSummary, exitStatus: Int32, _ output: Output
    ) -> Int32 {
        var status = exitStatus
        let count = summary.counters.variantsMade
        if let command = showing.changeCommand, count > 0, summary.stoppedBySignal == nil {
            let (problem, signal) = ChangeCommand.run(
                command, count: count, signals: output.signals)
            summary.stoppedBySignal = signal
            if let problem {
                StandardError.write("prefetch: --on-change: \(problem)")
                if status == 0 { status = 1 }
            }
        }
        guard let path = showing.metrics else { return status }
        summary.exitStatus = status
        let now = WallClock.now()
        let metrics = MetricsText(
            summary, endedAt: now, lastSuccess: status == 0 ? now : output.lastSuccess)
        do throws(ReportingError) {
            try OutputFile.replace(path, with: Array(metrics.text.utf8))
        } catch {
            StandardError.write("prefetch: \(error)")
            status = 2
        }
        return status
    }
}

extension RunSummary {
    /// A run that a list by URL has ended before it began.
    init(
        _ failure: CommandFailure, startedAt: Timestamp, _ lists: ListCounts?, in directory: String
    ) {
        self.init(
            counters: RunCounters(), startedAt: startedAt,
            elapsed: WallClock.now().timeSince(startedAt), exitStatus: failure.exitStatus,
            cacheDirectory: directory, fatalMessage: failure.message)
        fatalHint = failure.hint
        self.lists = lists
        guard failure.exitStatus == 3 else { return }
        (fatalMessage, fatalHint, endedBy) = (nil, nil, .deadline)
    }

    /// Notes that a signal has ended the run before it began.
    mutating func stop(by signal: Int32) {
        (fatalMessage, fatalHint, endedBy) = (nil, nil, nil)
        stoppedBySignal = signal
        exitStatus = 128 + signal
    }
}
