package import PrefetchModel
import Threading

/// Tells of a run while it goes on and when it has ended: the report, the progress line, a line
/// for each entry with `-v`, and the summary.
///
/// The run calls it from its own thread; ``message(_:)`` may be called from any, so all that
/// changes is inside one mutex and lines never mix.
///
/// Standard error that cannot be written to is no reason to stop warming a cache: the first error
/// is kept in ``diagnosticsError`` and nothing more is written there. Nor is a reader of the report
/// that has gone (`--report - | head`): one line says so, and the run goes on without a report.
package final class RunReporter: RunObserving, Sendable {
    package enum Verbosity: Sendable {
        /// No progress line; the summary's text only when the exit status is not 0, and then without
        /// what earlier runs have told of.
        case quiet
        case normal
        /// A line for each entry, too.
        case verbose
    }

    package enum SummaryStyle: String, CaseIterable, Sendable {
        /// Lines on standard error.
        case text
        /// One JSON object on standard output.
        case json
        case none
    }

    /// How progress is shown.
    package enum Progress: Sendable {
        case none
        /// One line that is drawn again and again. The function gives the terminal's width in columns
        /// each time, since it can change.
        case line(width: @Sendable () -> Int)
        /// A line of its own each half minute, from so long after the start on.
        case lines(from: Duration)
    }

    package struct Configuration: Sendable {
        package var verbosity = Verbosity.normal
        package var progress = Progress.none
        /// Whether what goes to standard error may be coloured.
        package var usesColor = false
        /// Descriptors for data and for messages; they stay the caller's.
        package var standardOutput: Int32 = 1
        package var standardError: Int32 = 2
        package var now: @Sendable () -> ContinuousClock.Instant = { .now }

        package init() {}
    }

    fileprivate struct State: ~Copyable {
        var report: ReportWriter?
        var summary: SummaryText
        var progressLine = ProgressLine()
        /// Whether a line about the progress was asked for.
        var isStatusWanted = false
        /// When the next line of ``Progress/lines(from:)`` is due, in the run's own time.
        var nextLine: Duration?
        /// What is on the terminal's last line; empty when nothing is.
        var shownProgress = ""
        let diagnostics: OutputFile
        var diagnosticsError: ReportingError?
    }

    private let configuration: Configuration
    private let writesReport: Bool
    private let reportsToStandardOutput: Bool
    private let state: Monitor<State>

    /// No report is written when `report` is nil.
    package init(_ configuration: Configuration, report: consuming ReportWriter? = nil) {
        self.configuration = configuration
        let isStandardOutput = report?.isStandardOutput
        writesReport = isStandardOutput != nil
        reportsToStandardOutput = isStandardOutput ?? false
        var summary = SummaryText()
        summary.usesColor = configuration.usesColor
        summary.isQuiet = configuration.verbosity == .quiet
        summary.hasReport = isStandardOutput != nil
        state = Monitor(
            State(
                report: report, summary: summary,
                diagnostics: OutputFile(
                    borrowing: configuration.standardError, name: "standard error")))
    }

    /// The first error of standard error, which hides everything after it.
    package var diagnosticsError: ReportingError? { state.withLock { $0.diagnosticsError } }

    /// Everything when a report is written or with `-v`, else what the summary lists.
    package func wantsResults(of outcome: Outcome) -> Bool {
        switch outcome {
        case .failed: true
        case .blacklisted where configuration.verbosity != .quiet: true
        default: writesReport || configuration.verbosity == .verbose
        }
    }

    package func entryFinished(_ result: EntryResult) throws {
        try state.withLock { state in
            state.summary.note(result)
            if configuration.verbosity == .verbose {
                state.show(line: RunReporter.line(result))
            }
            do throws(ReportingError) {
                try state.report?.write(result)
            } catch .closedPipe {
                endReport(&state)
            }
        }
    }

    /// Only a report wants no more of warm entries than its lines.
    package var warmLineWriter: (any WarmLineWriting)? {
        guard configuration.verbosity != .verbose,
            let pathPrefix = state.withLock({ $0.report?.pathPrefix })
        else { return nil }
        return WarmLineWriter(pathPrefix: pathPrefix)
    }

    package func warmEntriesFinished(_ lines: ArraySlice<UInt8>) throws {
        try state.withLock { state in
            do throws(ReportingError) {
                try state.report?.write(lines: lines)
            } catch .closedPipe {
                endReport(&state)
            }
        }
    }

    /// Goes on without the report, whose reader has gone.
    private func endReport(_ state: inout State) {
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
            // Also while nothing is shown: the rates are those of the last seconds.
            state.progressLine.observe(progress)
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

    /// Has the progress shown once, soon, as a line of its own, whatever else is shown. May be called
    /// from any thread.
    package func showStatus() {
        state.withLock { $0.isStatusWanted = true }
    }

    /// Writes one line to standard error, above the progress line if there is one.
    ///
    /// - Parameter text: without `prefetch: ` and line end; made printable, URLs in it redacted.
    package func message(_ text: String) {
        state.withLock { $0.show(line: "prefetch: \(printable(redacted(text)))") }
    }

    /// Writes the report's last line and the summary. To be called once, after the run.
    ///
    /// A report that cannot be written turns a summary of success into exit status 2 with the
    /// reason, before the summary is shown; one whose reader has gone changes nothing. With the report
    /// on standard output, `json` adds nothing, since the same object is the report's last line.
    ///
    /// - Throws: ``ReportingError`` of the report, else that of standard output.
    package func finish(_ summary: RunSummary, style: SummaryStyle) throws(ReportingError) {
        let failure = state.withLock { state -> ReportingError? in
            state.clearProgress()
            var summary = summary
            var failure: ReportingError?
            do throws(ReportingError) {
                try state.report?.finish(summary)
            } catch .closedPipe {
                endReport(&state)
            } catch {
                failure = error
                summary.exitStatus = 2
                summary.fatalMessage = summary.fatalMessage ?? error.description
            }
            if style == .json, failure != nil || !reportsToStandardOutput {
                failure = writeJSON(summary, after: failure)
            }
            let isWanted = configuration.verbosity != .quiet || summary.exitStatus != 0
            if style == .text, isWanted { state.show(state.summary.render(summary)) }
            return failure
        }
        if let failure { throw failure }
    }

    /// - Returns: the earlier failure, else its own.
    private func writeJSON(_ summary: RunSummary, after earlier: ReportingError?) -> ReportingError?
    {
        if let earlier, reportsToStandardOutput { return earlier }
        let file = OutputFile(borrowing: configuration.standardOutput, name: "standard output")
        do {
            try file.write(JSONObject(summary).bytes + [UInt8(ascii: "\n")])
            return earlier
        } catch {
            return earlier ?? error
        }
    }

    /// `prefetch: m.txt:12: URL: downloaded: jpeg 640x427, 79.3 KiB received, 68.5 KiB stored`.
    private static func line(_ result: EntryResult) -> String {
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

extension RunReporter.State {
    /// Writes a whole line above the progress line, in one call so that nothing comes between.
    fileprivate mutating func show(line: String) {
        let clear = shownProgress.isEmpty ? "" : ProgressLine.clearText
        show("\(clear)\(line)\n\(shownProgress)")
    }

    fileprivate mutating func clearProgress() {
        guard !shownProgress.isEmpty else { return }
        shownProgress = ""
        show(ProgressLine.clearText)
    }

    fileprivate mutating func show(_ text: String) {
        guard diagnosticsError == nil else { return }
        do {
            try diagnostics.write(Array(text.utf8))
        } catch {
            diagnosticsError = error
        }
    }
}
