import ArgumentParser
import Pipeline
import PrefetchModel

/// Flags of `run` about how hosts are asked, and asked again.
struct HostOptions: ParsableArguments {
    @Option(
        name: .customLong("host-concurrency"),
        help: ArgumentHelp(
            "Transfers at once at one host (scheme, host and port).", valueName: "n"))
    var hostConcurrency = 8

    @Option(
        name: .customLong("host-interval"),
        help: ArgumentHelp("The least time between two starts at one host.", valueName: "duration"))
    var hostInterval = DurationArgument(.zero)

    @Option(
        help: ArgumentHelp(
            "Retries of an entry whose failure may be over soon: connections, time-outs, 429, 5xx.",
            valueName: "n"))
    var retry = 3

    @Option(
        name: .customLong("retry-delay"),
        help: ArgumentHelp(
            """
            The longest wait before the first retry; it doubles with each one, up to a minute, and \
            the wait is a random part of it.
            """, valueName: "duration"))
    var retryDelay = DurationArgument(.seconds(1))

    @Option(
        name: .customLong("max-retry-after"),
        help: ArgumentHelp(
            "A host that asks to be left alone for longer is not asked again in this run.",
            valueName: "duration"))
    var longestRetryAfter = DurationArgument(.seconds(300))

    @Option(
        name: .customLong("host-timeout"),
        help: ArgumentHelp(
            "A host that gives no answer for so long, however often it is tried, is given up.",
            valueName: "duration"))
    var hostTimeout = DurationArgument(.seconds(60))

    @Option(
        name: .customLong("max-redirects"),
        help: ArgumentHelp("Redirects of one entry.", valueName: "n"))
    var maximumRedirects = 10

    @Flag(
        name: .customLong("allow-downgrade"),
        help: "Follow redirects from https to http, too.")
    var allowsDowngrade = false

    func validate() throws {
        guard hostConcurrency >= 1 else {
            throw ValidationError("--host-concurrency is at least 1")
        }
        guard (0...1000).contains(retry) else {
            throw ValidationError("--retry is within 0 and 1000")
        }
        guard maximumRedirects >= 0 else { throw ValidationError("--max-redirects is at least 0") }
    }

    func apply(to configuration: inout RunConfiguration) {
        configuration.hostConcurrency = hostConcurrency
        configuration.hostInterval = hostInterval.duration
        configuration.maximumRetries = retry
        configuration.retryDelay = retryDelay.duration
        configuration.longestRetryAfter = longestRetryAfter.duration
        configuration.hostTimeout = hostTimeout.duration
        configuration.maximumRedirects = maximumRedirects
        configuration.allowsDowngrade = allowsDowngrade
    }
}
