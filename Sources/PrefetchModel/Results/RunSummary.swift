/// The counts of a run so far. After its end, the outcomes' counts add up to ``entriesRead``.
package struct RunCounters: Hashable, Sendable {
    package var entriesRead = 0
    private var outcomes = [Int](repeating: 0, count: Outcome.allCases.count)
    private var reasons: [FailureReason: ReasonCounts] = [:]
    /// Failures that an earlier run had with the same reason.
    package var knownFailures = 0
    /// Body bytes received, including failed transfers.
    package var bytesReceived = 0
    /// Bytes of the variants stored by this run, before equal content is shared.
    package var bytesStored = 0
    package var variantsMade = 0
    /// Entries stored unchanged because their format is not decoded.
    package var notDecoded = 0
    package var seeded = 0
    /// Requests sent, including redirects.
    package var requests = 0
    /// Entries of a run that stores nothing with responses from a cache on the way.
    package var edgeHits = 0
    /// Entries with redirects that ended at a host of another shard.
    package var redirectsElsewhere = 0

    package init() {}

    private struct ReasonCounts: Hashable {
        /// Failed and excluded entries.
        var ended = 0
        var blacklisted = 0
    }

    package subscript(outcome: Outcome) -> Int {
        get { outcomes[outcome.index] }
        set { outcomes[outcome.index] = newValue }
    }

    package subscript(reason: FailureReason) -> Int {
        get { reasons[reason]?.ended ?? 0 }
        set { reasons[reason, default: ReasonCounts()].ended = newValue }
    }

    /// The number of entries that an earlier failure with this reason has blacklisted.
    package func blacklisted(for reason: FailureReason) -> Int {
        reasons[reason]?.blacklisted ?? 0
    }

    /// Exclusions by a rule for images: these entries are neither warm nor missing.
    package var excludedImages: Int {
        FailureReason.allCases.reduce(0) { $0 + ($1.isExclusion ? self[$1] : 0) }
    }

    package var entriesDone: Int { outcomes.reduce(0, +) }
    package var entriesFinished: Int { entriesDone - self[.cancelled] }

    /// Counts an outcome. A reason is counted only for `failed`, `excluded` and, apart from these,
    /// `blacklisted`, so that a failure and its duplicates count once.
    package mutating func count(_ outcome: Outcome, reason: FailureReason? = nil, times: Int = 1) {
        outcomes[outcome.index] += times
        guard let reason else { return }
        switch outcome {
        case .failed, .excluded: reasons[reason, default: ReasonCounts()].ended += times
        case .blacklisted: reasons[reason, default: ReasonCounts()].blacklisted += times
        default: break
        }
    }
}

/// Rows of lists that name no picture.
package struct SkippedRows: Hashable, Sendable {
    package var count = 0
    /// The first one, as `LIST:LINE`.
    package private(set) var first = ""

    package init() {}

    package mutating func add(_ rows: Int, place: String) {
        if count == 0 { first = place }
        count += rows
    }
}

package struct RemovalTotals: Hashable, Sendable {
    /// Images removed with all their variants.
    package var images = 0
    package var variants = 0
    /// Files that no remaining image shares.
    package var files = 0
    package var bytes = 0
    /// Failures of URLs without an image.
    package var failures = 0
    /// Rows of hosts, runs and partial downloads.
    package var hosts = 0
    package var runs = 0
    package var parts = 0

    package init() {}

    package mutating func add(_ other: RemovalTotals) {
        images += other.images
        variants += other.variants
        files += other.files
        // Damaged rows may hold any number.
        bytes &+= other.bytes
        failures += other.failures
        hosts += other.hosts
        runs += other.runs
        parts += other.parts
    }
}

package struct ShardResult: Hashable, Sendable {
    package var shard: Shard
    /// The SHA-256 of the plan's file in hexadecimal digits; nil without a plan.
    package var plan: String?
    /// Entries of the lists that belong to other shards.
    package var otherEntries = 0
    /// Entries with redirects that ended at a host of another shard; its limits are not known to
    /// this run.
    package var redirectsElsewhere = 0

    package init(_ shard: Shard, plan: String? = nil) {
        self.shard = shard
        self.plan = plan
    }
}

/// The copy of a run's cache in a bucket.
package struct SinkResult: Hashable, Sendable {
    package var url: String
    /// Files that the bucket lacked, and their bytes.
    package var uploaded = 0
    package var uploadedBytes = 0
    /// Files that it had.
    package var present = 0
    /// Whether everything is there, and `_DONE.json` says so.
    package var isDone = false

    package init(url: String) {
        self.url = url
    }
}

package struct RunSummary: Sendable {
    package var counters: RunCounters
    package var startedAt: Timestamp
    package var elapsed: Duration
    /// 0 to 3, see docs/exit-status.md; 128 + the signal's number if a signal ended the run.
    package var exitStatus: Int32
    package var cacheDirectory: String
    /// The error that ended the run, with its subject; nil if the run completed.
    package var fatalMessage: String?
    package var fatalHint: String?
    package var stoppedBySignal: Int32?
    package var endedBy: RunLimit?
    /// Whether the run requests more than `main`, so that the number of variants is worth
    /// reporting.
    package var hasSeveralVariants = false
    /// The counts of pruning at the end of the run; nil if it did not prune.
    package var pruned: RemovalTotals?
    /// The reason that a run that evicts or prunes has removed nothing; nil if it could.
    package var unlistedKeptBy: ListGap?
    package var outage: Outage?
    package var isOutageKnown = false
    /// Hosts with failures that ended as known ones, but are new.
    package var hostsWithNews: Set<String> = []
    /// Lines about outages of earlier runs, at hosts that have responded in this one; unescaped.
    package var endedOutages: [String] = []
    /// The numbers of images by name of a stored variant that could not be made of their new
    /// source.
    package var lostVariants: [String: Int] = [:]
    /// The hosts with most requests or failures, at most ten, the largest first.
    package var hosts: [HostPace] = []
    /// The pauses that held up the run; the first hundred.
    package var pauses: [HostPause] = []
    /// The directory of the cache from which images were taken; nil without one.
    package var seedCache: String?
    /// The copy of the cache in a bucket, if requested.
    package var sink: SinkResult?
    package var shard: ShardResult?
    /// Rows of lists without a picture, which are skipped.
    package var skipped = SkippedRows()
    /// The lists by URL; nil for a run without any, or without requests.
    package var lists: ListCounts?
    /// The entries requested because another URL's image has their key.
    package var reusedKeys = ReusedKeys()
    /// The walls around decoders, nil without any decoder, and whether one was missing.
    package var sandbox: (text: String?, isLess: Bool) = (nil, false)
    /// The reason why no snapshot of the database could be taken; nil if it was taken or not due.
    package var snapshotFailure: String?

    package init(
        counters: RunCounters, startedAt: Timestamp, elapsed: Duration, exitStatus: Int32,
        cacheDirectory: String
    ) {
        self.counters = counters
        self.startedAt = startedAt
        self.elapsed = elapsed
        self.exitStatus = exitStatus
        self.cacheDirectory = cacheDirectory
    }
}

package enum RunLimit: String, Sendable {
    case entries = "limit"
    case deadline
    /// The first failure that decides the exit status.
    case failure = "fail-fast"
}

/// A snapshot of a run for the progress line.
package struct RunProgress: Sendable {
    package var counters: RunCounters
    package var inFlight: Int
    /// Whether all manifests are read, so that ``RunCounters/entriesRead`` is the total.
    package var isTotalKnown: Bool
    package var elapsed: Duration
    /// The host that limits the run most while more transfers could run; nil for none.
    package var holdUp: HoldUp?
    /// Whether a signal or a limit has stopped the run, which ends what is under way.
    package var isStopping = false
    /// As ``RunSummary/hosts``, about once a second; nil in between.
    package var hosts: [HostPace]?

    package init(counters: RunCounters, inFlight: Int, isTotalKnown: Bool, elapsed: Duration) {
        self.counters = counters
        self.inFlight = inFlight
        self.isTotalKnown = isTotalKnown
        self.elapsed = elapsed
    }
}

/// Receives the events of a run in order, on the run's own thread.
package protocol RunObserving: AnyObject {
    /// Whether ``entryFinished(_:)`` wants entries of this outcome. No results are built for a
    /// million warm entries that the report omits. May change to false in a run.
    func wantsResults(of outcome: Outcome) -> Bool

    /// Receives each entry of a wanted outcome, after its row is committed.
    ///
    /// - Throws: If the report cannot be written, which ends the run with status 2.
    func entryFinished(_ result: EntryResult) throws

    /// The writer of warm entries' lines on the look-up threads; nil if ``entryFinished(_:)`` wants
    /// these entries, or the report omits them. Read once, at the start.
    var warmLineWriter: (any WarmLineWriting)? { get }

    /// Receives the lines that ``warmLineWriter`` wrote for one or more ``Outcome/fresh`` entries,
    /// in place of ``entryFinished(_:)``.
    func warmEntriesFinished(_ lines: ArraySlice<UInt8>) throws

    /// Called at most about ten times a second.
    func progressed(_ progress: RunProgress)
}

/// The lists by URL of a run, and the transfers for them, which no other counter has.
package struct ListCounts: Hashable, Sendable {
    package var fetched = 0
    /// Copies that the origin confirmed.
    package var notModified = 0
    /// Copies that were used without a request.
    package var stored = 0
    /// Copies that were used because the list could not be fetched.
    package var fallback = 0
    /// Lists that could not be fetched, without any copy.
    package var failed = 0
    /// Redirects and retries included.
    package var requests = 0
    package var bytesReceived = 0

    package init() {}

    package var bySource: [(name: String, count: Int)] {
        [
            ("fetched", fetched), ("not_modified", notModified), ("stored", stored),
            ("fallback", fallback), ("failed", failed),
        ]
    }
}
