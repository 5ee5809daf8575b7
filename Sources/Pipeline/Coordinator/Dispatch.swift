import EntryLifecycle
import EntryQueue
import HTTPSemantics
import PrefetchModel
import Scheduling
import Transfers

/// Decides which entry has its turn next: the queues, the hosts in use, and the retries.
///
/// Its only I/O is the queue's file, and it has no clock: methods take the time.
struct Dispatch {
    typealias Instant = ContinuousClock.Instant

    private var jobs: JobLimit
    private let sleepingCapacity: Int
    private let store: EntryStore
    var scheduler: Scheduler
    /// Entries with variants to make from a stored original; they need no host.
    private var derivations: Scheduler
    private var retries: RetryPolicy
    private var random: any RandomNumberGenerator
    private(set) var starts = 0
    private var uses: [Int: HostOccupation] = [:]
    /// The last result of ``largestHoldUp(at:)``, which visits all hosts.
    private var lastHoldUp: (host: HoldUp?, nextSearch: Instant?)
    private static let holdUpInterval = Duration.seconds(1)
    /// Shorter pauses are the usual ones between requests.
    private static let shownPause = Duration.seconds(1)
    /// Whether a host has refused a request for its pace since the hosts were stored.
    private var hasNewRefusal = false
    private var nextStorage: Instant?
    private static let storageInterval = Duration.seconds(5)

    /// The minimum of ``sleepingCapacity``, with any capacity of the queue.
    private static let minimumSleeping = 10_000

    private struct HostOccupation {
        let start: Scheduler.Start
        let job: HostPacing.NumberedStart
    }

    init(
        _ configuration: RunConfiguration, store: EntryStore, random: some RandomNumberGenerator
    ) {
        let (order, hosts) = (configuration.queue.order, configuration.hosts)
        jobs = configuration.jobLimit
        sleepingCapacity = max(configuration.queue.capacity, Dispatch.minimumSleeping)
        self.store = store
        scheduler = Scheduler(
            order: order, rules: hosts.hostRules,
            rulesByHost: hosts.configurations.map(\.hosts.hostRules), parts: hosts.parts,
            storage: store)
        derivations = Scheduler(
            order: order, rules: HostPacing.PaceRules(concurrency: .max), storage: store)
        retries = hosts.retryPolicy
        self.random = random
    }

    // MARK: Waiting

    /// Whether the queues hold nothing but the old places of raised entries: one for each that has
    /// started, and two for each other.
    var isEmpty: Bool {
        (scheduler.isEmpty || scheduler.count == store.raisedCount) && derivations.isEmpty
    }

    /// Adds a new entry. After an error it still waits in memory.
    mutating func push(_ identifier: Int, _ entry: Entry, at now: Instant) throws {
        switch entry.state {
        case .missing, .stale:
            try scheduler.push(
                identifier, priority: entry.priority, host: entry.url.origin, at: now)
        case .derivable, .seeded, .extended:
            try derivations.push(identifier, priority: entry.priority, host: "", at: now)
        case .invalid, .fresh, .unannotated, .blacklisted:
            preconditionFailure("such an entry does not wait")
        }
    }

    /// Lets an entry wait for the host of its next transfer. After an error it still waits in
    /// memory.
    mutating func requeue(
        _ identifier: Int, _ machine: EntryMachine, _ placement: QueuePlacement, at now: Instant
    ) throws {
        store.waits(identifier)
        let place: (Scheduler.Placement, Instant?) =
            switch placement {
            case .next: (.next, nil)
            case .place: preconditionFailure("a refused entry is put back with its start")
            case .retry(after: let delay): (.retry, now + delay)
            }
        try scheduler.push(
            identifier, priority: machine.entry.priority, host: machine.target.origin,
            placement: place.0, notBefore: place.1, at: now)
    }

    mutating func raise(_ identifier: Int, to priority: Priority, at now: Instant) throws {
        guard let entry = store[identifier]?.entry, entry.priority < priority,
            entry.state.asksOrigin, store.canBeRaised(identifier)
        else { return }
        // Its old place is skipped when its turn arrives.
        store.raise(identifier, to: priority)
        try scheduler.push(identifier, priority: priority, host: entry.url.origin, at: now)
    }

    /// Removes and returns any entry, to end everything that waits; nil when nothing does.
    mutating func removeNext() throws -> Int? {
        while let identifier = try scheduler.removeNext() ?? derivations.removeNext() {
            if !store.dropPlace(of: identifier) { return identifier }
        }
        return nil
    }

    /// Removes all spilled entries, unread. Returns their number, and entries in memory that no
    /// longer have a place in a queue.
    mutating func dropSpilled() -> (count: Int, placeless: [Int]) {
        scheduler.dropSpilled()
        derivations.dropSpilled()
        return store.dropSpilled()
    }

    // MARK: Turns

    /// Transfers that are running or about to.
    var inFlight: Int { uses.count }
    var hasRoomForTransfer: Bool { uses.count < jobs.limit }

    /// Whether no entry that had its turn runs or waits, except in the spill file.
    var hasOnlyNewEntries: Bool {
        uses.isEmpty && scheduler.sleepingCount == 0 && scheduler.returnedInMemory == 0
    }

    mutating func hasReady(at now: Instant) -> Bool { scheduler.hasReady(at: now) }
    mutating func hasDerivation(at now: Instant) -> Bool { derivations.hasReady(at: now) }

    mutating func nextReady(at now: Instant) throws -> Int? {
        while let start = try scheduler.popReady(at: now) {
            if isPlaceOfRaised(start.entry, start.place) {
                scheduler.withdrew(start.host, at: now)
                continue
            }
            uses[start.entry] = HostOccupation(start: start, job: jobs.started(running: uses.count))
            return start.entry
        }
        return nil
    }

    /// Counts the first request of an entry, and returns its position among the run's starts.
    mutating func countStart(of machine: EntryMachine?) -> Int {
        if machine?.hadTurn != true { starts += 1 }
        return starts
    }

    func isAlone(_ identifier: Int) -> Bool { uses[identifier]?.start.isAlone == true }

    /// Returns the entries in memory that follow an entry at its host; place 0 is the next one.
    func upcoming(after identifier: Int, _ places: Range<Int>) -> [Int] {
        guard let use = uses[identifier] else { return [] }
        return scheduler.upcoming(at: use.start.host, places)
    }

    /// Removes and returns the next entry to be made from a stored original; nil when none waits.
    mutating func nextDerivation(at now: Instant) throws -> Int? {
        guard let start = try derivations.popReady(at: now) else { return nil }
        derivations.finished(start.host, of: "", .answered, at: now)
        return start.entry
    }

    mutating func nextGivenUp(
        at now: Instant
    ) throws -> (identifier: Int, cause: HostPacing.GiveUpCause)? {
        while let (identifier, place, cause) = try scheduler.popGivenUp(at: now) {
            if !isPlaceOfRaised(identifier, place) { return (identifier, cause) }
        }
        return nil
    }

    /// Whether this is the old place of a raised entry that has had its turn since.
    private func isPlaceOfRaised(_ identifier: Int, _ place: Scheduler.Place) -> Bool {
        guard place.isFirstTurn, store.isRaised(identifier) else { return false }
        if let machine = store[identifier],
            machine.isWaiting || place.isFirstTurn(of: machine.entry.priority)
        {
            return false
        }
        return store.dropPlace(of: identifier)
    }

    /// Ends an entry's use of its host, with the transfer's result. For a refusal that may be
    /// due to the pace, returns the start and the cause, see ``putBack(_:at:)``.
    mutating func finished(
        _ identifier: Int, at origin: String, _ signal: HostPacing.Signal,
        _ observation: HostPacing.Observation, at now: Instant
    ) -> (start: Scheduler.Start, isForPace: Bool)? {
        guard let use = uses.removeValue(forKey: identifier) else { return nil }
        if case .answered = signal, let latency = observation.latency {
            jobs.answered(after: latency, use.job)
        }
        let cause = scheduler.finished(use.start.host, of: origin, signal, observation, at: now)
        if case .pace = cause { hasNewRefusal = true }
        return switch cause {
        case .pace: (use.start, true)
        case .unclear: (use.start, false)
        case .otherwise: nil
        }
    }

    mutating func putBack(_ start: Scheduler.Start, at now: Instant) {
        store.waits(start.entry)
        scheduler.putBack(start, at: now)
    }

    mutating func withdrew(_ identifier: Int, at now: Instant) {
        guard let use = uses.removeValue(forKey: identifier) else { return }
        scheduler.withdrew(use.start.host, at: now)
    }

    /// Returns the earliest time at which an entry may start or be given up; nil when that takes
    /// another event.
    mutating func nextStartTime(
        hasRoomForImage: Bool, hasRoomForLookup: Bool, at now: Instant
    ) -> Instant? {
        if scheduler.hasGivenUp, hasRoomForLookup { return now }
        guard hasRoomForImage, hasRoomForTransfer else { return nil }
        // Starts may have moved entries to other hosts.
        return scheduler.hasReady(at: now) ? now : scheduler.nextWakeTime
    }

    // MARK: Retries

    /// Decides on a failed attempt at a URL; a retry is counted.
    mutating func decideRetry(
        of url: RequestURL, _ reason: FailureReason, httpStatus: Int?, attempts: Int
    ) -> RetryPolicy.RetryDecision {
        let starts = starts
        let hasRoom = scheduler.sleepingCount < sleepingCapacity && store.hasRoomForUnspilled
        func decide(
            _ retries: inout RetryPolicy, _ random: inout some RandomNumberGenerator
        ) -> RetryPolicy.RetryDecision {
            retries.decide(
                reason, httpStatus: httpStatus, attempts: attempts, starts: starts,
                of: url, hasRoom: hasRoom, using: &random)
        }
        return decide(&retries, &random)
    }

    mutating func choosingAtRandom<Choice>(
        _ choose: (inout any RandomNumberGenerator) -> Choice
    ) -> Choice {
        choose(&random)
    }

    mutating func withdrawRetry() { retries.withdraw() }

    // MARK: Hosts

    /// Whether the hosts are to be stored now, because one has refused requests some seconds ago.
    mutating func takesStorage(at now: Instant) -> Bool {
        guard hasNewRefusal else { return false }
        if let nextStorage, nextStorage <= now {
            hasNewRefusal = false
            self.nextStorage = now + Dispatch.storageInterval
            return true
        }
        nextStorage = nextStorage ?? now + Dispatch.storageInterval
        return false
    }

    /// Returns the host that delays the run most; nil for none. Searched once a second.
    mutating func holdUp(at now: Instant) -> HoldUp? {
        if lastHoldUp.nextSearch.map({ $0 <= now }) ?? true {
            lastHoldUp = (largestHoldUp(at: now), now + Dispatch.holdUpInterval)
        }
        return lastHoldUp.host
    }

    private func largestHoldUp(at now: Instant) -> HoldUp? {
        guard let load = scheduler.largestLoad else { return nil }
        // The scheduler knows hosts by number; an entry has the name.
        let entry = load.waitingEntry ?? uses.first { $0.value.start.host.isOf(load) }?.key
        guard let machine = entry.flatMap({ store[$0] }) else { return nil }
        return (
            host: machine.target.origin, perSecond: nil, inFlight: load.running,
            waiting: load.waiting,
            pause: load.wakeTime.map { $0 - now }.flatMap { $0 < Dispatch.shownPause ? nil : $0 }
        )
    }
}

extension HostPacing.Observation {
    init(_ completion: TransferCompletion, isRepeated: Bool) {
        self = .nothing
        if case .response(let response, _) = completion.result {
            quota = RateLimitFields.quota(of: response.fields, receivedAt: response.receivedAt)
        }
        latency = completion.connection?.timeToFirstByte
        self.isRepeated = isRepeated
        isShared = completion.connection?.version == .http2
    }
}

extension HostPacing.Signal {
    init(_ result: TransferCompletion.TransferResult) {
        switch result {
        case .cancelled:
            self = .nothing
        case .refused:
            self = .answered
        case .response(let response, _):
            guard Response.isRefusalForPace(response.status) else {
                self = .answered
                return
            }
            self = .overloaded(
                retryAfter: RetryAfter.delay(of: response.fields, receivedAt: response.receivedAt))
        case .failure(let failure):
            // A host that began to respond is reachable.
            self = failure.httpStatus == nil ? HostPacing.Signal(ofUnanswered: failure) : .brokeOff
        }
    }

    private init(ofUnanswered failure: TransferFailure) {
        switch failure.persistence {
        case .absent: self = .absent(failure.reason)
        case .untrusted: self = .untrusted
        case .unknown:
            switch failure.reason {
            case .dns, .connect, .tls, .timeout, .stalled, .interrupted:
                self = .unreachable(failure.reason)
            case .invalidEntry, .unsupportedScheme, .refusedAddress, .redirect, .httpStatus,
                .tooLarge, .notAnImage, .corruptImage, .tooManyPixels, .unsupportedImage,
                .uncacheable, .otherFormat, .belowMinimumSize, .overMaximumAspect,
                .belowMinimumBytes, .notSelected, .robots, .bodyFilter, .disk, .internal:
                self = .nothing
            }
        }
    }
}
