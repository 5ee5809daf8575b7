package import FileOutput
package import PrefetchModel
import Threading

/// Writes the report, the progress line, a line per entry with `-v`, and the summary of a run.
///
/// The run calls it from its own thread. ``message(_:)`` may be called from any thread, so one
/// mutex protects all state, and lines never mix.
///
/// A failure of standard error doesn't stop a run: the first error is kept in ``diagnosticsError``,
/// and nothing more is written there. A closed report pipe (`--report - | head`) doesn't either:
/// one line says so, and the run continues without a report.
package final class RunReporter: RunObserving, Sendable {
    package enum Verbosity: Sendable {
        /// No progress line; a text summary only if the exit status isn't 0 or an outage has ended,
        /// without known failures.
        case quiet
        case normal
        case verbose
    }

    package enum SummaryStyle: String, CaseIterable, Sendable {
        case text
        case json
        case none
    }

    package enum ProgressStyle: Sendable {
        case none
        /// One redrawn line. The function returns the terminal's current width in columns.
        case line(width: @Sendable () -> Int)
        /// A separate line every half minute, beginning this long after the start.
        case lines(from: Duration)
    }

    package struct Settings: Sendable {
        package var verbosity = Verbosity.normal
        package var progress = ProgressStyle.none
        package var usesColor = false
        /// Descriptors for data and for messages, owned by the caller.
        package var standardOutput: Int32 = 1
        package var standardError: Int32 = 2
        package var now: @Sendable () -> ContinuousClock.Instant = { .now }
        /// Receives the status of the run about once a second; nil without a receiver.
        package var publishing: Publishing?
        /// Nil outside of GitHub Actions.
        package var actions: GitHubActions?
        package var keepsRecord = false
        /// Whether failed URLs are remembered, where `prefetch failed` shows them.
        package var remembersFailures = true
        /// Receives each replaced image that a page shows, while its file may still exist.
        package var showingReplaced: (@Sendable (StoredImage) -> Void)?

        package init() {}
    }

    /// The receiver of the status, on the run's thread.
    package typealias Publishing = (
        process: Int32, wallClock: @Sendable () -> Timestamp,
        receive: @Sendable (RunStatus) -> Void
    )

    struct Outputs: ~Copyable {
        var report: ReportWriter?
        var junit: JUnitWriter?
        var record: RunRecord?
        var pauses = PauseLog()
        var actions: GitHubActions?
        var summary: SummaryText
        var progressLine = ProgressLine()
        var isStatusWanted = false
        /// The due time of the next line of ``ProgressStyle/lines(from:)``, since the run's start.
        var nextLine: Duration?
        /// The progress line on the terminal; empty without one.
        var shownProgress = ""
        let diagnostics: OutputFile
        var diagnosticsError: OutputError?
    }

    private let configuration: Settings
    private let writesReport: Bool
    private let writesJUnit: Bool
    private let reportsToStandardOutput: Bool
    private let start: ContinuousClock.Instant
    private let state: Monitor<Outputs>

    /// Writes no report if `report` is nil, and no test cases if `junit` is nil.
    package init(
        _ configuration: Settings, report: consuming ReportWriter? = nil,
        junit: consuming JUnitWriter? = nil
    ) {
        self.configuration = configuration
        let isStandardOutput = report?.isStandardOutput
        writesReport = isStandardOutput != nil
        let writesJUnit = junit != nil
        self.writesJUnit = writesJUnit
        start = configuration.now()
        reportsToStandardOutput = isStandardOutput ?? false
        var summary = SummaryText()
        summary.usesColor = configuration.usesColor
        summary.isQuiet = configuration.verbosity == .quiet
        summary.hasReport = isStandardOutput != nil
        summary.remembersFailures = configuration.remembersFailures
        state = Monitor(
            Outputs(
                report: report, junit: junit,
                record: configuration.keepsRecord ? RunRecord() : nil,
                actions: configuration.actions, summary: summary,
                diagnostics: OutputFile(
                    borrowing: configuration.standardError, name: "standard error")))
    }

    /// The first error of standard error; nothing was written after it.
    package var diagnosticsError: OutputError? { state.withLock { $0.diagnosticsError } }

    /// The results so far for a page; nil unless the configuration keeps them.
    package var record: RunRecord? { state.withLock { $0.record } }

    /// All with a report or `-v`, all but warm entries for a page, else those the summary lists.
    package func wantsResults(of outcome: Outcome) -> Bool {
        switch outcome {
        case .failed, .excluded: true
        case .blacklisted:
            configuration.verbosity != .quiet || writesReport || writesJUnit
                || configuration.keepsRecord
        default:
            writesReport || configuration.verbosity == .verbose
                || configuration.keepsRecord && RunRecord.hasDetails(outcome)
                || writesJUnit
                    && state.withLock { $0.junit?.wantsResults(of: outcome) ?? false }
        }
    }

    package func entryFinished(_ result: EntryResult) throws {
        var result = result
        if writesReport || configuration.keepsRecord, result.attempts > 0 {
            result.endedAfter = configuration.now() - start
        }
        try state.withLock { state in
            if state.record?.note(result) == true, let replaced = result.replaced {
                configuration.showingReplaced?(replaced.image)
            }
            state.summary.note(result)
            state.actions?.note(result)
            state.junit?.write(result)
            if configuration.verbosity == .verbose {
                state.show(line: RunReporter.line(result))
            }
            do throws(OutputError) {
                try state.report?.write(result)
            } catch .closedPipe {
                endReport(&state)
            }
        }
    }

    /// A writer for the lines of warm entries, if only the report needs them.
    package var warmLineWriter: (any WarmLineWriting)? {
        guard configuration.verbosity != .verbose, !writesJUnit,
            let pathPrefix = state.withLock({ $0.report?.pathPrefix })
        else { return nil }
        return WarmLineWriter(pathPrefix: pathPrefix)
    }

    package func warmEntriesFinished(_ lines: ArraySlice<UInt8>) throws {
        try state.withLock { state in
            do throws(OutputError) {
                try state.report?.write(lines: lines)
            } catch .closedPipe {
                endReport(&state)
            }
        }
    }

    private func endReport(_ state: inout Outputs) {
        guard let name = state.report?.name else { return }
        state.report = nil
        guard configuration.verbosity != .quiet else { return }
        state.show(
            line: printable(
                "prefetch: \(name): the reader has closed the report; continuing without it"))
    }

    package func progressed(_ progress: RunProgress) {
        let instant = configuration.now()
        state.withLock { state in
            // Also while nothing is shown: rates cover the last seconds.
            state.progressLine.observe(progress)
            state.pauses.note(progress)
            if let publishing = configuration.publishing, let hosts = progress.hosts {
                publishing.receive(
                    state.progressLine.status(
                        progress, hosts, at: publishing.wallClock(), process: publishing.process))
            }
            if state.isStatusWanted {
                state.isStatusWanted = false
                state.show(line: state.progressLine.line(progress))
            }
            guard configuration.verbosity != .quiet else { return }
            switch configuration.progress {
            case .none: return
            case .line(let width):
                guard state.progressLine.shouldRender(at: instant) else { return }
                state.shownProgress = state.progressLine.render(progress, width: width())
                state.show(state.shownProgress)
            case .lines(let start):
                guard progress.elapsed >= state.nextLine ?? start else { return }
                state.nextLine = progress.elapsed + RunReporter.lineInterval
                state.show(line: state.progressLine.line(progress))
            }
        }
    }

    private static let lineInterval: Duration = .seconds(30)

    /// Prints the progress once, soon, as a separate line. May be called from any thread.
    package func showStatus() {
        state.withLock { $0.isStatusWanted = true }
    }

    /// Writes one line to standard error, above the progress line if there is one, and a hint.
    ///
    /// The text is without `prefetch: ` and line end; it is escaped, and URLs are redacted.
    package func message(_ text: String, hint: String? = nil) {
        state.withLock { state in
            state.show(line: "prefetch: \(printable(redacted(text)))")
            if let hint { state.show(line: "hint: \(printable(hint))") }
        }
    }

    /// Writes the report's last line, the test cases, the summary, and the results for GitHub
    /// Actions. Call it once, after the run.
    ///
    /// If the first two can't be written, the summary shows exit status 2 and the reason. A closed
    /// pipe changes nothing. With the report on standard output, `json` adds nothing, since the
    /// same object is the report's last line.
    ///
    /// - Throws: the error of the report, else of the test cases, else of standard output.
    package func finish(_ summary: RunSummary, style: SummaryStyle) throws(OutputError) {
        let failure = state.withLock { state -> OutputError? in
            state.clearProgress()
            var summary = summary
            summary.pauses = state.pauses.pauses
            var failure: OutputError?
            func note(_ error: OutputError) {
                failure = failure ?? error
                summary.exitStatus = 2
                summary.fatalMessage = summary.fatalMessage ?? error.description
            }
            do throws(OutputError) {
                try state.report?.finish(summary)
            } catch .closedPipe {
                endReport(&state)
            } catch {
                note(error)
            }
            do throws(OutputError) {
                try state.junit?.finish(summary)
            } catch {
                note(error)
            }
            state.record?.end(summary)
            if style == .json, failure != nil || !reportsToStandardOutput {
                failure = writeJSON(summary, after: failure)
            }
            let isWanted =
                configuration.verbosity != .quiet || summary.exitStatus != 0
                || !summary.endedOutages.isEmpty
            if style == .text, isWanted { state.show(state.summary.render(summary)) }
            if isWanted { state.showAnnotations(summary) }
            state.appendForActions(summary, showsProblems: isWanted)
            return failure
        }
        if let failure { throw failure }
    }

    /// Writes the summary to standard output.
    ///
    /// - Returns: the earlier failure, else the failure of this write.
    private func writeJSON(_ summary: RunSummary, after earlier: OutputError?) -> OutputError? {
        if let earlier, reportsToStandardOutput { return earlier }
        let file = OutputFile(borrowing: configuration.standardOutput, name: "standard output")
        do {
            try file.write(summary.json + [UInt8(ascii: "\n")])
            return earlier
        } catch {
            return earlier ?? error
        }
    }
}

extension RunReporter {
    /// `prefetch: m.txt:12: URL: downloaded: jpeg 640x427, 79.3 KiB received, 68.5 KiB stored`.
    static func line(_ result: EntryResult) -> String {
        var details: [String] = []
        if let stored = result.stored {
            var text = stored.format.rawValue
            if let width = stored.knownWidth, let height = stored.knownHeight {
                text += " \(width)x\(height)"
            }
            details.append(stored.isDecoded ? text : "\(text) (not decoded)")
        }
        if result.bytesReceived > 0 {
            details.append("\(ByteCount(result.bytesReceived)) received")
        }
        if let stored = result.stored, result.outcome == .downloaded {
            details.append("\(stored.size) stored")
        }
        var text = "prefetch: \(result.manifest):\(result.line): \(result.shownURL): "
        text += result.outcome.rawValue
        if let reason = result.reason { text += ": \(reason.rawValue)" }
        if let message = result.message { text += ": \(redacted(message))" }
        if !details.isEmpty { text += ": \(details.joined(separator: ", "))" }
        return printable(text)
    }
}

extension RunReporter.Outputs {
    /// Writes a complete line above the progress line, in one system call.
    mutating func show(line: String) {
        let clear = shownProgress.isEmpty ? "" : ProgressLine.clearText
        show("\(clear)\(line)\n\(shownProgress)")
    }

    mutating func clearProgress() {
        guard !shownProgress.isEmpty else { return }
        shownProgress = ""
        show(ProgressLine.clearText)
    }

    mutating func show(_ text: String) {
        write { file throws(OutputError) in try file.write(Array(text.utf8)) }
    }

    /// GitHub reads the annotations from both streams, and standard output is for data.
    mutating func showAnnotations(_ summary: RunSummary) {
        guard let commands = actions?.annotations(summary), !commands.isEmpty else { return }
        let text = commands.joined(separator: "\n") + "\n"
        write { file throws(OutputError) in try file.write(commands: text) }
    }

    mutating func appendForActions(_ summary: RunSummary, showsProblems: Bool) {
        guard let actions else { return }
        let problems = actions.append(summary, self.summary.listedGroups(summary))
        guard showsProblems, !problems.isEmpty else { return }
        for problem in problems { show(line: "prefetch: \(problem)") }
        show(line: "hint: --ci none writes no files for GitHub Actions")
    }

    private mutating func write(
        _ body: (borrowing OutputFile) throws(OutputError) -> Void
    ) {
        guard diagnosticsError == nil else { return }
        do {
            try body(diagnostics)
        } catch {
            diagnosticsError = error
        }
    }
}
