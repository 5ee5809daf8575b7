import ArgumentParser
import Pipeline
import PrefetchModel

/// Flags of `run` about how many requests are made at once, and how hosts are treated.
struct HostOptions: ParsableArguments {
    @Option(
        name: [.customShort("j", allowingJoined: true), .long],
        help: ArgumentHelp("Concurrent transfers, at most 10000.", valueName: "n"))
    var jobs = 32

    @Option(
        name: .customLong("host-concurrency"),
        help: ArgumentHelp(
            "Concurrent transfers per host (scheme, host name and port).", valueName: "n"))
    var hostConcurrency = 8

    @Option(
        name: .customLong("host-interval"),
        help: ArgumentHelp("Least time between two requests to a host.", valueName: "duration"))
    var hostInterval = DurationArgument(.zero)

    @Option(
        help: ArgumentHelp(
            "Retries per entry after failures that may pass: connections, time-outs, 429, 5xx.",
            valueName: "n"))
    var retry = 3

    @Option(
        name: .customLong("retry-delay"),
        help: ArgumentHelp(
            """
            Longest delay before the first retry; it doubles with each further one, up to a minute, \
            and the actual delay is random within it.
            """, valueName: "duration"))
    var retryDelay = DurationArgument(.seconds(1))

    @Option(
        name: .customLong("max-retry-after"),
        help: ArgumentHelp(
            "Give up on a host in this run if its Retry-After asks for a longer pause.",
            valueName: "duration"))
    var longestRetryAfter = DurationArgument(.seconds(300))

    @Option(
        name: .customLong("host-timeout"),
        help: ArgumentHelp(
            "Give up on a host in this run if it gives no answer, or only 429 and 503, for this long.",
            valueName: "duration"))
    var hostTimeout = DurationArgument(.seconds(60))

    func validate() throws {
        guard (1...10_000).contains(jobs) else {
            throw ValidationError("--jobs must be between 1 and 10000")
        }
        guard hostConcurrency >= 1 else {
            throw ValidationError("--host-concurrency must be at least 1")
        }
        guard (0...1000).contains(retry) else {
            throw ValidationError("--retry must be between 0 and 1000")
        }
    }

    func apply(to configuration: inout RunConfiguration) {
        configuration.hosts.jobs = jobs
        configuration.hosts.concurrency = hostConcurrency
        configuration.hosts.interval = hostInterval.duration
        configuration.hosts.maximumRetries = retry
        configuration.hosts.retryDelay = retryDelay.duration
        configuration.hosts.longestRetryAfter = longestRetryAfter.duration
        configuration.hosts.timeout = hostTimeout.duration
    }
}
