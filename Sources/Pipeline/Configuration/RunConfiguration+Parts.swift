package import CacheStorage
package import Decoding
import EntryLifecycle
package import HTTPSemantics
package import PrefetchModel
import Scheduling
import Transfers

package struct QueueRules: Sendable {
    package var order: StartOrder = .fifo
    /// Entries that wait in memory; the last ones to start wait in a temporary file.
    package var capacity = 10_000
    /// The folder of that file; nil for the cache's own folder of temporary files.
    package var temporaryFolder: String?
}

/// The rules for the identity of entries, and for unwanted ones.
package struct EntryChoiceRules: Sendable {
    /// The parameters of queries in which the URLs of one key may differ.
    package var ignoredQuery = IgnoredQuery.none
    private(set) var robots = RobotsDirectives.none
    /// Returns why the patterns of URLs exclude a redirect's target; nil without patterns.
    package var objection: (@Sendable (Redirect) -> Failure?)?
    /// Whether a URL in normal form belongs to another shard; nil for a run of whole lists.
    package var leavesShard: (@Sendable (String) -> Bool)?

    package init() {}

    /// Returns the failure of an image that a redirect to an excluded URL brought, or would.
    func exclusion(ofRedirectTo url: RequestURL) -> Failure? {
        objection?(.to(url))?.redirected(to: url.description)
    }

    /// Excludes images with one of these directives in their responses, names separated by commas;
    /// false for other text.
    package mutating func follow(robotsDirectives text: String) -> Bool {
        guard let parsed = RobotsDirectives(text) else { return false }
        robots = parsed
        return true
    }
}

package struct HostRules: Sendable {
    /// The limit of simultaneous transfers; nil to find it.
    package var jobs: Int?
    /// The limit of simultaneous transfers at one host; nil to find it.
    package var concurrency: Int?
    package var pacing = Pacing.auto
    package var interval: Duration = .zero
    /// The limit of received bytes per second over all transfers, including lists; nil for none.
    package var bytesPerSecond: ByteCount? {
        didSet { rateLimit = bytesPerSecond.map(RateLimit.init) }
    }
    /// Its state, which all transfer loops of the run share.
    private(set) var rateLimit: RateLimit?
    package var maximumRetries = 3
    /// The upper limit of the wait before an entry's first retry; it doubles with each one, up to a
    /// minute.
    package var retryDelay: Duration = .seconds(1)
    /// The longest accepted `Retry-After`; a host that sends a longer one is given up in this run.
    package var longestRetryAfter: Duration = .seconds(300)
    /// A host without a response for this time, or with overload responses only, is given up in
    /// this run.
    package var timeout: Duration = .seconds(60)
    /// The number of runs that share the limits of a host, at least 1; none for most hosts.
    package var parts = HostTable<Int>()
    /// The configurations of hosts with settings of their own: the run's with those settings.
    package var configurations = HostTable<RunConfiguration>()

    /// Whether the pace follows the hosts.
    package enum Pacing: String, CaseIterable, Sendable {
        /// From the latency and the refusals of each host.
        case auto
        /// The user's numbers; a refusal halves a host's transfers for a while.
        case fixed
    }

    /// Simultaneous transfers of a run at its start, and always with fixed pacing.
    private static let firstJobs = 32
    /// The limit of transfers at one host without the user's: each may be a connection.
    private static let maximumConcurrency = 64
    /// The same over HTTP/2: two connections with the streams that most servers allow.
    private static let maximumStreams = 200
    /// Simultaneous transfers at a new host, like browsers.
    static let firstConcurrency = 6
    /// Simultaneous transfers at every host with fixed pacing.
    private static let fixedConcurrency = 8
    /// The memory of a transfer: images are seldom larger.
    private static let bytesOfTransfer = 256 << 10
    private static let mostJobs = 256

    /// The transfers that every host takes at the same time in any case.
    private var sureConcurrency: Int {
        min(concurrency ?? HostRules.firstConcurrency, jobs ?? .max)
    }

    /// Returns the largest number of runs that can share the limits of a domain's hosts: each of
    /// them makes a transfer.
    package func mostParts(of domain: String) -> Int {
        configurations.values(within: domain).map(\.hosts.sureConcurrency)
            .reduce(sureConcurrency, min)
    }

    private var backoff: Backoff { Backoff(base: retryDelay) }

    var retryPolicy: RetryPolicy {
        RetryPolicy(
            maximumRetries: maximumRetries, byHost: configurations.map(\.hosts.maximumRetries),
            backoff: backoff)
    }

    /// Returns the largest number of transfers that the run may use. `bodyBudget` is the memory for
    /// bodies, which limits what it finds by itself.
    func maximumJobs(bodyBudget: ByteCount) -> Int {
        if let jobs { return jobs }
        guard pacing == .auto else { return HostRules.firstJobs }
        let most = bodyBudget.bytes / HostRules.bytesOfTransfer
        return min(max(most, HostRules.firstJobs), HostRules.mostJobs)
    }

    /// Returns the limit of transfers; `maximum` is the number that memory and open files allow.
    func jobLimit(maximum: Int) -> JobLimit {
        jobs == nil && pacing == .auto
            ? JobLimit(first: HostRules.firstJobs, maximum: maximum) : JobLimit(fixed: maximum)
    }

    var hostRules: HostPacing.PaceRules {
        let most = concurrency ?? (pacing == .fixed ? HostRules.fixedConcurrency : jobs)
        return HostPacing.PaceRules(
            concurrency: most ?? HostRules.maximumConcurrency,
            sharedConcurrency: most ?? HostRules.maximumStreams, isChosen: most != nil,
            firstConcurrency: concurrency == nil && pacing == .auto
                ? HostRules.firstConcurrency : nil,
            isAdaptive: pacing == .auto, interval: interval, longestCoolDown: longestRetryAfter,
            backoff: backoff, patience: timeout)
    }
}

package struct BodyRules: Sendable {
    package var responses = ResponseRules()
    /// Whether images are stored. If not, they are only requested.
    package var use = BodyUse.stored
    package var filters: [BodyFilterName: BodyFilter] = [:]
}

package struct ImageRules: Sendable {
    package var variants = VariantSet(main: Recipe())
    /// The pictures of the variants' `overlay` steps.
    package var overlayFiles = OverlayFiles()
    package var check = SourceCheck.decode
    package var filter = ImageFilter()
    package var otherFormats = OtherFormats.store
    package var makesPlaceholders = true
    /// The limit of width × height in the header.
    package var maximumPixels = 100_000_000
    /// The limit of processor time for decoding and encoding one image.
    package var maximumDecodeTime: Duration = .seconds(30)
    /// The memory budget of all stages: a quarter for bodies, the rest for pixels.
    package var memory: ByteCount = .mebibytes(256)
    package var sandbox = SandboxMode.auto

    package init() {}

    /// The share of ``memory`` for bodies that arrive or wait for a codec worker.
    var bodyBudget: ByteCount { MemoryShares.bodies(of: memory) }
    var pixelBudget: ByteCount { MemoryShares.pixels(of: memory) }
}

package struct LifetimeRules: Sendable {
    /// The lifetime of images whatever their origins say; nil to follow the origin.
    package var forced: Duration?
    package var minimum: Duration?
    package var maximum: Duration?
    /// The lifetime when the origin says nothing, and the ceiling of heuristic ones.
    package var fallback: Duration = .seconds(7 * 86400)
    /// Images that expire within this time count as stale; nil for the time until the next run,
    /// see ``RunConfiguration/setAhead(by:at:)``.
    package var ahead: Duration?
    package var refresh = RefreshMode.stale
    /// No network: entries that are not warm are excluded.
    package var isOffline = false

    /// The rules of an entry: its own lifetime overrides the run's.
    package func rules(_ extras: EntryExtras?) -> Freshness.Rules {
        Freshness.Rules(
            forced: extras?.timeToLive ?? forced, minimum: minimum, maximum: maximum,
            defaultLifetime: fallback, ahead: ahead ?? .zero)
    }
}

package struct StoringRules: Sendable {
    package var writesFileAttributes = false
    package var durability: MetadataWriter.Durability = .normal
    /// The limit of disk space for content files; nil for none.
    package var maximumSize: ByteCount?
    /// The rules by which the run prunes at its end, at most once a day; nil for none.
    package var pruning: PruneRules?
    /// Whether lists that may hide images count as whole.
    package var allowsPartialLists = false
    package var snapshots = SnapshotRule.daily

    /// Whether the run may remove images that its lists do not name.
    var removesUnlisted: Bool { maximumSize != nil || pruning != nil }
}

package enum RefreshMode: String, CaseIterable, Sendable {
    case stale
    /// All entries, with conditions: an unchanged image costs no body.
    case all
    /// All entries, without conditions: each is downloaded, decoded and stored again.
    case force
    /// None: stored images count as fresh.
    case none

    var asksForFresh: Bool { self == .all || self == .force }
}
