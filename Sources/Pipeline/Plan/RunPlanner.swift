package import CacheStorage
import EntryQueue
package import PrefetchModel
import Threading

/// Looks all entries up as a run does, and counts what the run would do with them.
///
/// Sends nothing, writes nothing into the cache, and takes no lock.
package struct RunPlanner {
    private let rules: RunRules
    private let source: LookupSource?
    private let seed: SeedCache?
    private let now: Timestamp
    private let store: EntryStore
    private var intake: Intake
    private var plan = RunPlan()
    /// For the exit status.
    private var counters = RunCounters()
    private var hosts: [String: RunPlan.Host] = [:]
    /// Receives each line; nil without a receiver.
    private let receive: ((RunPlan.Line) -> Void)?

    /// `source` is nil if there is no cache. Lists with thousands of different variants need a
    /// temporary file in `temporaryFolder`.
    package init(
        _ configuration: RunConfiguration, source: LookupSource?, seed: SeedCache? = nil,
        temporaryFolder: String, at now: Timestamp, receive: ((RunPlan.Line) -> Void)?
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

    /// Reads all entries and returns the plan.
    package mutating func callAsFunction(
        _ entries: some EntryReading
    ) throws(PlanError) -> RunPlan {
        do throws(FatalError) {
            try readAll(entries)
        } catch {
            throw PlanError(error)
        }
        plan.hosts = hosts.values.sorted {
            ($1.requests, $0.name) < ($0.requests, $1.name)
        }
        do throws(StorageError) {
            try addExpectations()
        } catch {
            throw PlanError(FatalError(error))
        }
        if let limit = configuration.runLimits.entries { plan.left = max(0, plan.requests - limit) }
        counters.entriesRead = plan.entries
        plan.exitStatus =
            !configuration.exit.isSuccess(counters) ? 1 : plan.left > 0 ? 3 : 0
        return plan
    }

    private mutating func readAll(_ entries: some EntryReading) throws(FatalError) {
        let mailbox = Mailbox()
        let lookup: EntryLookup
        do throws(StorageError) {
            let now = now
            lookup = try EntryLookup(
                entries, source: source, seed: seed, rules: rules, wantsFreshImages: false,
                lineWriter: nil, mailbox: mailbox, wallClock: { now })
        } catch {
            throw FatalError(error)
        }
        do throws(UserError) {
            try lookup.start()
        } catch {
            throw FatalError(error)
        }
        defer {
            mailbox.endReading()
            lookup.finish()
        }
        while true {
            switch mailbox.take(wantsInput: true, until: nil).input {
            case .batch(let looked): try read(looked)
            case .failed(let error): throw error
            case .ended: return
            case nil: continue
            }
        }
    }

    private mutating func read(_ looked: LookedUpBatch) throws(FatalError) {
        let batch = looked.batch
        let failure = batch.text.withUnsafeBytes { text -> FatalError? in
            for (number, record) in batch.records.enumerated() {
                guard record.problem < 0 else {
                    let problem = batch.problems[record.problem].failure
                    let state: RunPlan.State = problem.reason.isExclusion ? .excluded : .invalid
                    note(state, problem.message, reason: problem.reason, record, batch, text)
                    continue
                }
                var entry = RawEntry(
                    manifest: batch.manifest, record: record,
                    fingerprint: looked.fingerprints[number], extras: batch.extras(of: record),
                    text: text)
                do throws(SpillError) {
                    let arrival = try intake.arrival(of: &entry, number, in: looked)
                    read(entry, arrival, number, of: looked)
                } catch {
                    return FatalError(spilling: error)
                }
            }
            return nil
        }
        if let failure { throw failure }
    }

    private mutating func read(
        _ entry: RawEntry, _ arrival: Intake.Arrival, _ number: Int, of looked: LookedUpBatch
    ) {
        switch arrival {
        case .warm, .warmAddition:
            note(.fresh, nil, entry, looked.batch)
        case .duplicate, .warmDuplicate, .addition:
            note(.duplicate, "an earlier line has its key", entry, looked.batch)
        case .conflicting(let since):
            note(
                .invalid, Intake.conflict(since: since), reason: .invalidEntry, entry, looked.batch)
        case .overfull(let since):
            note(
                .invalid, Intake.overflow(since: since), reason: .invalidEntry, entry, looked.batch)
        case .new, .blacklisted:
            readNew(entry, looked.states[number], looked)
        }
    }

    private mutating func readNew(
        _ entry: RawEntry, _ entryState: EntryState, _ looked: LookedUpBatch
    ) {
        let identifier = intake.identifier(for: entry)
        var (state, reason) = (entryState.planned, FailureReason?.none)
        var message = entryState.cause(at: now)
        if case .blacklisted(let index, _) = entryState {
            let failure = looked.blacklistedBy[index]
            message = failure.blacklistMessage
            if failure.reason.isExclusion { (state, reason) = (.excluded, failure.reason) }
            if state == .blacklisted, let end = failure.blacklistedUntil {
                plan.nextRetry = min(plan.nextRetry ?? end, end)
            }
        } else if configuration.lifetimes.isOffline, state != .fresh, let cause = message {
            (state, message) = (.excluded, "\(cause) (--offline)")
        }
        if state == .excluded || state == .blacklisted { intake.noteUnrequested(identifier) }
        note(state, message, reason: reason, entry, looked.batch)
        guard state.isRequested else { return }
        let host = RequestURL(normalized: entry.url).origin
        hosts[host, default: RunPlan.Host(name: host)].requests += 1
        if state == .new { hosts[host]?.new += 1 }
    }

    private mutating func note(
        _ state: RunPlan.State, _ message: String?, reason: FailureReason? = nil,
        _ entry: RawEntry, _ batch: EntryBatch
    ) {
        note(state, message, reason: reason, entry.record, batch, entry.text)
    }

    private mutating func note(
        _ state: RunPlan.State, _ message: String?, reason: FailureReason?,
        _ record: EntryBatch.Record, _ batch: EntryBatch, _ text: UnsafeRawBufferPointer
    ) {
        plan.count(state)
        counters.count(state.outcome, reason: reason)
        receive?(
            RunPlan.Line(
                manifest: batch.manifest, line: record.line, url: text.string(record.url),
                key: text.string(record.key), state: state, message: message))
    }

    /// Adds what earlier runs suggest about the requests of each host.
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

extension RunPlan.State {
    /// The outcome if every transfer succeeded.
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
    fileprivate var planned: RunPlan.State {
        switch self {
        case .invalid: .invalid
        case .fresh: .fresh
        case .stale, .otherSource, .derivable(_, freshUntil: nil): .stale
        case .incomplete: .incomplete
        case .derivable: .derivable
        case .seeded: .seeded
        case .missing: .new
        case .blacklisted: .blacklisted
        }
    }
}
