import Buckets
import CacheStorage
import ConfigurationFiles
import Pipeline
import Reporting

// Output, result

extension RunFlags {
    static let cacheDirectory = RunFlag<String?>(
        "cache-dir", .output, value: "dir",
        help: """
            The cache's directory (default: $PREFETCH_CACHE_DIR, else systemd's $CACHE_DIRECTORY, \
            else $XDG_CACHE_HOME/prefetch, else ~/.cache/prefetch).
            """, brief: "where the cache is (default: ~/.cache/prefetch)", inProjects: .refused,
        environment: ["PREFETCH_CACHE_DIR", "CACHE_DIRECTORY"])

    static let configurationFile = RunFlag<String?>(
        "config", .output, value: "file",
        help: """
            Read this configuration file instead of ./prefetch.toml, \
            $XDG_CONFIG_HOME/prefetch/config.toml (else ~/.config/prefetch/config.toml) and \
            /etc/prefetch/config.toml; none reads no file (default: $PREFETCH_CONFIG).
            """, isConfigurable: false, environment: ["PREFETCH_CONFIG"])

    static let profile = RunFlag<String?>(
        "profile", .output, value: "name",
        help: """
            Also use the table [profile.NAME] of the configuration files (default: \
            $PREFETCH_PROFILE).
            """, isConfigurable: false, environment: ["PREFETCH_PROFILE"])

    static let trustsProject = RunFlag<Bool>(
        "trust-project-config", .output,
        help: """
            Let ./prefetch.toml set everything, also files, proxies, credentials and the cache's \
            directory, and belong to another user.
            """, isConfigurable: false)

    static let seedCache = RunFlag<String?>(
        "seed-cache", .output, value: "dir",
        help: """
            Take images that are missing or stale from this cache, without a request, where they are \
            fresh in it with all variants asked for. It is not changed.
            """, inProjects: .refused)

    static let sink = RunFlag<ObjectLocation?>(
        "sink", .output, value: "url",
        help: """
            Copy the cache to this bucket of an S3-compatible service after a complete run, \
            s3://BUCKET/PREFIX: content files that it lacks, the database, and last _DONE.json. \
            AWS_ENDPOINT_URL_S3 and AWS_REGION say where it is. `prefetch pull` reads it.
            """, inProjects: .refused)

    static let sinkCredentials = RunFlag<CredentialChoice>(
        "sink-credentials", .output, value: "from", default: .auto,
        help: """
            The keys for --sink: auto takes AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, else the \
            profile's in ~/.aws; metadata asks the service of the machine or container; none signs \
            nothing.
            """, inProjects: .refused)

    static let fileAttributes = RunFlag<Bool>(
        "file-attributes", .output,
        help: """
            Set the extended attributes user.xdg.origin.url and user.mime_type on content files; \
            on many file systems they take a block per file.
            """)

    static let sync = RunFlag<MetadataWriter.Durability>(
        "sync", .output, value: "how", default: defaults.storing.durability,
        help: """
            What a power cut may lose: the last seconds (normal), nothing that was reported (full), \
            or whole images of this run (off).
            """, inProjects: .refused)

    static let maximumSize = RunFlag<SizeLimitArgument?>(
        "max-size", .output, value: "size",
        help: """
            Keep the content files within this size on disk: evicts images that are not in this \
            run's lists, least recently listed first; if that is not enough, new images fail. The \
            lists are read completely before the first download.
            """, inProjects: .refused)

    static let prune = RunFlag<String?>(
        "prune", .output, value: "rules",
        help: """
            Prune by these rules at the end of the run, at most once a day: any of \
            \(PruneRule.allCases.map(\.example).joined(separator: ",")). See `prefetch prune`.
            """, inProjects: .refused)

    static let allowPartial = RunFlag<Bool>(
        "allow-partial", .output,
        help: """
            Remove what no list names even if a list is not whole: a line cannot be read, a sitemap \
            did not arrive, or a list is empty. Otherwise nothing is removed then.
            """, inProjects: .refused)

    static let snapshot = RunFlag<SnapshotRule>(
        "snapshot", .output, value: "when", default: defaults.storing.snapshots,
        help: """
            Whether a run that changed something copies the database once a day (daily or off). A \
            later run restores from this snapshot if the database is damaged.
            """, inProjects: .refused)

    static let mode = RunFlag<ModeArgument?>(
        "mode", .output, value: "mode",
        help: """
            Permissions of new files, whatever the umask; folders get matching execute bits. \
            `prefetch chmod` changes existing files. The cache remembers the mode (default: the \
            remembered one, else 0600).
            """, inProjects: .refused)

    static let report = RunFlag<String?>(
        "report", .output, value: "file",
        help: "Write one JSON object per entry to this file (JSON Lines); - is standard output.",
        brief: "one JSON object per entry; - is standard output", inProjects: .refused)

    static let prometheus = RunFlag<String?>(
        "prometheus", .output, value: "file",
        help: """
            Replace this file with the run's metrics, for Prometheus' collector of text files; its \
            name should end in .prom.
            """, inProjects: .refused)

    static let junit = RunFlag<String?>(
        "junit", .output, value: "file",
        help: "Replace this file with the run's results as JUnit test cases, for CI systems.",
        inProjects: .refused)

    static let html = RunFlag<String?>(
        "html", .output, value: "file",
        help: """
            Replace this file with a page about the run: outcomes, throughput, hosts, failures and \
            thumbnails, in one file to mail. `prefetch report` makes one of a report.
            """, inProjects: .refused)

    static let ci = RunFlag<CIChoice>(
        "ci", .output, value: "what", default: .auto,
        help: """
            Under GITHUB_ACTIONS=true, auto writes annotations, a step summary and the outputs \
            changed and failed; none does not.
            """)

    static let onChange = RunFlag<String?>(
        "on-change", .output, value: "command",
        help: """
            Run this shell command after a run that stored something new, before the cache is \
            released; $PREFETCH_CHANGED has the number of new files. If it fails, exit status 0 becomes 1.
            """, inProjects: .refused)

    static let absolutePaths = RunFlag<Bool>(
        "absolute-paths", .output,
        help: "Write absolute paths to the report, not paths relative to the cache directory.",
        isConfigurable: false)

    static let summary = RunFlag<RunReporter.SummaryStyle>(
        "summary", .output, value: "format", default: .text,
        help: "Summary: text on standard error, json on standard output, or none.",
        brief: "text, json or none")

    static let progress = RunFlag<Showing>(
        "progress", .output, value: "when", default: .auto,
        help: """
            Progress: auto draws a line on a terminal, and prints one every 30 s after the first \
            minute if CI=true; always prints lines wherever there is no terminal.
            """)

    static let color = RunFlag<Showing>(
        "color", .output, value: "when", default: .auto,
        help: "Colours; auto uses them on a terminal unless NO_COLOR is set.")

    static let quiet = RunFlag<Bool>(
        "quiet", short: "q", .output,
        help: "Print nothing if the exit status is 0, except the end of an outage.",
        brief: "print nothing if the exit status is 0")

    static let verbose = RunFlag<Bool>(
        "verbose", short: "v", .output, help: "Print the result of every entry.",
        brief: "print the result of every entry", isConfigurable: false)

    static let dryRun = RunFlag<Bool>(
        "dry-run", short: "n", .result,
        help: "Show what the run would do, like `prefetch plan`; --summary json prints JSON.",
        isConfigurable: false)

    static let failOn = RunFlag<CountedFailures>(
        "fail-on", .result, value: "which", default: defaults.exit.counted,
        help: """
            Which failures make the exit status 1. With new, blacklisted URLs do not count, and \
            neither do entries that fail again for the same reason.
            """, brief: "failures that make the exit status 1")

    static let maximumFailures = RunFlag<ToleranceArgument>(
        "max-failures", .result, value: "n|p%", default: ToleranceArgument(defaults.exit.tolerance),
        help: """
            How many of the failures that --fail-on counts, or what share of all entries, are \
            tolerated with exit status 0.
            """)

    static let allowEmpty = RunFlag<Bool>(
        "allow-empty", .result,
        help: """
            Exit with 0 if a list has no entry. Otherwise that is status 1, since the command that \
            writes the list may have failed.
            """)

    static let lock = RunFlag<LockArgument>(
        "lock", .result, value: "what", default: .fail,
        help: """
            If another process holds the cache: fail (exit 75), skip (exit 0), wait, or wait=DURATION. \
            Waiting commands get it in no fixed order.
            """, brief: "if the cache is in use: fail, skip or wait")
}
