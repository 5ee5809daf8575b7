import ConfigurationFiles
import Manifests
import Pipeline
import PrefetchModel

// Input, order, concurrency and hosts, limits

extension RunFlags {
    static let list = RunFlag<[String]>(
        repeatable: "list", .input, value: "url",
        help: """
            Also read the list at this URL, or in this file; repeatable. The cache keeps a copy, \
            which is used when the origin fails.
            """, brief: "read the list at this URL", isConfigurable: false, inProjects: .refused)

    static let shard = RunFlag<ShardArgument?>(
        "shard", .input, value: "i/n",
        help: """
            Take only shard I of N, 0 to N-1, for runs on N machines: all URLs of a registrable domain \
            are in one shard. auto is the index of the array job (Kubernetes, Slurm, AWS Batch), auto/N \
            gives N where the engine does not.
            """, isConfigurable: false)

    static let shardPlan = RunFlag<String?>(
        "plan", .input, value: "file",
        help: "Take the shards of this plan, which `prefetch plan --shards N -o FILE` has made.",
        isConfigurable: false)

    static let format = RunFlag<ManifestFormat>(
        "format", .input, value: "format", default: .auto,
        help: """
            Format of the manifests: one URL per line, a table, JSON lines, or a sitemap; auto \
            finds it for each, and refuses web pages, images and other data.
            """, inProjects: .refused)

    static let urlColumn = RunFlag<String?>(
        "url-column", .input, value: "name",
        help: """
            Column of a table, or member of JSON objects, with the URL; by default url, image_url \
            and similar names.
            """, inProjects: .refused)

    static let column = RunFlag<[String]>(
        repeatable: "column", .input, value: "field=name",
        help: """
            Column or member with the values of a field; repeatable. FIELD= alone makes the column \
            of that name an ordinary one.
            """, inProjects: .refused)

    static let noHeader = RunFlag<Bool>(
        "no-header", .input,
        help: "Tables have no row of names; columns are numbers, and the URL's is 1.",
        inProjects: .refused)

    static let sitemapPages = RunFlag<Bool>(
        "sitemap-pages", .input, help: "Sitemaps list the URLs of their pages, too.",
        inProjects: .refused)

    static let baseURL = RunFlag<String?>(
        "base-url", .input, value: "url", help: "Base URL of relative entries.",
        inProjects: .refused)

    static let keyIgnoreQuery = RunFlag<IgnoredQuery?>(
        "key-ignore-query", .input, value: "names",
        help: """
            Parameters of queries that keys leave out, such as utm_*,token; without names the whole \
            query. URLs that differ only in them are one image.
            """, inProjects: .refused)

    static let order = RunFlag<StartOrder>(
        "order", .order, value: "order", default: defaults.queue.order,
        help: """
            Which entries of a priority start first: those read first (fifo), last (lifo), or drawn \
            at random among the queued ones (random, or random=SEED to repeat an order).
            """,
        brief: "start the first or the last entries first")

    static let queueCapacity = RunFlag<Int>(
        "queue-capacity", .order, value: "n", default: defaults.queue.capacity,
        help: "Entries queued in memory; the others wait in a temporary file.")

    static let jobs = RunFlag<OrAuto<Int>>(
        "jobs", short: "j", .hosts, value: "n", default: OrAuto(defaults.hosts.jobs),
        help: """
            Concurrent transfers, at most 10000; auto starts with 32, and adds more while answers \
            do not get slower, up to 256.
            """, brief: "concurrent transfers")

    static let hostConcurrency = RunFlag<OrAuto<Int>>(
        "host-concurrency", .hosts, value: "n",
        default: OrAuto(defaults.hosts.concurrency),
        help: """
            Most concurrent transfers per host (scheme, host name and port); auto starts with 6, \
            and adds more while the host's answers do not get slower, up to --jobs, or 64 (200 over \
            HTTP/2).
            """, brief: "concurrent transfers per host")

    static let pacing = RunFlag<HostRules.Pacing>(
        "pacing", .hosts, value: "pacing", default: defaults.hosts.pacing,
        help: """
            How fast hosts are requested: auto finds the pace that each host accepts, and remembers \
            it; fixed keeps to the numbers, which 429 and 503 halve for a while.
            """)

    static let hostInterval = RunFlag<DurationArgument>(
        "host-interval", .hosts, value: "duration",
        default: DurationArgument(defaults.hosts.interval),
        help: "Shortest time between two requests to a host.")

    static let hostRate = RunFlag<RateArgument?>(
        "host-rate", .hosts, value: "n/s",
        help: "Most requests per second to a host, also 30/m or 100/h; like --host-interval.")

    static let retry = RunFlag<Int>(
        "retry", .hosts, value: "n", default: defaults.hosts.maximumRetries,
        help: """
            Retries per entry after failures that may be temporary: connections, time-outs, 429, 5xx.
            """, brief: "retries per entry after temporary failures")

    static let retryDelay = RunFlag<DurationArgument>(
        "retry-delay", .hosts, value: "duration",
        default: DurationArgument(defaults.hosts.retryDelay),
        help: """
            Longest delay before the first retry. It doubles with each further retry, up to a \
            minute; the actual delay is random within it.
            """)

    static let maximumRetryAfter = RunFlag<DurationArgument>(
        "max-retry-after", .hosts, value: "duration",
        default: DurationArgument(defaults.hosts.longestRetryAfter),
        help: "Give up on a host in this run if its Retry-After asks for a longer pause.")

    static let hostTimeout = RunFlag<DurationArgument>(
        "host-timeout", .hosts, value: "duration",
        default: DurationArgument(defaults.hosts.timeout),
        help: """
            Give up on a host in this run if it gives no answer, or only 429 and 503, for this long.
            """)

    static let connectTimeout = RunFlag<DurationArgument>(
        "connect-timeout", .limits, value: "duration",
        default: DurationArgument(defaults.limits.connectTimeout),
        help: "Time limit for name resolution, connection and TLS handshake.")

    static let stallTimeout = RunFlag<DurationArgument>(
        "stall-timeout", .limits, value: "duration",
        default: DurationArgument(defaults.limits.stallTimeout),
        help: "Longest time without receiving a byte.")

    static let timeout = RunFlag<DurationArgument>(
        "timeout", .limits, value: "duration",
        default: DurationArgument(defaults.limits.totalTimeout),
        help: "Time limit per transfer; time in the queue does not count.",
        brief: "time limit per transfer")

    static let limitRate = RunFlag<SizeArgument?>(
        "limit-rate", .limits, value: "size",
        help: """
            Bytes received per second over all transfers, at least 1KiB; hosts share it equally.
            """)

    static let maximumBodySize = RunFlag<SizeArgument>(
        "max-filesize", .limits, value: "size",
        default: SizeArgument(defaults.limits.maximumBodySize), help: "Largest response body.")

    static let maximumPixels = RunFlag<Int>(
        "max-pixels", .limits, value: "n", default: defaults.images.maximumPixels,
        help: "Largest image, as width × height.")

    static let maximumDecodeTime = RunFlag<DurationArgument>(
        "max-decode-time", .limits, value: "duration",
        default: DurationArgument(defaults.images.maximumDecodeTime),
        help: "Most processor time per image, for decoding and encoding together.")

    static let memory = RunFlag<SizeArgument>(
        "memory", .limits, value: "size", default: SizeArgument(defaults.images.memory),
        help: "Memory for response bodies (a quarter) and pixels (the rest); at least 16MiB.")

    static let entryLimit = RunFlag<Int?>(
        "limit", .limits, value: "n",
        help: "Request at most N entries. The rest is left, with exit status 3.")

    static let deadline = RunFlag<DurationArgument?>(
        "deadline", .limits, value: "duration",
        help: """
            Time limit of the run, waiting for the cache included. Nothing starts shortly before it, \
            and the rest is left, with exit status 3.
            """)

    static let until = RunFlag<TimeOfDayArgument?>(
        "until", .limits, value: "hh:mm",
        help: "As --deadline, as a local time: the next 06:00.")

    static let failFast = RunFlag<Bool>(
        "fail-fast", .limits,
        help: "End the run at the first failure that decides the exit status.")

    static let jitter = RunFlag<DurationArgument?>(
        "jitter", .limits, value: "duration",
        help:
            "Wait for a random time up to this before the run, so that machines do not start together."
    )

    static let maximumRedirects = RunFlag<Int>(
        "max-redirects", .limits, value: "n", default: defaults.limits.maximumRedirects,
        help: "Most redirects per entry.")
}
