import ArgumentParser
import ConfigurationFiles
import FileOutput
import Pipeline
import PrefetchModel
import Reporting

/// Flags of `run` about its report, summary, progress and messages.
struct ShowingFlags: FlagRows {
    static let flags = FlagTable(ShowingFlags())

    let report = RunFlag<String?>(
        "report", value: "file",
        help: "Write one JSON object per entry to this file (JSON Lines); - is standard output.",
        brief: "one JSON object per entry; - is standard output", inProjects: .refused)

    let reportsAbsolutePaths = RunFlag<Bool>(
        "absolute-paths",
        help: "Write absolute paths to the report, not paths relative to the cache directory.",
        isConfigurable: false)

    let metrics = RunFlag<String?>(
        "prometheus", value: "file",
        help: """
            Replace this file with the run's metrics, for node_exporter's collector of text files; \
            its name should end in .prom.
            """, inProjects: .refused,
        check: .replacedFile)

    let junit = RunFlag<String?>(
        "junit", value: "file",
        help: "Replace this file with the run's results as JUnit test cases, for CI systems.",
        inProjects: .refused, check: .replacedFile)

    let page = RunFlag<String?>(
        "html", value: "file",
        help: """
            Replace this file with a page about the run: outcomes, throughput, hosts, failures and \
            thumbnails, in one file to mail. `prefetch report` makes one of a report.
            """, inProjects: .refused,
        check: .replacedFile)

    let ci = RunFlag<CIChoice>(
        "ci", value: "what", default: .auto,
        help: """
            Under GITHUB_ACTIONS=true, auto writes annotations, a step summary and the outputs \
            changed and failed; none does not.
            """)

    let changeCommand = RunFlag<String?>(
        "on-change", value: "command",
        help: """
            Run this shell command after a run that stored something new, before the cache is \
            released; $PREFETCH_CHANGED has the number of new files. If it fails, exit status 0 becomes 1.
            """, inProjects: .refused)

    let summary = RunFlag<RunReporter.SummaryStyle>(
        "summary", value: "format", default: .text,
        help: "Summary: text on standard error, json on standard output, or none.",
        brief: "text, json or none")

    let progress = RunFlag<Showing>(
        "progress", value: "when", default: .auto,
        help: """
            Progress: auto draws a line on a terminal, and prints one every 30 s after the first \
            minute if CI=true; always prints lines wherever there is no terminal.
            """)

    let color = RunFlag<Showing>(
        "color", value: "when", default: .auto,
        help: "Colours; auto uses them on a terminal unless NO_COLOR is set.")

    let quiet = RunFlag<Bool>(
        "quiet", short: "q",
        help: "Print nothing if the exit status is 0, except the end of an outage.",
        brief: "print nothing if the exit status is 0")

    let verbose = RunFlag<Bool>(
        "verbose", short: "v", help: "Print the result of every entry.",
        brief: "print the result of every entry", isConfigurable: false)

    static func combined(_ flags: Flags<ShowingFlags>) throws {
        if flags.quiet, flags.verbose { throw ValidationError("-q and -v cannot be combined") }
        if flags.reportsAbsolutePaths, flags.report == nil {
            throw ValidationError("--absolute-paths needs --report")
        }
    }
}

extension Flags<ShowingFlags> {
    /// - Throws: `UserError` if a file of metrics, test cases or a page cannot be
    ///   replaced: its folder cannot be written, or it is not a regular file.
    func checkReplacedFiles() throws {
        for file in WrittenFiles.uses([
            ("--prometheus", self.metrics), ("--junit", self.junit), ("--html", self.page),
        ]) {
            let hint = "\(file.name) names a file in an existing folder"
            try reporting(as: { $0.hint = $0.hint ?? hint }) {
                try FilePlace(file.path).checkReplacing()
            }
        }
    }

    /// One redrawn line on a capable terminal, separate lines elsewhere: on request, and in CI,
    /// which may take silence for a hang.
    var shownProgress: RunReporter.ProgressStyle {
        switch self.progress {
        case .never: .none
        case _ where StandardError.isCapableTerminal: .line { StandardError.width }
        case .always: .lines(from: .zero)
        case .auto: environment("CI") == "true" ? .lines(from: .seconds(60)) : .none
        }
    }
}

/// Flags of `run` about its exit status.
struct ResultFlags: FlagRows {
    static let flags = FlagTable(ResultFlags())

    let isDryRun = RunFlag<Bool>(
        "dry-run", short: "n",
        help: "Show what the run would do, like `prefetch plan`; --summary json prints JSON.",
        isConfigurable: false)

    let countedFailures = RunFlag<CountedFailures>(
        "fail-on", value: "which", sets: \.run.exit.counted,
        help: """
            Which failures make the exit status 1. With new, blacklisted URLs do not count, and \
            neither do entries that fail again for the same reason.
            """, brief: "failures that make the exit status 1")

    let tolerance = RunFlag<FailureTolerance>(
        "max-failures", value: "n|p%", sets: \.run.exit.tolerance,
        help: """
            How many of the failures that --fail-on counts, or what share of all entries, are \
            tolerated with exit status 0.
            """)

    let allowsEmptyLists = RunFlag<Bool>(
        "allow-empty",
        help: """
            Exit with 0 if a list has no entry. Otherwise that is status 1, since the command that \
            writes the list may have failed.
            """
    ) { $0.run.exit.allowsEmptyLists = $1 }

    let lock = RunFlag<LockArgument>(
        "lock", value: "what", default: .fail,
        help: """
            If another process holds the cache: fail (exit 75), skip (exit 0), wait, or wait=DURATION. \
            Waiting commands get it in no fixed order.
            """, brief: "if the cache is in use: fail, skip or wait")
}
