import Manifests
import Pipeline
import PrefetchModel
import Reporting

/// The groups of the flags of `run`. Other commands share some of them.
///
/// Defaults come from the run's rules in `RunConfiguration`. A flag that isn't part of them has
/// its default at its row.
enum RunFlags {
    static let defaults = RunConfiguration(
        userAgent: "prefetch/\(Prefetch.version)", manifests: [], codecWorkers: 1)

    /// The headings of `run --help` with their flags, in its order.
    static let sections: [(heading: FlagHeading, groups: [any FlagRows.Type])] = [
        (.input, [ShardFlags.self, InputFlags.self]),
        (.order, [OrderFlags.self]),
        (.hosts, [HostFlags.self]),
        (.limits, [TransferLimitFlags.self, ImageLimitFlags.self, RunLimitFlags.self]),
        (.filters, [FilterFlags.self]),
        (.requests, [RequestFlags.self]),
        (.responses, [ResponseFlags.self]),
        (.freshness, [FreshnessFlags.self]),
        (.encoding, [EncodingFlags.self]),
        (
            .output,
            [
                CacheFlags.self, ConfigurationFlags.self, DiskFlags.self, SinkFlags.self,
                ShowingFlags.self,
            ]
        ),
        (.result, [ResultFlags.self]),
    ]

    static func rows(_ heading: FlagHeading) -> [FlagRow] {
        sections.first { $0.heading == heading }?.groups.flatMap { $0.allFlags }.map(\.row) ?? []
    }

    /// Every row, in the order of `run --help`.
    static let all = sections.flatMap { $0.groups.flatMap { $0.allFlags } }.map(\.row)

    static let perHost = sections.flatMap { $0.groups.flatMap { $0.allFlags } }
        .filter(\.row.isPerHost)

    /// The sets of flags of `run` that set the same in several ways.
    static let spellings = spellings(in: all)

    /// The same for some flags: making all of them takes time.
    static func spellings(in rows: [FlagRow]) -> [Set<String>] {
        rows.filter { !$0.alternatives.isEmpty }.map { Set($0.alternatives).union([$0.name]) }
    }

    /// The sets of flags that cannot be combined, though they set different things. As for
    /// spellings, a higher layer's replaces a lower one's; the table of a host keeps its own.
    static let conflicts: [Set<String>] = {
        let (addresses, freshness) = (AddressFlags.flags, FreshnessFlags.flags)
        let (offline, quiet) = (freshness.offline.row, ShowingFlags.flags.quiet.row)
        let pairs: [(FlagRow, FlagRow)] = [
            (RouteFlags.flags.insecure.row, RouteFlags.flags.authorityFile.row),
            (addresses.allowsLinkLocal.row, addresses.deniesPrivate.row),
            (freshness.lifetime.row, freshness.minimumLifetime.row),
            (freshness.lifetime.row, freshness.maximumLifetime.row),
            (offline, freshness.refresh.row), (offline, ResponseFlags.flags.storesNothing.row),
            (offline, ResponseFlags.flags.method.row), (quiet, ShowingFlags.flags.verbose.row),
            (SinkFlags.flags.sink.row, ResponseFlags.flags.storesNothing.row),
        ]
        return pairs.map { [$0.name, $1.name] }
    }()

    /// A flag, and the flags that set the same in another way.
    static func spellings(of name: String) -> Set<String> {
        spellings.first { $0.contains(name) } ?? [name]
    }
}

/// A heading of `run --help`.
enum FlagHeading: String {
    case input = "Input"
    case order = "Order"
    case hosts = "Concurrency and hosts"
    case limits = "Limits"
    case filters = "Filters"
    case requests = "Requests"
    case responses = "Responses"
    case freshness = "Freshness"
    case encoding = "Encoding"
    case output = "Output"
    case result = "Result"
}

/// Prints ``RunFlags`` as JSON Lines, next to the parser's `--experimental-dump-help`.
///
/// Tests compare both. Not documented for users.
enum FlagList {
    static let flag = "--experimental-dump-flags"

    static func write() throws {
        var lines = LineWriter.standardOutput()
        for section in RunFlags.sections {
            for row in RunFlags.rows(section.heading) {
                try lines.write(JSONObject(row, under: section.heading))
            }
        }
        try lines.finish()
    }
}

extension JSONObject {
    fileprivate init(_ row: FlagRow, under heading: FlagHeading) {
        self.init()
        add("name", row.name)
        add("short", row.short.map { String($0) })
        add("group", heading.rawValue)
        add("value", row.value)
        add("default", row.defaultText)
        add("help", row.help)
        add("configurable", row.isConfigurable)
        add("in_projects", "\(row.projectRule)")
        add("in_hosts", row.isPerHost)
        add("repeatable", row.isRepeatable)
        add("choices", row.choices)
        add("environment", row.environment.joined(separator: " "))
    }
}

/// The target of all flags: the run's configuration, and values that several flags make together.
struct RunSettings: Sendable {
    var run: RunConfiguration
    /// Files of `--cert` and `--key`.
    var certificate: String?
    var certificateKey: String?
    var encoding = EncodingSettings()

    static let defaults = RunSettings(RunFlags.defaults)

    init(_ run: RunConfiguration) {
        self.run = run
    }

    init(manifests: [String] = []) {
        run = RunConfiguration(
            userAgent: "", manifests: manifests, codecWorkers: AvailableProcessors.count)
    }

    /// Takes the client certificate of the files.
    mutating func takeCertificate() throws {
        guard let certificate else { return }
        run.requests.clientCertificate = try RequestFiles.certificate(
            certificate, key: certificateKey)
    }
}

/// The entry fields that the table of a host sets.
struct HostFields: Sendable {
    var defaults = HostDefaults()
    /// The filter that they name.
    var bodyFilter: BodyFilter?
}
