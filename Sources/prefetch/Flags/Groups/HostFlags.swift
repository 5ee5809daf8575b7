import ConfigurationFiles
import Pipeline
import PrefetchModel

/// Flags of `run` about the order in which entries start.
struct OrderFlags: FlagRows {
    static let flags = FlagTable(OrderFlags())

    let order = RunFlag<StartOrder>(
        "order", value: "order", sets: \.run.queue.order,
        help: """
            Which entries of a priority start first: those read first (fifo), last (lifo), or drawn \
            at random among the queued ones (random, or random=SEED to repeat an order).
            """,
        brief: "start the first or the last entries first")

    let queueCapacity = RunFlag<Int>(
        "queue-capacity", value: "n", sets: \.run.queue.capacity,
        help: "Entries queued in memory; the others wait in a temporary file.",
        check: .atLeast(1))
}

/// Flags of `run` about concurrency, pauses and retries.
struct HostFlags: FlagRows {
    static let flags = FlagTable(HostFlags())

    let jobs = RunFlag<OrAuto<Int>>(
        "jobs", short: "j", value: "n", default: OrAuto(RunFlags.defaults.hosts.jobs),
        help: """
            Concurrent transfers, at most 10000; auto starts with 32, and adds more while responses \
            do not get slower, up to 256.
            """, brief: "concurrent transfers", check: .between(1, 10_000)
    ) { $0.run.hosts.jobs = $1.value }

    let hostConcurrency = RunFlag<OrAuto<Int>>(
        "host-concurrency", value: "n",
        default: OrAuto(RunFlags.defaults.hosts.concurrency),
        help: """
            Most concurrent transfers per host (scheme, host name and port); auto starts with 6, \
            and adds more while the host's responses do not get slower, up to --jobs, or 64 (200 over \
            HTTP/2).
            """, brief: "concurrent transfers per host", inHosts: .likeRun,
        check: .between(1, 10_000)
    ) { $0.run.hosts.concurrency = $1.value }

    let hostInterval = RunFlag<Duration>(
        "host-interval", value: "duration", sets: \.run.hosts.interval,
        help: "Shortest time between two requests to a host.", inHosts: .likeRun)

    let hostRate = RunFlag<RateArgument?>(
        "host-rate", value: "n/s",
        help: "Most requests per second to a host, also 30/m or 100/h; like --host-interval.",
        inHosts: .likeRun, replaces: ["host-interval"]
    ) { $0.run.hosts.interval = $1.interval }

    let pacing = RunFlag<HostRules.Pacing>(
        "pacing", value: "pacing", sets: \.run.hosts.pacing,
        help: """
            How fast hosts are requested: auto finds the pace that each host accepts, and remembers \
            it; fixed keeps to the numbers, which 429 and 503 halve for a while.
            """)

    let retry = RunFlag<Int>(
        "retry", value: "n", sets: \.run.hosts.maximumRetries,
        help: """
            Retries per entry after failures that may be temporary: connections, time-outs, 429, 5xx.
            """, brief: "retries per entry after temporary failures", inHosts: .likeRun,
        check: .between(0, 1000))

    let retryDelay = RunFlag<Duration>(
        "retry-delay", value: "duration", sets: \.run.hosts.retryDelay,
        help: """
            Longest delay before the first retry. It doubles with each further retry, up to a \
            minute; the actual delay is random within it.
            """)

    let longestRetryAfter = RunFlag<Duration>(
        "max-retry-after", value: "duration", sets: \.run.hosts.longestRetryAfter,
        help: "Give up on a host in this run if its Retry-After requests a longer pause.")

    let hostTimeout = RunFlag<Duration>(
        "host-timeout", value: "duration", sets: \.run.hosts.timeout,
        help: """
            Give up on a host in this run if it gives no response, or only 429 and 503, for this long.
            """)
}
