import ArgumentParser
import Glibc
import PrefetchModel
import Reporting

/// Flags of `run` about its report, summary, progress and messages.
struct ShowingOptions: ParsableArguments {
    @Option(RunFlags.report) var report: String?
    @Flag(RunFlags.absolutePaths) var reportsAbsolutePaths: Bool
    @Option(RunFlags.prometheus) var metrics: String?
    @Option(RunFlags.junit) var junit: String?
    @Option(RunFlags.html) var page: String?
    @Option(RunFlags.ci) var ci: CIChoice
    @Option(RunFlags.onChange) var changeCommand: String?
    @Option(RunFlags.summary) var summary: RunReporter.SummaryStyle
    @Option(RunFlags.progress) var progress: Showing
    @Option(RunFlags.color) var color: Showing
    @Flag(RunFlags.quiet) var quiet: Bool
    @Flag(RunFlags.verbose) var verbose: Bool

    func validate() throws {
        if quiet, verbose { throw ValidationError("-q and -v cannot be combined") }
        for (flag, path) in replacedFiles where path.isEmpty || path == "-" {
            throw ValidationError("\(flag) takes a file, and not -")
        }
        if reportsAbsolutePaths, report == nil {
            throw ValidationError("--absolute-paths needs --report")
        }
    }

    private var replacedFiles: [(flag: String, path: String)] {
        [("--prometheus", metrics), ("--junit", junit), ("--html", page)].compactMap { flag, path in
            path.map { (flag, $0) }
        }
    }

    /// - Throws: `UserError` if a file of metrics, test cases or a page cannot be
    ///   replaced: its folder cannot be written, or it is not a regular file.
    func checkReplacedFiles() throws {
        for (flag, path) in replacedFiles {
            do throws(ReportingError) {
                try OutputFile.checkReplacing(path)
            } catch {
                throw UserError(
                    error.description,
                    hint: error.hint ?? "\(flag) names a file in an existing folder")
            }
        }
    }

    /// - Throws: `UserError` if the report or the file of test cases can't be opened.
    func reporter(
        cacheDirectory: String, lists: [String], ignoresKnown: Bool,
        showingReplaced: (@Sendable (StoredImage) -> Void)? = nil,
        publishing: RunReporter.Publishing? = nil
    ) throws -> RunReporter {
        var configuration = RunReporter.Configuration()
        configuration.verbosity = quiet ? .quiet : verbose ? .verbose : .normal
        configuration.progress = shownProgress
        let isColourWanted =
            StandardError.isCapableTerminal && (getenv("NO_COLOR").map { $0.pointee == 0 } ?? true)
        configuration.publishing = publishing
        configuration.keepsRecord = page != nil
        configuration.showingReplaced = showingReplaced
        if ci == .auto, environment("GITHUB_ACTIONS") == "true" {
            configuration.actions = GitHubActions(
                summaryPath: environment("GITHUB_STEP_SUMMARY"),
                outputPath: environment("GITHUB_OUTPUT"), ignoresKnown: quiet)
        }
        configuration.usesColor = color.isOn(automatically: isColourWanted)
        do throws(ReportingError) {
            return RunReporter(
                configuration,
                report: try report.map { path throws(ReportingError) in
                    try ReportWriter(
                        path: path, pathsIn: reportsAbsolutePaths ? cacheDirectory : nil)
                },
                junit: try junit.map { path throws(ReportingError) in
                    try JUnitWriter(path: path, lists: lists, ignoresKnown: ignoresKnown)
                })
        } catch {
            throw UserError(error.description, hint: error.hint)
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
