import ArgumentParser
import CacheStorage
import ConfigurationFiles
import Manifests
import Pipeline

/// Flags of `run` about freshness and repeated requests.
struct FreshnessFlags: FlagRows {
    static let flags = FlagTable(FreshnessFlags())

    let refresh = RunFlag<RefreshMode>(
        "refresh", value: "which", sets: \.run.lifetimes.refresh,
        help: """
            Which cached images to request again: stale ones, all of them (with conditions), all \
            without conditions (force), or none, however old.
            """, brief: "cached images to request again: stale, all, …")

    let ahead = RunFlag<OrAuto<Duration>>(
        "ahead", value: "duration",
        default: OrAuto(RunFlags.defaults.lifetimes.ahead),
        help: """
            Treat images that expire within this time as stale, so that none expires before the \
            next run. 'auto' takes the time between the last runs of the same manifests, if they \
            were regular, else 0.
            """
    ) { $0.run.lifetimes.ahead = $1.value }

    let lifetime = RunFlag<Duration?>(
        "ttl", value: "duration",
        help: "Lifetime of images in place of the origin's, even with no-store.",
        brief: "how long images are fresh, whatever the origin says",
        inHosts: .entries { $0.defaults.timeToLive = $1 }
    ) { $0.run.lifetimes.forced = $1 }

    let minimumLifetime = RunFlag<Duration?>(
        "min-ttl", value: "duration",
        help: "Shortest lifetime of images, except for no-cache."
    ) { $0.run.lifetimes.minimum = $1 }

    let maximumLifetime = RunFlag<Duration?>(
        "max-ttl", value: "duration",
        help: "Longest lifetime of images."
    ) { $0.run.lifetimes.maximum = $1 }

    let defaultLifetime = RunFlag<Duration>(
        "default-ttl", value: "duration", sets: \.run.lifetimes.fallback,
        help: "How long images are fresh if the origin does not say.")

    let fileCheck = RunFlag<FileCheck>(
        "check-files", value: "when", default: .auto,
        help: """
            How to check that cached files exist: list changed folders (auto), compare the size of \
            every file (always), or trust the database (never). Missing files are downloaded again.
            """, inProjects: .refused)

    let offline = RunFlag<Bool>(
        "offline", help: "Make no requests; entries that are not warm are excluded.",
        brief: "make no requests; report fresh images", isConfigurable: false
    ) { $0.run.lifetimes.isOffline = $1 }

    let retriesFailed = RunFlag<Bool>(
        "retry-failed",
        help: "Also request blacklisted URLs, and hosts that earlier runs gave up on.",
        brief: "also request blacklisted URLs", isConfigurable: false
    ) { $0.run.retriesFailed = $1 }

    static func combined(_ flags: Flags<FreshnessFlags>) throws {
        try StoredLifetimeFlags.combined(Flags<StoredLifetimeFlags>(flags))
        if flags.offline, flags.refresh == .all || flags.refresh == .force {
            throw ValidationError(
                "--offline cannot be combined with --refresh \(flags.refresh.rawValue)")
        }
    }
}

/// The flags about lifetimes of commands that store images as a run does.
struct StoredLifetimeFlags: FlagRows {
    static let flags = FlagTable(StoredLifetimeFlags())

    let lifetime = FreshnessFlags.flags.lifetime
    let minimumLifetime = FreshnessFlags.flags.minimumLifetime
    let maximumLifetime = FreshnessFlags.flags.maximumLifetime
    let defaultLifetime = FreshnessFlags.flags.defaultLifetime

    static func combined(_ flags: Flags<StoredLifetimeFlags>) throws {
        if let minimum = flags.minimumLifetime,
            let maximum = flags.maximumLifetime,
            minimum > maximum
        {
            throw ValidationError("--min-ttl must not be more than --max-ttl")
        }
        if flags.lifetime != nil, flags.minimumLifetime != nil || flags.maximumLifetime != nil {
            throw ValidationError("--ttl cannot be combined with --min-ttl or --max-ttl")
        }
    }
}
