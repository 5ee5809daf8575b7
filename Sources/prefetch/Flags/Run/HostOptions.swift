import ArgumentParser
import Pipeline

/// Flags of `run` about concurrency, pauses and retries.
struct HostOptions: ParsableArguments {
    @Option(RunFlags.jobs) var jobs: OrAuto<Int>
    @Option(RunFlags.hostConcurrency) var hostConcurrency: OrAuto<Int>
    @Option(RunFlags.hostInterval) var hostInterval: DurationArgument
    @Option(RunFlags.hostRate) var hostRate: RateArgument?
    @Option(RunFlags.pacing) var pacing: HostRules.Pacing
    @Option(RunFlags.retry) var retry: Int
    @Option(RunFlags.retryDelay) var retryDelay: DurationArgument
    @Option(RunFlags.maximumRetryAfter) var longestRetryAfter: DurationArgument
    @Option(RunFlags.hostTimeout) var hostTimeout: DurationArgument

    func validate() throws {
        guard (1...10_000).contains(jobs.value ?? 1) else {
            throw ValidationError("--jobs must be between 1 and 10000")
        }
        try HostOptions.check(concurrency: hostConcurrency.value)
        try HostOptions.check(retries: retry)
    }

    static func check(concurrency: Int?) throws {
        guard (1...10_000).contains(concurrency ?? 1) else {
            throw ValidationError("--host-concurrency must be between 1 and 10000")
        }
    }

    static func check(retries: Int) throws {
        guard (0...1000).contains(retries) else {
            throw ValidationError("--retry must be between 0 and 1000")
        }
    }

    func apply(to configuration: inout RunConfiguration) {
        configuration.hosts.jobs = jobs.value
        configuration.hosts.concurrency = hostConcurrency.value
        configuration.hosts.pacing = pacing
        configuration.hosts.interval = max(hostInterval.duration, hostRate?.interval ?? .zero)
        configuration.hosts.maximumRetries = retry
        configuration.hosts.retryDelay = retryDelay.duration
        configuration.hosts.longestRetryAfter = longestRetryAfter.duration
        configuration.hosts.timeout = hostTimeout.duration
    }
}
