import CacheStorage
import PrefetchModel
import Scheduling
import Transfers

/// An entry that is not warm, from the moment it is queued to its outcome.
///
/// Small, since many wait in memory, and without any reference, since others wait in a file; what
/// only a started entry needs is in its ``Progress``.
struct PendingEntry {
    /// What has to be done for an entry.
    enum Plan {
        /// Nothing of it is stored.
        case fetch
        /// A copy is stored: the origin is asked whether it is still good.
        case refresh(resource: Int64)
        /// Its variant is made from the stored original, without asking.
        case derive(resource: Int64)
        /// It is warm, and gets attributes.
        case annotate(resource: Int64)
    }

    let manifest: String
    let line: Int
    /// With credentials when the manifest has them.
    let url: RequestURL
    let key: String
    var priority: Priority
    let queuedAt: ContinuousClock.Instant
    var plan: Plan
    /// The fields that few entries have, in a box, since the others wait in memory without them.
    private let box: ExtrasBox?
    var extras: EntryExtras? { box?.extras }
    /// Set when the first transfer starts, or the work that is done without one.
    var progress: Progress?
    /// What its texts take in memory, as ``EntryStore`` has counted it.
    var countedBytes = 0

    private final class ExtrasBox {
        let extras: EntryExtras

        init(_ extras: EntryExtras) {
            self.extras = extras
        }
    }

    init(
        manifest: String, line: Int, url: RequestURL, key: String, priority: Priority, plan: Plan,
        extras: EntryExtras?, queuedAt: ContinuousClock.Instant
    ) {
        self.manifest = manifest
        self.line = line
        self.url = url
        self.key = key
        self.priority = priority
        self.queuedAt = queuedAt
        self.plan = plan
        box = extras.map(ExtrasBox.init)
    }

    /// An entry of the same key, which shares this one's fate.
    struct Duplicate {
        let manifest: String
        let line: Int
        let url: String
    }

    /// What has become of a started entry so far.
    final class Progress {
        /// The position in which its first transfer began, 1 for the run's first; nil without one.
        let start: Int?
        /// Set while it occupies its host.
        var host: Scheduler.HostUse?
        /// Whether nothing else of that host ran or waited when it started.
        var isAlone = false
        /// Times that it was tried, each from its own URL on.
        var attempts = 0
        /// Whether its next start is that of a new attempt.
        var beginsAttempt = true
        /// Why the last attempt failed, while it waits for the next one.
        var failure: (reason: FailureReason, message: String)?
        /// Where the present transfer goes; changes with each redirect.
        var target: RequestURL
        /// Where permanent redirects led, as long as no other kind came before them.
        var permanentURL: RequestURL?
        /// Whether all redirects so far were permanent.
        var isPermanentSoFar = true
        /// Whether the first transfer went where an earlier run was redirected for good.
        var followsMemory = false
        /// Whether what earlier runs were told of redirects has turned out to be wrong.
        var ignoresMemory = false
        /// Where the present transfer may lead; nil for the rule of what is listed.
        var addressRule: AddressRule?
        /// The URLs asked so far, without credentials, the present one included, to see loops: their
        /// hashes, since a million entries may wait that a host of long names has redirected.
        var visited: [Int] = []
        /// Redirects that were followed since the listed URL was asked.
        var redirects = 0
        var stages = StageDurations()
        var bytesReceived = 0
        var httpStatus: Int?
        /// The last response's field `Content-Type`.
        var contentType: String?
        var curlCode: Int?
        /// For the report; nil for what has to be validated at every use.
        var expiresAt: Timestamp?
        var stored: StoredImage?
        /// Of the variant that is made for the entry.
        var bytesStored = 0
        /// What is stored already.
        var copy: CachedCopy?
        /// The image of it by this run's recipe, if its file is there.
        var kept: StoredImage?
        /// The fields that made the present request conditional.
        var conditions: [HeaderField] = []
        /// The part of the body that is there, which the present request asks for the rest of.
        var part: PartialStore.Part?
        /// Whether a part has turned out to be of no use, so that the whole is asked for.
        var ignoresParts = false
        /// Why a transfer failed of which a part is being kept; nil when it was cancelled.
        var breakage: (reason: FailureReason, message: String)?
        /// Whether nothing could be made of the stored original: not what its origin is blamed for.
        var hasFailedToDerive = false
        /// What a 304 or the same bytes again said, until it is committed.
        var validation: ResourceChange.Validation?
        /// The outcome that follows with the commit.
        var outcome = Outcome.downloaded
        var message: String?
        /// Whether a change of its row is with the writer.
        var isWriting = false

        init(start: Int?, target: RequestURL, queued: Duration) {
            self.start = start
            self.target = target
            stages.queue = queued
        }

        func visit(_ url: RequestURL) { visited.append(url.withoutCredentials.hashValue) }
        func hasVisited(_ url: RequestURL) -> Bool {
            visited.contains(url.withoutCredentials.hashValue)
        }

        /// Begins anew at a URL.
        func restart(at url: RequestURL) {
            target = url
            visited = []
            redirects = 0
            permanentURL = nil
            isPermanentSoFar = true
            followsMemory = false
            addressRule = nil
        }
    }

    func result(
        _ outcome: Outcome, reason: FailureReason? = nil, message: String? = nil
    ) -> EntryResult {
        // What was on its way to the cache and did not get there is nobody's business.
        let isStored: Bool
        switch outcome {
        case .downloaded, .revalidated, .derived, .fresh: isStored = true
        default: isStored = false
        }
        return EntryResult(
            manifest: manifest, line: line, url: url.text, key: key, outcome: outcome,
            reason: reason,
            message: message ?? (isStored ? progress?.message : nil),
            httpStatus: progress?.httpStatus,
            attempts: progress?.attempts ?? 0, start: progress?.start,
            bytesReceived: progress?.bytesReceived ?? 0,
            stored: isStored ? progress?.stored : nil,
            expiresAt: isStored ? progress?.expiresAt : nil,
            exchange: exchange,
            stages: progress?.stages ?? StageDurations())
    }

    /// Nil when nothing was asked for.
    private var exchange: EntryResult.Exchange? {
        guard let progress, progress.start != nil else { return nil }
        let target = progress.target.withoutCredentials
        return EntryResult.Exchange(
            finalURL: target == url.withoutCredentials ? nil : target.text,
            contentType: progress.contentType, redirects: progress.redirects)
    }

    func result(of duplicate: Duplicate, _ outcome: Outcome, fate: Fate) -> EntryResult {
        var result = EntryResult(
            manifest: duplicate.manifest, line: duplicate.line, url: duplicate.url, key: key,
            outcome: outcome)
        fate.describe(&result)
        return result
    }
}

/// How the first entry of a key ended, for the others.
struct Fate {
    let reason: FailureReason?
    var stored: StoredImage?
    var expiresAt: Timestamp?
    /// Where that entry stands.
    let manifest: String
    let line: Int

    func describe(_ result: inout EntryResult) {
        result.reason = reason
        result.message = "shares the fate of \(manifest):\(line)"
        result.stored = stored
        result.expiresAt = expiresAt
    }
}
