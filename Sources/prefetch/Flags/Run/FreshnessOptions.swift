import ArgumentParser
import CacheStorage
import Pipeline

/// Flags of `run` about freshness and repeated requests.
struct FreshnessOptions: ParsableArguments {
    @Option(RunFlags.refresh) var refresh: RefreshMode
    @Option(RunFlags.ahead) var ahead: OrAuto<DurationArgument>
    @Option(RunFlags.lifetime) var lifetime: DurationArgument?
    @Option(RunFlags.minimumLifetime) var minimumLifetime: DurationArgument?
    @Option(RunFlags.maximumLifetime) var maximumLifetime: DurationArgument?
    @Option(RunFlags.defaultLifetime) var defaultLifetime: DurationArgument
    @Option(RunFlags.checkFiles) var fileCheck: FileCheck
    @Flag(RunFlags.offline) var offline: Bool
    @Flag(RunFlags.retryFailed) var retriesFailed: Bool

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
        configuration.lifetimes.ahead = ahead.value?.duration
        configuration.lifetimes.refresh = refresh
        configuration.lifetimes.isOffline = offline
        configuration.retriesFailed = retriesFailed
    }
}
