/// The counts of a run so far. The outcomes' counts add up to ``entriesRead`` when it has ended.
package struct RunCounters: Hashable, Sendable {
    package var entriesRead = 0
    /// By ``Outcome/index``.
    private var outcomes = [Int](repeating: 0, count: Outcome.allCases.count)
    private var reasons: [FailureReason: Int] = [:]
    /// Of those that failed, how many did so in an earlier run for the same reason.
    package var knownFailures = 0
    /// Body bytes received, failed transfers included.
    package var bytesReceived = 0
    /// Bytes of the variants that this run stored, before equal content is shared.
    package var bytesStored = 0
    /// How many these are.
    package var variantsMade = 0
    /// Entries of which something was stored as it came, since its format is not decoded.
    package var notDecoded = 0
    /// Requests put on the wire, redirects included.
    package var requests = 0

    package init() {}

    package subscript(outcome: Outcome) -> Int { outcomes[outcome.index] }
    package subscript(reason: FailureReason) -> Int { reasons[reason, default: 0] }
    /// Of those that are `excluded`, how many by a rule that looks at the image: they are neither warm nor missed.
    package var excludedImages: Int {
        FailureReason.allCases.reduce(0) { $0 + ($1.isExclusion ? self[$1] : 0) }
    }

    /// Entries that have their outcome.
    package var entriesDone: Int { outcomes.reduce(0, +) }

    /// A reason is counted only for the outcomes `failed` and `excluded`, so that a failure and its duplicates
    /// count once.
    package mutating func count(_ outcome: Outcome, reason: FailureReason? = nil, times: Int = 1) {
        outcomes[outcome.index] += times
        if outcome == .failed || outcome == .excluded, let reason {
            reasons[reason, default: 0] += times
        }
    }
}

/// What a run has pruned.
package struct PrunedCounts: Hashable, Sendable {
    package var images: Int
    package var variants: Int
    /// Of content files.
    package var bytes: Int

    package init(images: Int, variants: Int, bytes: Int) {
        self.images = images
        self.variants = variants
        self.bytes = bytes
    }
}

/// How a run ended.
package struct RunSummary: Sendable {
    package var counters: RunCounters
    package var startedAt: Timestamp
    package var elapsed: Duration
    /// 0, 1 or 2, see docs/exit-status.md; 128 + the signal's number when a signal ended it.
    package var exitStatus: Int32
    package var cacheDirectory: String
    /// Why the run could not be completed, with the subject; nil when it was.
    package var fatalMessage: String?
    /// What the user can do about it, where something can be done.
    package var fatalHint: String?
    /// The signal that stopped the run, when one did.
    package var stoppedBySignal: Int32?
    /// Whether the run asks for more than the variant `main`, so that the count of variants tells something
    /// that the outcomes do not.
    package var hasSeveralVariants = false
    /// What the run has pruned at its end; nil when it did not.
    package var pruned: PrunedCounts?
    /// What the run's failures amount to, when an outage explains them.
    package var outage: Outage?
    /// Why no snapshot of the database could be taken; nil where one was, or was not due.
    package var snapshotFailure: String?

    package init(
        counters: RunCounters, startedAt: Timestamp, elapsed: Duration, exitStatus: Int32,
        cacheDirectory: String, fatalMessage: String? = nil, stoppedBySignal: Int32? = nil
    ) {
        self.counters = counters
        self.startedAt = startedAt
        self.elapsed = elapsed
        self.exitStatus = exitStatus
        self.cacheDirectory = cacheDirectory
        self.fatalMessage = fatalMessage
        self.stoppedBySignal = stoppedBySignal
    }
}

/// A host that keeps a run from going faster.
package struct HoldUp: Hashable, Sendable {
    /// Scheme, host and port.
    package var host: String
    /// Its transfers on the wire.
    package var inFlight: Int
    /// Entries that wait for it, retries included.
    package var waiting: Int
    /// How long it is left alone from now on; nil when it is being asked.
    package var pause: Duration?

    package init(host: String, inFlight: Int, waiting: Int, pause: Duration? = nil) {
        self.host = host
        self.inFlight = inFlight
        self.waiting = waiting
        self.pause = pause
    }
}

/// A moment of a run, for the progress line.
package struct RunProgress: Sendable {
    package var counters: RunCounters
    /// Transfers on the wire.
    package var inFlight: Int
    /// Whether every manifest has been read, so that ``RunCounters/entriesRead`` is the total.
    package var isTotalKnown: Bool
    package var elapsed: Duration
    /// The host that the run waits for above all, while more transfers could run; nil for none.
    package var holdUp: HoldUp?

    package init(counters: RunCounters, inFlight: Int, isTotalKnown: Bool, elapsed: Duration) {
        self.counters = counters
        self.inFlight = inFlight
        self.isTotalKnown = isTotalKnown
        self.elapsed = elapsed
    }
}

/// Receives what a run has to say. Called from the run's own thread only, in order.
package protocol RunObserving: AnyObject {
    /// Whether ``entryFinished(_:)`` wants entries of this outcome. Asked once per outcome at
    /// the start; a run over a million warm entries builds no result that nobody reads.
    func wantsResults(of outcome: Outcome) -> Bool

    /// Once for every entry of a wanted outcome, after its row is committed.
    ///
    /// - Throws: when the report cannot be written, which ends the run with status 2.
    func entryFinished(_ result: EntryResult) throws

    /// What writes the lines of warm entries on the threads that read; nil when those are wanted by
    /// ``entryFinished(_:)``, or not at all. Asked once, at the start.
    var warmLineWriter: (any WarmLineWriting)? { get }

    /// For entries that ended as ``Outcome/fresh``, one or many, in place of ``entryFinished(_:)``: the
    /// lines that ``warmLineWriter`` has written of them.
    ///
    /// - Throws: as that does.
    func warmEntriesFinished(_ lines: ArraySlice<UInt8>) throws

    /// At most about ten times a second.
    func progressed(_ progress: RunProgress)
}
