package import CacheStorage
import EntryLifecycle
import EntryQueue
package import PrefetchModel
import Transfers

/// The work of a run over the lists, by the cache as it is now.
package struct RunPlan: Sendable {
    package enum LineState: String, CaseIterable, Sendable {
        case fresh
        case new
        case stale
        /// Stored without one of its variants, which needs a request.
        case incomplete
        /// Its missing variants can be made from stored files.
        case derivable
        case seeded
        case blacklisted
        /// An earlier line has its key.
        case duplicate
        case excluded
        /// The line is not an entry, or contradicts an earlier one.
        case invalid

        /// Whether the first line of a key in this state leads to a request.
        var isRequested: Bool {
            switch self {
            case .new, .stale, .incomplete: true
            case .fresh, .derivable, .seeded, .blacklisted, .duplicate, .excluded, .invalid: false
            }
        }
    }

    package struct PlannedHost: Sendable {
        package let name: String
        /// Without redirects and retries.
        package internal(set) var requests = 0
        /// Requests for images that are not stored yet; others may bring a 304.
        package internal(set) var new = 0
        /// The size of the new images, if they are like the stored ones of the host; nil if none is
        /// stored.
        package internal(set) var expectedBytes: Int?
        /// The time at the pace that the host accepted last; nil for an unknown host.
        package internal(set) var expectedTime: Duration?
        /// The earliest time of a request; nil if nothing delays it.
        package internal(set) var coolingUntil: Timestamp?
    }

    package struct PlannedLine: Sendable {
        package let manifest: String
        package let line: Int
        /// May hold secrets.
        package let url: String
        package let key: String
        package let state: LineState
        /// The reason for the state; nil for fresh and new entries.
        package let message: String?
    }

    package internal(set) var entries = 0
    private var counts = [LineState: Int]()
    /// The earliest end of a blacklisting; nil without any.
    package internal(set) var nextRetry: Timestamp?
    /// The hosts with requests, by falling number, then by name.
    package internal(set) var hosts: [PlannedHost] = []
    /// New images that are not requested, because the cache is full.
    package internal(set) var withoutRoom = 0
    /// Requests beyond the limit of the run, which it would leave.
    package internal(set) var left = 0
    /// The run's exit status if every transfer succeeded.
    package internal(set) var exitStatus: Int32 = 0

    package var requests: Int { hosts.reduce(0) { $0 + $1.requests } }

    package subscript(state: LineState) -> Int { counts[state, default: 0] }

    mutating func count(_ state: LineState) {
        entries += 1
        counts[state, default: 0] += 1
    }
}

/// Looks all entries up as a run does, and counts the steps that the run would take.
///
/// Sends nothing, writes nothing into the cache, and takes no lock.
package struct RunPlanner {
    private let rules: RunRules
    private let source: CacheCatalog?
    private let seed: SeedCache?
    private let now: Timestamp
    private let store: EntryStore
    private var intake: Intake
    private var plan = RunPlan()
    private var counters = RunCounters()
    private var hosts: [String: RunPlan.PlannedHost] = [:]
    private var listed = ResourceSet()
    /// The hosts of images that add to a cache with a size limit.
    private var additions: [(host: String, isNew: Bool)] = []
    private let receive: ((RunPlan.PlannedLine) -> Void)?

    /// `source` is nil if there is no cache. Lists with thousands of different variants need a
    /// temporary file in `temporaryFolder`.
    package init(
        _ configuration: RunConfiguration, source: CacheCatalog?, seed: SeedCache? = nil,
        temporaryFolder: String, at now: Timestamp, receive: ((RunPlan.PlannedLine) -> Void)?
    ) {
        self.source = source
        self.seed = seed
        self.now = now
        self.receive = receive
        rules = RunRules(
            configuration, temporaryFolder: temporaryFolder,
            cacheDirectory: source?.directory.path ?? "")
        store = EntryStore(
            capacity: configuration.queue.capacity, folder: temporaryFolder,
            variants: rules.variants)
        intake = Intake(
            store: store, variants: rules.variants, random: SystemRandomNumberGenerator())
    }

    private var configuration: RunConfiguration { rules.configuration }

    package mutating func plan(_ entries: some EntryReading) throws -> RunPlan {
        let gap = try readAll(entries)
        try leaveImagesWithoutRoom(gap)
        plan.hosts = hosts.values.filter { $0.requests > 0 }.sorted {
            ($1.requests, $0.name) < ($0.requests, $1.name)
        }
        try addExpectations()
        if let limit = configuration.runLimits.entries { plan.left = max(0, plan.requests - limit) }
        counters.entriesRead = plan.entries
        plan.exitStatus =
            !configuration.exit.isSuccess(counters) ? 1 : plan.left > 0 ? 3 : 0
        return plan
    }

    private mutating func readAll(_ entries: some EntryReading) throws -> ListGap? {
        let mailbox = Mailbox()
        let now = now
        let lookup = try EntryLookup(
            entries, source: source, seed: seed, rules: rules, wantsFreshImages: false,
            lineWriter: nil, mailbox: mailbox, wallClock: { now })
        try lookup.start()
        defer {
            mailbox.endReading()
            lookup.finish()
        }
        while true {
            switch mailbox.take(wantsInput: true, until: nil).input {
            case .batch(let looked): try read(looked)
            case .failed(let error): throw error
            case .ended(let gap): return gap
            case nil: continue
            }
        }
    }

    private mutating func read(_ looked: LookedUpBatch) throws {
        let batch = looked.batch
        looked.noteListed(in: &listed)
        try batch.text.withUnsafeBytes { text in
            for (number, record) in batch.records.enumerated() {
                let problem =
                    record.problem < 0
                    ? looked.objections[number] : batch.problems[record.problem].failure
                if let problem {
                    let state: RunPlan.LineState = problem.reason.isExclusion ? .excluded : .invalid
                    note(state, problem.message, reason: problem.reason, record, batch, text)
                    continue
                }
                var entry = RawEntry(
                    manifest: batch.manifest, record: record,
                    fingerprint: looked.findings[number].fingerprint,
                    extras: batch.extras(of: record), text: text)
                let arrival = try intake.arrival(of: &entry, number, in: looked)
                read(entry, arrival, number, of: looked)
            }
        }
    }

    private mutating func read(
        _ entry: RawEntry, _ arrival: Intake.Arrival, _ number: Int, of looked: LookedUpBatch
    ) {
        switch arrival {
        case .warm, .warmAddition:
            note(.fresh, nil, entry.record, looked.batch, entry.text)
        case .duplicate, .warmDuplicate, .addition:
            note(.duplicate, "an earlier line has its key", entry.record, looked.batch, entry.text)
        case .refused(let message):
            note(.invalid, message, reason: .invalidEntry, entry.record, looked.batch, entry.text)
        case .new, .blacklisted:
            readNew(entry, looked.findings[number], looked)
        }
    }

    private mutating func readNew(
        _ entry: RawEntry, _ finding: EntryFinding, _ looked: LookedUpBatch
    ) {
        let identifier = intake.identifier(for: entry)
        var (state, reason) = (finding.state.planned, FailureReason?.none)
        var message = finding.cause(at: now, rules.variants(of: entry.extras))
        if let number = finding.blacklisting {
            let failure = looked.blacklistedBy[number]
            message = failure.blacklistMessage
            if failure.reason.isExclusion { (state, reason) = (.excluded, failure.reason) }
            if state == .blacklisted, let end = failure.blacklistedUntil {
                plan.nextRetry = min(plan.nextRetry ?? end, end)
            }
        } else if let problem = fileProblem(of: entry, state) {
            (state, reason, message) = (.invalid, problem.reason, problem.message)
        } else if configuration.lifetimes.isOffline, state != .fresh, let cause = message {
            (state, message) = (.excluded, "\(cause) (--offline)")
        }
        if state == .excluded || state == .blacklisted { intake.noteUnrequested(identifier) }
        note(state, message, reason: reason, entry.record, looked.batch, entry.text)
        guard state.isRequested else { return }
        let host = RequestURL(normalized: entry.url).origin
        hosts[host, default: RunPlan.PlannedHost(name: host)].requests += 1
        if state == .new { hosts[host]?.new += 1 }
        if configuration.sizeLimit != nil, finding.state.addsImages(to: finding.resource) {
            additions.append((host, state == .new))
        }
    }

    /// Why the file of an entry cannot be read; nil for another URL, and for an entry with others.
    private func fileProblem(of entry: RawEntry, _ state: RunPlan.LineState) -> Failure? {
        let url = RequestURL(normalized: entry.url)
        guard state.isRequested, url.isFile, entry.extras?.alternatives.isEmpty ?? true else {
            return nil
        }
        do {
            _ = try LocalFile(at: url, below: configuration.requests.filesBelow)
            return nil
        } catch {
            return error
        }
    }

    /// Takes out the requests that a run does not make in a full cache. They fail, and were told.
    private mutating func leaveImagesWithoutRoom(_ gap: ListGap?) throws(StorageError) {
        guard let source, let limit = configuration.sizeLimit else { return }
        let isWhole = configuration.storing.allowsPartialLists || gap == nil
        var gate = RoomGate(
            try source.fullness(within: limit, listed: isWhole ? listed : nil),
            newImages: additions.count)
        for (number, (host, isNew)) in additions.enumerated()
        where !gate.admits(number, isFull: false) {
            hosts[host]?.requests -= 1
            if isNew { hosts[host]?.new -= 1 }
            plan.withoutRoom += 1
        }
        counters.count(.downloaded, times: -plan.withoutRoom)
        counters.count(.failed, reason: .disk, times: plan.withoutRoom)
        counters.knownFailures += plan.withoutRoom
    }

    private mutating func note(
        _ state: RunPlan.LineState, _ message: String?, reason: FailureReason? = nil,
        _ record: EntryBatch.Record, _ batch: EntryBatch, _ text: UnsafeRawBufferPointer
    ) {
        plan.count(state)
        counters.count(state.outcome, reason: reason)
        receive?(
            RunPlan.PlannedLine(
                manifest: batch.manifest, line: record.line, url: text.string(record.url),
                key: text.string(record.key), state: state, message: message))
    }

    /// Adds the knowledge of earlier runs about the requests of each host.
    private mutating func addExpectations() throws(StorageError) {
        guard let source, !plan.hosts.isEmpty else { return }
        let known = try source.knowledge(ofHosts: plan.hosts.map(\.name), at: now)
        for (index, knowledge) in known.enumerated() {
            let (requests, new) = (plan.hosts[index].requests, plan.hosts[index].new)
            plan.hosts[index].expectedBytes = knowledge.meanBytes.map { Int($0 * Double(new)) }
            plan.hosts[index].expectedTime = knowledge.state?.time(forRequests: requests)
            plan.hosts[index].coolingUntil = knowledge.state?.coolingUntil
        }
    }
}

extension HostState {
    /// Returns the time of `count` requests at this pace, without that of their bodies; nil if no
    /// pace is known.
    fileprivate func time(forRequests count: Int) -> Duration? {
        let paced = interval.map { $0 * max(0, count - 1) }
        let answered = latency.map { $0 * Double(count) / Double(concurrency ?? 1) }
        return [paced, answered].compactMap(\.self).max()
    }
}

extension RunPlan.LineState {
    fileprivate var outcome: Outcome {
        switch self {
        case .fresh, .seeded: .fresh
        case .new, .stale, .incomplete: .downloaded
        case .derivable: .derived
        case .blacklisted: .blacklisted
        case .duplicate: .duplicate
        case .excluded: .excluded
        case .invalid: .failed
        }
    }
}

extension EntryState {
    fileprivate var planned: RunPlan.LineState {
        switch self {
        case .invalid: .invalid
        case .fresh, .unannotated: .fresh
        case .stale(.incomplete): .incomplete
        case .stale: .stale
        case .derivable, .extended: .derivable
        case .seeded: .seeded
        case .missing: .new
        case .blacklisted: .blacklisted
        }
    }
}
