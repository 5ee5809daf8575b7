import ArgumentParser
import CacheStorage
import Glibc
import Manifests
import Pipeline
import PrefetchModel
import Reporting
import URLParsing

extension StartOrder: ExpressibleByArgument {}
/// Said here what the parser would find out for itself, but by a search through every type of the program, which each `get`
/// would wait for.
extension ManifestFormat: ExpressibleByArgument {
    package static var allValueStrings: [String] { allCases.map { $0.rawValue } }
    package static var allValueDescriptions: [String: String] { [:] }
    package var defaultValueDescription: String { rawValue }
}
extension RunReporter.SummaryStyle: ExpressibleByArgument {}
extension RefreshMode: ExpressibleByArgument {}
extension FileCheck: ExpressibleByArgument {}

/// Flags of `run` about its manifests.
struct InputOptions: ParsableArguments {
    @Option(
        help: """
            Format of the manifests; auto refuses what looks like something else (JSON, XML, a table, \
            an image).
            """)
    var format: ManifestFormat = .auto

    @Option(
        name: .customLong("base-url"),
        help: ArgumentHelp("Base URL of relative entries.", valueName: "url"))
    var baseURL: String?

    func validate() throws {
        guard let baseURL else { return }
        do throws(URLParsingError) {
            _ = try URLParser(baseURL: baseURL)
        } catch {
            switch error {
            case .invalid:
                throw ValidationError(
                    "--base-url takes an absolute http or https URL, like https://example.com/a/")
            case .missingLibrary:
                // No wrong usage. The reader of the list meets it again, and says so.
                break
            }
        }
    }

    /// For a run the variants that it makes, which the entries are checked against.
    func manifestOptions(variants: VariantSet? = nil) -> ManifestOptions {
        ManifestOptions(format: format, baseURL: baseURL, variants: variants)
    }
}

/// Flags of `run` about what starts when.
struct OrderOptions: ParsableArguments {
    @Option(
        help: "Which entries of a priority start first: those read first (fifo) or last (lifo).")
    var order: StartOrder = .fifo

    @Option(
        name: .customLong("queue-capacity"),
        help: ArgumentHelp(
            "Entries that are queued in memory; the others wait in a temporary file.",
            valueName: "n"))
    var queueCapacity = 10_000

    func validate() throws {
        guard queueCapacity >= 1 else {
            throw ValidationError("--queue-capacity must be at least 1")
        }
    }

    func apply(to configuration: inout RunConfiguration) {
        configuration.queue.order = order
        configuration.queue.capacity = queueCapacity
    }
}

/// Flags of `run` about how much an entry may take: time, hops, and what its image may.
struct LimitOptions: ParsableArguments {
    @Option(
        name: .customLong("connect-timeout"),
        help: ArgumentHelp(
            "Time limit for resolving, connecting and the TLS handshake.", valueName: "duration"))
    var connectTimeout = DurationArgument(.seconds(10))

    @Option(
        name: .customLong("stall-timeout"),
        help: ArgumentHelp("Longest time without receiving a byte.", valueName: "duration"))
    var stallTimeout = DurationArgument(.seconds(15))

    @Option(
        help: ArgumentHelp(
            "Time limit per transfer; time in the queue does not count.", valueName: "duration"))
    var timeout = DurationArgument(.seconds(300))

    @OptionGroup var images: ImageLimitOptions

    @Option(
        name: .customLong("max-redirects"),
        help: ArgumentHelp("Most redirects per entry.", valueName: "n"))
    var maximumRedirects = 10

    func validate() throws {
        let durations = [
            ("--connect-timeout", connectTimeout), ("--stall-timeout", stallTimeout),
            ("--timeout", timeout),
        ]
        for (name, value) in durations where value.duration <= .zero {
            throw ValidationError("\(name) must be more than 0")
        }
        guard maximumRedirects >= 0 else {
            throw ValidationError("--max-redirects must be at least 0")
        }
    }

    func apply(to configuration: inout RunConfiguration) {
        configuration.limits.connectTimeout = connectTimeout.duration
        configuration.limits.stallTimeout = stallTimeout.duration
        configuration.limits.totalTimeout = timeout.duration
        images.apply(to: &configuration)
        configuration.limits.maximumRedirects = maximumRedirects
    }
}

/// Flags of `run` and `put` about how much an image may take: bytes, pixels, processor time, memory.
struct ImageLimitOptions: ParsableArguments {
    @Option(
        name: .customLong("max-filesize"),
        help: ArgumentHelp("Largest response body.", valueName: "size"))
    var maximumBodySize = SizeArgument(.mebibytes(64))

    @Option(
        name: .customLong("max-pixels"),
        help: ArgumentHelp("Largest image, as width × height.", valueName: "n"))
    var maximumPixels = 100_000_000

    @Option(
        name: .customLong("max-decode-time"),
        help: ArgumentHelp(
            "Most processor time per image, decoding and encoding together.",
            valueName: "duration"))
    var maximumDecodeTime = DurationArgument(.seconds(30))

    @Option(
        help: ArgumentHelp(
            "Memory for response bodies (a quarter) and pixels (the rest); at least 16MiB.",
            valueName: "size"))
    var memory = SizeArgument(.mebibytes(256))

    func validate() throws {
        let positive = [
            ("--max-pixels", maximumPixels), ("--max-filesize", maximumBodySize.size.bytes),
        ]
        for (name, value) in positive where value < 1 {
            throw ValidationError("\(name) must be at least 1")
        }
        guard memory.size >= .mebibytes(16) else {
            throw ValidationError("--memory must be at least 16MiB")
        }
        guard maximumDecodeTime.duration > .zero else {
            throw ValidationError("--max-decode-time must be more than 0")
        }
    }

    func apply(to configuration: inout RunConfiguration) {
        configuration.limits.maximumBodySize = maximumBodySize.size
        configuration.images.maximumPixels = maximumPixels
        configuration.images.maximumDecodeTime = maximumDecodeTime.duration
        configuration.images.memory = memory.size
    }
}

/// Flags of `run` about what is asked for again.
struct FreshnessOptions: ParsableArguments {
    @Option(
        help: """
            Which cached images to request again: stale ones, all of them (with conditions), all \
            without conditions (force), or none, however old.
            """)
    var refresh: RefreshMode = .stale

    @Option(
        help: ArgumentHelp(
            """
            Treat images that expire within this time as stale, so that none expires before the \
            next run.
            """, valueName: "duration"))
    var ahead = DurationArgument(.zero)

    @Option(
        name: .customLong("ttl"),
        help: ArgumentHelp(
            "How long images are fresh, whatever the origin says, even no-store.",
            valueName: "duration"))
    var lifetime: DurationArgument?

    @Option(
        name: .customLong("min-ttl"),
        help: ArgumentHelp(
            "Least time that images are fresh, whatever the origin says, except for no-cache.",
            valueName: "duration"))
    var minimumLifetime: DurationArgument?

    @Option(
        name: .customLong("max-ttl"),
        help: ArgumentHelp(
            "Most time that images are fresh, whatever the origin says.",
            valueName: "duration"))
    var maximumLifetime: DurationArgument?

    @Option(
        name: .customLong("default-ttl"),
        help: ArgumentHelp(
            "How long images are fresh if the origin does not say.", valueName: "duration"))
    var defaultLifetime = DurationArgument(.seconds(7 * 86400))

    @Option(
        name: .customLong("check-files"),
        help: """
            How to check that cached files exist: list the folders that have changed (auto), \
            compare the size of every file (always), or take the database's word for it (never). \
            Missing files are downloaded again.
            """)
    var fileCheck: FileCheck = .auto

    @Flag(help: "Make no requests; entries that are not warm are excluded.")
    var offline = false

    @Flag(
        name: .customLong("retry-failed"),
        help: "Also request blacklisted URLs, and hosts that earlier runs gave up on.")
    var retriesFailed = false

    func validate() throws {
        if let minimum = minimumLifetime?.duration, let maximum = maximumLifetime?.duration,
            minimum > maximum
        {
            throw ValidationError("--min-ttl must not be more than --max-ttl")
        }
        if lifetime != nil, minimumLifetime != nil || maximumLifetime != nil {
            throw ValidationError("--ttl cannot be combined with --min-ttl or --max-ttl")
        }
        if offline, refresh == .all || refresh == .force {
            throw ValidationError("--offline cannot be combined with --refresh \(refresh.rawValue)")
        }
    }

    func apply(to configuration: inout RunConfiguration) {
        configuration.lifetimes.forced = lifetime?.duration
        configuration.lifetimes.minimum = minimumLifetime?.duration
        configuration.lifetimes.maximum = maximumLifetime?.duration
        configuration.lifetimes.fallback = defaultLifetime.duration
        configuration.lifetimes.ahead = ahead.duration
        configuration.lifetimes.refresh = refresh
        configuration.lifetimes.isOffline = offline
        configuration.retriesFailed = retriesFailed
    }
}

/// Flags of `run` about what it tells.
struct ShowingOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Write one JSON object per entry to this file (JSON Lines); - is standard output.",
            valueName: "file"))
    var report: String?

    @Flag(
        name: .customLong("absolute-paths"),
        help: "Write absolute paths into the report, not paths relative to the cache directory.")
    var reportsAbsolutePaths = false

    @Option(help: "Summary: text on standard error, json on standard output, or none.")
    var summary: RunReporter.SummaryStyle = .text

    @Option(
        help: """
            Progress: auto draws a line on a terminal, and prints one every 30 s after the first \
            minute if CI=true; always prints them wherever there is no terminal.
            """)
    var progress: Showing = .auto

    @Option(help: "Colours; auto uses them on a terminal unless NO_COLOR is set.")
    var color: Showing = .auto

    @Flag(name: [.customShort("q"), .long], help: "Print nothing if the exit status is 0.")
    var quiet = false

    @Flag(name: [.customShort("v"), .long], help: "Print what happened to every entry.")
    var verbose = false

    func validate() throws {
        if quiet, verbose { throw ValidationError("-q and -v cannot be combined") }
        if reportsAbsolutePaths, report == nil {
            throw ValidationError("--absolute-paths is for --report")
        }
    }

    /// - Throws: when the report cannot be opened, or would overwrite one of the manifests.
    func reporter(manifests: [String], cacheDirectory: String) throws -> RunReporter {
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
                    try ReportWriter(
                        path: path, pathsIn: reportsAbsolutePaths ? cacheDirectory : nil)
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
