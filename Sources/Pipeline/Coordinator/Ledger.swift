import EntryLifecycle
import EntryQueue
import PrefetchModel
import Scheduling

/// The results of a run: counts, outcomes and outages. Each outcome is counted and reported here
/// and nowhere else.
struct Ledger {
    private(set) var counters = RunCounters()
    private var outageRule = OutageRule()
    private(set) var faults = HostFaultRule()
    var tallies = HostTallies()
    private var troubles = HostTroubles()
    /// The outages that the last run left, and at the end the ones that this run leaves.
    var ongoingOutages = OngoingOutages()
    /// The numbers of images by name of a variant that could not be made of their new source.
    private(set) var lostVariants: [String: Int] = [:]
    /// Whether a download was for several lines with different variants.
    private(set) var sharesDownloads = false
    private let observer: any RunObserving
    /// Whether the observer wanted results at the start, by ``Outcome/index``.
    private let wanted: [Bool]
    /// Unreported lines of warm entries: a range of the current batch's lines.
    private var warmLines: (lines: WarmLines, range: Range<Int>)?

    private let leavesShard: (@Sendable (String) -> Bool)?

    init(observer: any RunObserving, leavesShard: (@Sendable (String) -> Bool)? = nil) {
        self.observer = observer
        self.leavesShard = leavesShard
        wanted = Outcome.allCases.map(observer.wantsResults)
    }

    func wantsResults(of outcome: Outcome) -> Bool {
        wanted[outcome.index] && observer.wantsResults(of: outcome)
    }

    // MARK: Counts

    mutating func countRead(_ entries: Int) { counters.entriesRead += entries }
    mutating func countRequest() { counters.requests += 1 }
    mutating func countReceived(_ bytes: Int) { counters.bytesReceived += bytes }

    /// Counts cancelled entries without a result.
    mutating func countCancelled(_ entries: Int) {
        counters.count(.cancelled, reason: nil, times: entries)
    }

    /// Counts cancelled later lines of keys without a result.
    mutating func countCancelled(_ lines: (all: Int, additions: Int)) {
        countCancelled(lines.all)
        if lines.additions > 0 { sharesDownloads = true }
    }

    mutating func countLost() { countCancelled(counters.entriesRead - counters.entriesDone) }

    func report(_ progress: RunProgress) { observer.progressed(progress) }

    // MARK: Outcomes

    /// Ends an entry without further work; `isKnown` if it failed in an earlier run for the same
    /// reason. All ends throw when the report cannot be written.
    mutating func finish(
        _ outcome: Outcome, reason: FailureReason? = nil, isKnown: Bool = false,
        result: () -> EntryResult
    ) throws {
        let isKnown = isKnown && outcome == .failed
        counters.count(outcome, reason: reason)
        if isKnown { counters.knownFailures += 1 }
        guard wantsResults(of: outcome) else { return }
        var result = result()
        result.isKnown = isKnown
        try report(result)
    }

    /// Ends an entry; `knowledge` is that of a failure. `end` is that of all lines of its key,
    /// `result` that of its own.
    mutating func finish(
        _ machine: EntryMachine, _ end: EntryEnd, _ result: EntryResult,
        _ knowledge: FailureKnowledge
    ) throws {
        switch end {
        case .stored(_, let stored):
            note(stored)
            if machine.entry.state.isSeeded, machine.attempts == 0 { counters.seeded += 1 }
        case .failed(let failed): note(failed.stored)
        case .excluded, .cancelled: break
        case .requested:
            if result.exchange?.cacheStatus?.isHit == true { counters.edgeHits += 1 }
        }
        if let leavesShard, let url = result.exchange?.finalURL, leavesShard(url) {
            counters.redirectsElsewhere += 1
        }
        noteHost(of: machine, end)
        // A line without the failed variants has another outcome, and is not counted as known.
        if result.outcome == .failed { noteKnown(knowledge, at: machine.entry.url.origin) }
        try finish(result, isKnown: knowledge != .new)
    }

    /// Ends another line of an entry's key, with variants of its own.
    mutating func finishAddition(_ result: EntryResult, isKnown: Bool) throws {
        sharesDownloads = true
        try finish(result, isKnown: isKnown)
    }

    private mutating func finish(_ result: EntryResult, isKnown: Bool) throws {
        try finish(result.outcome, reason: result.reason, isKnown: isKnown) { result }
    }

    mutating func count(_ others: [OtherVariant]) {
        for other in others {
            if let image = other.image {
                counters.variantsMade += 1
                counters.bytesStored += image.size.bytes
            } else {
                lostVariants[other.variant.name.text, default: 0] += 1
            }
        }
    }

    private mutating func note(_ stored: EntryEnd.Stored) {
        // Variants with the same bytes share one file.
        var files: Set<ContentDigest> = []
        var isDecoded = true
        defer { if !isDecoded { counters.notDecoded += 1 } }
        for case .made(let image) in stored.variants {
            isDecoded = isDecoded && image.isDecoded
            counters.variantsMade += 1
            if files.insert(image.digest).inserted { counters.bytesStored += image.size.bytes }
        }
    }

    private mutating func noteHost(of machine: EntryMachine, _ end: EntryEnd) {
        if case .cancelled = end { return }
        let host = machine.entry.url.origin
        let isStored = machine.entry.resource != nil
        switch end {
        case .requested: noteSuccess(host, isStored)
        case .stored where machine.hadTurn: noteSuccess(host, isStored)
        case .failed(let failed):
            let reason = failed.failure.reason
            switch failed.blame {
            case .origin where machine.hadTurn:
                noteFailure(host, reason, machine.httpStatus, isStored)
                noteFailing(host, reason, machine.httpStatus)
            // The origin has validated the original; the failure is local.
            case .ours where machine.hadTurn: noteSuccess(host, isStored)
            case .hostGivenUp:
                // It would have failed like the others of its host.
                noteFailure(host, reason, reason == .httpStatus ? 503 : nil, isStored)
            case .origin, .ours, .local: break
            }
        // The origin has responded.
        case .excluded(_, reason: .some) where machine.httpStatus != nil:
            noteSuccess(host, isStored)
        case .stored, .excluded, .cancelled: break
        }
    }

    private mutating func noteSuccess(_ host: String, _ isStored: Bool) {
        outageRule.succeeded(host: host)
        faults.succeeded(host: host, isStored: isStored)
    }

    private mutating func noteFailure(
        _ host: String, _ reason: FailureReason, _ status: Int?, _ isStored: Bool
    ) {
        outageRule.failed(host: host, reason: reason, httpStatus: status)
        faults.failed(host: host, reason: reason, httpStatus: status, isStored: isStored)
    }

    /// Notes an entry that ends blacklisted by an earlier failure.
    mutating func noteBlacklisted(
        _ reason: FailureReason, _ status: Int?, at host: String, isStored: Bool
    ) {
        faults.failed(
            host: host, reason: reason, httpStatus: status, isStored: isStored,
            isRequested: false)
    }

    private static let maximumKnownHosts = 4096

    private mutating func noteKnown(_ knowledge: FailureKnowledge, at host: String) {
        guard knowledge != .new,
            troubles.known[host] != nil || troubles.known.count < Ledger.maximumKnownHosts
        else { return }
        troubles.known[host, default: (0, 0)].all += 1
        if knowledge == .ofHost { troubles.known[host]?.ofHost += 1 }
    }

    private static let maximumFailingHosts = 64

    private mutating func noteFailing(_ host: String, _ reason: FailureReason, _ status: Int?) {
        guard troubles.failing.count < Ledger.maximumFailingHosts,
            RetryPolicy.isRetried(reason, httpStatus: status)
        else { return }
        troubles.failing[host] = reason
    }

    /// Decides which outages are reported, and counts failures again that are new after all.
    /// `storedListed` is that of ``HostFaultRule/share(of:storedListed:)``.
    mutating func judgeOutages(
        at now: Timestamp, storedListed: (_ host: String, _ limit: Int) throws -> Int
    ) rethrows -> OutageReport {
        let report = try OutageReport(
            after: ongoingOutages, outageRule, faults, failing: troubles.failing,
            explained: troubles.known.filter { $0.value.ofHost > 0 }.keys, at: now,
            storedListed: storedListed)
        let outageHosts = report.isKnown ? [] : Set(report.outage?.hosts ?? [])
        for (host, counts) in troubles.known
        where report.hasNewsEverywhere || report.hostsWithNews.contains(host) {
            counters.knownFailures -=
                outageHosts.contains(host) || report.hasNewsEverywhere ? counts.all : counts.ofHost
        }
        ongoingOutages = report.ongoing
        return report
    }

    /// The outage that explains failures, see ``OutageRule``.
    var outage: Outage? { outageRule.outages().first }

    func hasSuccess(at host: String?) -> Bool { outageRule.hasSuccess(at: host) }

    func isExplained(
        _ reason: FailureReason, httpStatus: Int?, host: String, by outage: Outage
    ) -> Bool {
        outageRule.explains(reason, httpStatus: httpStatus, host: host, by: outage)
    }

    // MARK: Reports

    /// Reports a fresh entry of the current batch by its prepared line, together with adjacent
    /// lines.
    mutating func finishFresh(_ number: Int, _ lines: WarmLines) throws {
        counters.count(.fresh, reason: nil)
        let line = lines[record: number]
        if let waiting = warmLines, waiting.range.upperBound == line.lowerBound {
            warmLines = (lines, waiting.range.lowerBound..<line.upperBound)
        } else {
            try reportWarmLines()
            warmLines = (lines, line)
        }
    }

    /// Reports the collected lines, before anything else is reported and at the end of each batch.
    mutating func reportWarmLines() throws {
        guard let waiting = warmLines else { return }
        warmLines = nil
        try observer.warmEntriesFinished(waiting.lines.bytes[waiting.range])
    }

    private mutating func report(_ result: EntryResult) throws {
        try reportWarmLines()
        try observer.entryFinished(result)
    }
}

/// Hosts with failures of a run.
private struct HostTroubles {
    /// Hosts with a transient failure; some may have successes, too.
    var failing: [String: FailureReason] = [:]
    /// Failures that count as known, by host: all, and the ones that its trouble explains.
    var known: [String: (all: Int, ofHost: Int)] = [:]
}

extension RunSummary {
    mutating func note(_ report: OutageReport) {
        outage = report.outage
        isOutageKnown = report.isKnown
        endedOutages = report.ended.map(\.endText)
        hostsWithNews = report.hostsWithNews
    }
}
