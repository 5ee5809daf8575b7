import ArgumentParser
import Glibc
import Manifests
import Pipeline
import PrefetchModel
import Reporting
import URLParsing

extension StartOrder: ExpressibleByArgument {}
extension ManifestFormat: ExpressibleByArgument {}
extension RunReporter.SummaryStyle: ExpressibleByArgument {}
extension RefreshMode: ExpressibleByArgument {}

/// Flags of `run` about reading, order, transfers and budgets.
struct LimitOptions: ParsableArguments {
    @Option(help: "Order of starts inside a priority: the first line first, or the last one.")
    var order: StartOrder = .fifo

    @Option(
        name: .customLong("queue-capacity"),
        help: ArgumentHelp(
            "Entries that wait in memory; the others wait in a temporary file.",
            valueName: "n"))
    var queueCapacity = 10_000

    @Option(
        name: [.customShort("j"), .long],
        help: ArgumentHelp("Transfers at once.", valueName: "n"))
    var jobs = 32

    @Option(help: "How manifests are written.")
    var format: ManifestFormat = .auto

    @Option(
        name: .customLong("base-url"),
        help: ArgumentHelp("Relative entries resolve against it.", valueName: "url"))
    var baseURL: String?

    @Option(
        name: .customLong("connect-timeout"),
        help: ArgumentHelp("For resolving, connecting and TLS.", valueName: "duration"))
    var connectTimeout = DurationArgument(.seconds(10))

    @Option(
        name: .customLong("stall-timeout"),
        help: ArgumentHelp(
            "The longest time without a byte.", valueName: "duration"))
    var stallTimeout = DurationArgument(.seconds(15))

    @Option(help: ArgumentHelp("For one whole transfer.", valueName: "duration"))
    var timeout = DurationArgument(.seconds(300))

    @Option(
        name: .customLong("max-filesize"),
        help: ArgumentHelp("The largest body.", valueName: "size"))
    var maximumBodySize = SizeArgument(.mebibytes(64))

    @Option(
        name: .customLong("max-pixels"),
        help: ArgumentHelp("The largest width × height.", valueName: "n"))
    var maximumPixels = 100_000_000

    @Option(
        name: .customLong("max-decode-time"),
        help: ArgumentHelp(
            "The most processor time for decoding and encoding one image.", valueName: "duration"))
    var maximumDecodeTime = DurationArgument(.seconds(30))

    @Option(
        help: ArgumentHelp(
            "The budget for bodies and pixels over all stages.", valueName: "size"))
    var memory = SizeArgument(.mebibytes(256))

    func validate() throws {
        let positive = [
            ("--queue-capacity", queueCapacity), ("--jobs", jobs),
            ("--max-pixels", maximumPixels), ("--max-filesize", maximumBodySize.size.bytes),
        ]
        for (name, value) in positive where value < 1 {
            throw ValidationError("\(name) is at least 1")
        }
        guard jobs <= 10_000 else { throw ValidationError("--jobs is at most 10000") }
        guard memory.size >= .mebibytes(16) else {
            throw ValidationError("--memory is at least 16MiB")
        }
        let durations = [
            ("--connect-timeout", connectTimeout), ("--stall-timeout", stallTimeout),
            ("--timeout", timeout), ("--max-decode-time", maximumDecodeTime),
        ]
        for (name, value) in durations where value.duration <= .zero {
            throw ValidationError("\(name) is more than 0")
        }
        if let baseURL {
            do throws(EntryBatch.Problem) {
                _ = try URLParser(baseURL: baseURL)
            } catch {
                throw ValidationError(
                    "--base-url takes an absolute http or https URL, like https://example.com/a/")
            }
        }
    }

    func apply(to configuration: inout RunConfiguration) {
        configuration.order = order
        configuration.queueCapacity = queueCapacity
        configuration.jobs = jobs
        configuration.connectTimeout = connectTimeout.duration
        configuration.stallTimeout = stallTimeout.duration
        configuration.totalTimeout = timeout.duration
        configuration.maximumBodySize = maximumBodySize.size
        configuration.maximumPixels = maximumPixels
        configuration.maximumDecodeTime = maximumDecodeTime.duration
        configuration.memory = memory.size
    }
}

/// Flags of `run` about what is asked for again.
struct FreshnessOptions: ParsableArguments {
    @Option(
        help: """
            Which cached images to ask for again: those that are stale, all (with conditions), all \
            without conditions (force), or none, however old.
            """)
    var refresh: RefreshMode = .stale

    @Option(
        help: ArgumentHelp(
            """
            What expires within this time counts as stale, so that nothing expires before the next \
            run.
            """, valueName: "duration"))
    var ahead = DurationArgument(.zero)

    @Option(
        name: .customLong("ttl"),
        help: ArgumentHelp(
            "How long an image is fresh, whatever its origin says, even no-store.",
            valueName: "duration"))
    var lifetime: DurationArgument?

    @Option(
        name: .customLong("min-ttl"),
        help: ArgumentHelp(
            "The least time that an image is fresh, whatever its origin says.",
            valueName: "duration"))
    var minimumLifetime: DurationArgument?

    @Option(
        name: .customLong("max-ttl"),
        help: ArgumentHelp(
            "The most time that an image is fresh, whatever its origin says.",
            valueName: "duration"))
    var maximumLifetime: DurationArgument?

    @Option(
        name: .customLong("default-ttl"),
        help: ArgumentHelp(
            "How long an image is fresh when its origin does not say.", valueName: "duration"))
    var defaultLifetime = DurationArgument(.seconds(7 * 86400))

    @Flag(help: "Use no network: say what is warm, and leave the rest out.")
    var offline = false

    @Flag(name: .customLong("retry-failed"), help: "Ask for blacklisted URLs, too.")
    var retriesFailed = false

    func validate() throws {
        if let minimum = minimumLifetime?.duration, let maximum = maximumLifetime?.duration,
            minimum > maximum
        {
            throw ValidationError("--min-ttl is at most --max-ttl")
        }
        if lifetime != nil, minimumLifetime != nil || maximumLifetime != nil {
            throw ValidationError("--ttl leaves nothing to --min-ttl and --max-ttl")
        }
        if offline, refresh == .all || refresh == .force {
            throw ValidationError("--offline and --refresh \(refresh.rawValue) exclude each other")
        }
    }

    func apply(to configuration: inout RunConfiguration) {
        configuration.lifetime = lifetime?.duration
        configuration.minimumLifetime = minimumLifetime?.duration
        configuration.maximumLifetime = maximumLifetime?.duration
        configuration.defaultLifetime = defaultLifetime.duration
        configuration.ahead = ahead.duration
        configuration.refresh = refresh
        configuration.isOffline = offline
        configuration.retriesFailed = retriesFailed
    }
}

/// Flags of `run` about what it tells.
struct ShowingOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Write what happened to every entry as JSON Lines; `-` is standard output.",
            valueName: "file"))
    var report: String?

    @Option(help: "The summary: text on standard error, json on standard output, or none.")
    var summary: RunReporter.SummaryStyle = .text

    @Option(
        help: """
            Progress: auto shows a line on a terminal, and a line each 30 s after the first minute \
            where CI is true; always shows lines elsewhere, too.
            """)
    var progress: Showing = .auto

    @Option(help: "Colours; auto uses them on a terminal unless NO_COLOR is set.")
    var color: Showing = .auto

    @Flag(name: [.customShort("q"), .long], help: "Say nothing unless something is wrong.")
    var quiet = false

    @Flag(name: [.customShort("v"), .long], help: "Say what happened to every entry.")
    var verbose = false

    func validate() throws {
        if quiet, verbose { throw ValidationError("-q and -v exclude each other") }
    }

    /// - Throws: when the report cannot be opened, or would overwrite one of the manifests.
    func reporter(manifests: [String]) throws -> RunReporter {
        if let report, let manifest = manifests.first(where: { isSameFile($0, report) }) {
            throw CommandFailure(
                exitStatus: EX_USAGE, message: "\(report): --report would overwrite this manifest",
                hint: "\(manifest) is being read; name another file")
        }
        var configuration = RunReporter.Configuration()
        configuration.verbosity = quiet ? .quiet : verbose ? .verbose : .normal
        configuration.progress = shownProgress
        let isColourWanted =
            StandardError.isCapableTerminal && (getenv("NO_COLOR").map { $0.pointee == 0 } ?? true)
        configuration.usesColor = color.isOn(automatically: isColourWanted)
        do throws(ReportingError) {
            return RunReporter(
                configuration,
                report: try report.map { path throws(ReportingError) in
                    try ReportWriter(path: path)
                })
        } catch {
            throw CommandFailure.unusable(error.description)
        }
    }

    /// A line that is drawn again on a terminal that can do that, lines of their own elsewhere: when
    /// they are asked for, and in continuous integration, which takes silence for a hang.
    private var shownProgress: RunReporter.Progress {
        switch progress {
        case .never: .none
        case _ where StandardError.isCapableTerminal: .line { StandardError.width }
        case .always: .lines(from: .zero)
        case .auto:
            getenv("CI").map { String(cString: $0) } == "true" ? .lines(from: .seconds(60)) : .none
        }
    }

    private func isSameFile(_ first: String, _ second: String) -> Bool {
        guard first != "-", second != "-" else { return false }
        var statuses = (stat(), stat())
        guard stat(first, &statuses.0) == 0, stat(second, &statuses.1) == 0 else { return false }
        // Two names of a device or a pipe are no danger to each other.
        return statuses.0.st_mode & S_IFMT == S_IFREG && statuses.0.st_dev == statuses.1.st_dev
            && statuses.0.st_ino == statuses.1.st_ino
    }
}
