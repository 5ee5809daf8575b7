import ArgumentParser
import Glibc
import Reporting

/// Flags of `run` about its report, summary, progress and messages.
struct ShowingOptions: ParsableArguments {
    @Option(RunFlags.report) var report: String?
    @Flag(RunFlags.absolutePaths) var reportsAbsolutePaths: Bool
    @Option(RunFlags.prometheus) var metrics: String?
    @Option(RunFlags.onChange) var changeCommand: String?
    @Option(RunFlags.summary) var summary: RunReporter.SummaryStyle
    @Option(RunFlags.progress) var progress: Showing
    @Option(RunFlags.color) var color: Showing
    @Flag(RunFlags.quiet) var quiet: Bool
    @Flag(RunFlags.verbose) var verbose: Bool

    func validate() throws {
        if quiet, verbose { throw ValidationError("-q and -v cannot be combined") }
        if metrics?.isEmpty == true || metrics == "-" {
            throw ValidationError("--prometheus takes a file, and not -")
        }
        if reportsAbsolutePaths, report == nil {
            throw ValidationError("--absolute-paths needs --report")
        }
    }

    /// - Throws: ``CommandFailure`` if the file of metrics cannot be replaced: its folder cannot be
    ///   written, or it is not a regular file.
    func checkMetrics() throws {
        guard let metrics else { return }
        do throws(ReportingError) {
            try OutputFile.checkReplacing(metrics)
        } catch {
            throw CommandFailure.unusable(
                error.description, hint: "--prometheus names a file in an existing folder")
        }
    }

    /// - Throws: ``CommandFailure`` if the report can't be opened.
    func reporter(
        cacheDirectory: String, publishing: RunReporter.Publishing? = nil
    ) throws -> RunReporter {
        var configuration = RunReporter.Configuration()
        configuration.verbosity = quiet ? .quiet : verbose ? .verbose : .normal
        configuration.progress = shownProgress
        let isColourWanted =
            StandardError.isCapableTerminal && (getenv("NO_COLOR").map { $0.pointee == 0 } ?? true)
        configuration.publishing = publishing
        configuration.usesColor = color.isOn(automatically: isColourWanted)
        do throws(ReportingError) {
            return RunReporter(
                configuration,
                report: try report.map { path throws(ReportingError) in
                    try ReportWriter(
                        path: path, pathsIn: reportsAbsolutePaths ? cacheDirectory : nil)
                })
        } catch {
            throw CommandFailure.unusable(error.description)
        }
    }

    /// One redrawn line on a capable terminal, separate lines elsewhere: on request, and in CI,
    /// which may take silence for a hang.
    private var shownProgress: RunReporter.Progress {
        switch progress {
        case .never: .none
        case _ where StandardError.isCapableTerminal: .line { StandardError.width }
        case .always: .lines(from: .zero)
        case .auto:
            getenv("CI").map { String(cString: $0) } == "true" ? .lines(from: .seconds(60)) : .none
        }
    }
}
