package import PrefetchModel

/// The state machine of one entry, from the queue to its outcome.
///
/// A value without I/O or clock. Each method takes an event, changes the state and returns the
/// next action. An event that the state does not allow is a programming error and ends the
/// program. Each entry ends with exactly one ``EntryAction/finish(_:)``.
///
/// ```
/// waiting ─→ lookingUp ─→ asking ─→ processing ─→ committing ─→ ended
///               ↑            │  └→ savingPart │
///               └── queued ←─┴────────────────┘
/// ```
package struct EntryMachine: Sendable {
    package internal(set) var entry: Entry
    var state = EntryPhase.waiting
    /// Nil before its first turn.
    private var past: EntryPast?

    package init(_ entry: Entry) {
        self.entry = entry
    }

    // MARK: In the queue

    /// The state of a waiting entry: all that the spill file has to hold.
    package enum Rest: Sendable {
        case waiting
        case queued(History, Journey)
    }

    /// Nil while a stage works on the entry.
    package var rest: Rest? {
        switch state {
        case .waiting: .waiting
        case .queued: .queued(history, journey)
        case .lookingUp, .asking, .savingPart, .processing, .committing, .ended: nil
        }
    }

    package init(_ entry: Entry, rest: Rest) {
        self.init(entry)
        if case .queued(let history, let journey) = rest {
            state = .queued
            past = EntryPast(history, journey)
        }
    }

    package var isWaiting: Bool { if case .waiting = state { true } else { false } }

    /// Raises its priority. Only for an entry that waits for its first turn.
    package mutating func raise(to priority: Priority) {
        precondition(isWaiting, "an entry is raised before its first turn")
        entry.priority = priority
    }

    /// Whether its first turn has been counted among the starts.
    package var hadTurn: Bool { history.hadTurn }

    package var isLookingUp: Bool { if case .lookingUp = state { true } else { false } }
    package var isAsking: Bool { if case .asking = state { true } else { false } }
    package var isWriting: Bool { if case .committing = state { true } else { false } }

    /// Attempts so far, each from its listed URL on.
    package var attempts: Int { history.attempts }
    /// Refusals of its host for the pace, which are no attempts.
    package var refusals: Int { history.refusals }
    /// Whether its host has refused it, for the pace or at its last attempt.
    package var wasRefused: Bool { refusals > 0 || Response.isRefusalForPace(httpStatus) }
    package var httpStatus: Int? { history.httpStatus }
    /// The stored variants in use that it does not request.
    package var otherVariants: [RequestedVariant] { journey.findings.copy?.others ?? [] }
    /// The stored images by position of the variant; empty when nothing is stored.
    package var keptImages: [StoredImage?] {
        journey.findings.copy.map { $0.kept.map { $0?.image } } ?? []
    }

    package var waitsForRetry: Bool {
        if case .queued = state, case .retry = journey.turn { true } else { false }
    }

    /// The URL of its next, present or last transfer.
    package var target: RequestURL { isWaiting ? entry.url : journey.route.target }

    // MARK: Turns

    /// Begins its turn at its host, with a look-up. A caller that knows that nothing is stored may
    /// skip that and return `Findings.nothing`. `position` is among the run's starts.
    package mutating func start(position: Int, at now: ContinuousClock.Instant) -> EntryAction {
        checkTurn()
        if !history.hadTurn {
            history.start = position
            history.stages.queue = now - entry.queuedAt
        }
        switch journey.turn {
        case .firstAttempt, .retry:
            history.attempts += 1
            journey.turn = .sameAttempt
        case .sameAttempt: break
        }
        state = .lookingUp(then: .asking)
        return .lookUp
    }

    package mutating func startDeriving(at now: ContinuousClock.Instant) -> EntryAction {
        checkTurn()
        history.stages.queue = now - entry.queuedAt
        journey.turn = .sameAttempt
        state = .lookingUp(then: .deriving)
        return .lookUp
    }

    /// Ends it, because its host is given up. `text` names the host and the cause.
    package mutating func giveUp(
        _ reason: FailureReason, _ text: String, at now: ContinuousClock.Instant
    ) -> EntryAction {
        checkTurn()
        if isWaiting { history.stages.queue = now - entry.queuedAt }
        state = .lookingUp(then: .givingUp(Failure(reason, text)))
        return .lookUp
    }

    package mutating func annotate(
        resource: Int64, images: [StoredImage?], expiresAt: Timestamp, in context: EntryContext
    ) -> EntryAction {
        precondition(isWaiting, "a fresh entry is annotated before its first turn")
        let stored = EntryEnd.Stored(
            variants: images.allSatisfy { $0 != nil }
                ? images.compactMap { $0.map(VariantEnd.kept) } : [],
            expiresAt: expiresAt)
        return commit(
            .kept(resource: resource, nil, used: context.used), [], .stored(.fresh, stored), context
        )
    }

    private func checkTurn() {
        switch state {
        case .waiting, .queued: break
        case .lookingUp, .asking, .savingPart, .processing, .committing, .ended:
            preconditionFailure("an entry that does not wait has a turn")
        }
    }

    /// Whether ``EntryAction/lookUp`` needs a look-up; if not, the findings are known.
    package var needsLookup: Bool {
        if isLookingUp, case .due = journey.lookup { true } else { false }
    }

    // MARK: Ends

    package mutating func cancel() -> EntryAction { finish(.cancelled) }

    /// Ends it because its stage has failed, or could not take it.
    package mutating func abort(_ failure: Failure) -> EntryAction {
        finish(failure, .local)
    }

    package mutating func committed() -> EntryAction {
        guard case .committing(let end) = state else {
            preconditionFailure("a commit arrived for an entry that is not committing")
        }
        return finish(end)
    }

    mutating func finish(_ failure: Failure, _ blame: EntryEnd.Failed.Blame) -> EntryAction {
        finish(.failed(EntryEnd.Failed(failure: failure, blame: blame)))
    }

    /// Ends it. Its history stays readable.
    mutating func finish(_ end: EntryEnd) -> EntryAction {
        if case .ended = state { preconditionFailure("an entry has one outcome") }
        state = .ended
        return .finish(end)
    }

    var history: History {
        get { past?.history ?? History() }
        _modify {
            let past = ownPast()
            yield &past.history
        }
    }

    var journey: Journey {
        get { past?.journey ?? Journey(from: entry.url) }
        _modify {
            let past = ownPast()
            yield &past.journey
        }
    }

    private mutating func ownPast() -> EntryPast {
        if isKnownUniquelyReferenced(&past), let past { return past }
        let own = EntryPast(history, journey)
        past = own
        return own
    }
}

extension EntryMachine {
    /// The state of an entry, with the values that it needs there and no others. Boxed, so that a
    /// waiting entry is small.
    indirect enum EntryPhase: Sendable {
        case waiting
        /// Waits for another turn, at the host of the route's target.
        case queued
        case lookingUp(then: LookupPurpose)
        case asking(EntryRequest)
        /// The failure broke the body off; nil for a cancelled transfer.
        case savingPart(then: Failure?)
        case processing(Processing)
        /// The writer has a change of its row; the end follows the commit.
        case committing(EntryEnd)
        case ended
    }
}

enum LookupPurpose: Sendable {
    case asking
    case deriving
    /// The host is given up; the report mentions a stored copy, which stays.
    case givingUp(Failure)
}

struct Processing: Sendable {
    enum ProcessedSource: Sendable {
        /// `isContinued`: whether the body began with a stored part.
        case body(isContinued: Bool, ResourceValidation)
        /// The original of a copy that is fresh, or that this response has confirmed.
        case original(ResourceValidation?)
        case seed(ResourceValidation)
        case refusal
    }

    let source: ProcessedSource
    /// A remark for the report if the entry becomes warm; empty for none.
    var remark: String
}
