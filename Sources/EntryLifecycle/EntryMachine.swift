package import PrefetchModel

/// An entry's way from the queue to its outcome: what has to be done next after each thing that
/// happens to it.
///
/// A value without I/O or clock. Every method takes an event, goes to the next state and returns the
/// action that follows; an event that cannot come in a state is a mistake of the caller and ends the
/// program. Each entry ends with exactly one ``EntryAction/finish(_:)``.
///
/// ```
/// waiting ─→ lookingUp ─→ asking ─→ processing ─→ committing ─→ ended
///               ↑            │  └→ savingPart │
///               └── queued ←─┴────────────────┘
/// ```
package struct EntryMachine: Sendable {
    package private(set) var entry: Entry
    var state: EntryState

    package init(_ entry: Entry) {
        self.entry = entry
        state = .waiting
    }

    // MARK: In the queue

    /// Where an entry is that waits for a turn, which is all that a file has to hold of it.
    package enum Rest: Sendable {
        case waiting
        case queued(History, Journey)
    }

    /// Nil when something is being done for the entry.
    package var rest: Rest? {
        switch state {
        case .waiting: .waiting
        case .queued(let history, let journey): .queued(history, journey)
        case .lookingUp, .asking, .savingPart, .processing, .committing, .ended: nil
        }
    }

    /// An entry that was written down while it waited.
    package init(_ entry: Entry, rest: Rest) {
        self.entry = entry
        switch rest {
        case .waiting: state = .waiting
        case .queued(let history, let journey): state = .queued(history, journey)
        }
    }

    /// Whether it has had no turn yet.
    package var isWaiting: Bool { if case .waiting = state { true } else { false } }

    /// Lets it start by a higher priority, as long as it waits for its first turn.
    package mutating func raise(to priority: Priority) {
        precondition(isWaiting, "only what waits for its first turn is raised")
        entry.priority = priority
    }

    /// Whether a request for it has been counted among the starts.
    package var wasAsked: Bool { history.wasAsked }

    package var isLookingUp: Bool { if case .lookingUp = state { true } else { false } }
    package var isAsking: Bool { if case .asking = state { true } else { false } }
    package var isWriting: Bool { if case .committing = state { true } else { false } }

    /// Times that it was tried, each from its listed URL on.
    package var attempts: Int { history.attempts }
    /// Of the last response; nil when none arrived.
    package var httpStatus: Int? { history.httpStatus }
    /// By position of the variant what is stored of it; empty when nothing is.
    package var keptImages: [StoredImage?] {
        journey.findings.copy.map { $0.kept.map { $0?.image } } ?? []
    }

    /// Whether it waits for a retry.
    package var waitsForRetry: Bool {
        if case .queued(_, let journey) = state, case .retry = journey.turn { true } else { false }
    }

    /// The URL of its next or present transfer, or of the last one.
    package var target: RequestURL { isWaiting ? entry.url : journey.route.target }

    // MARK: Turns

    /// Its turn has come at its host.
    ///
    /// - Parameters:
    ///   - position: among the run's starts, for an entry that has not been asked for.
    ///   - now: by the monotonic clock.
    /// - Returns: ``EntryAction/lookUp`` for each turn. Who knows that there is nothing to be found
    ///   answers at once.
    package mutating func start(
        position: Int, at now: ContinuousClock.Instant
    ) -> EntryAction {
        var (history, journey) = turn()
        if !history.wasAsked {
            history.beginning = .asked(position: position)
            history.stages.queue = now - entry.queuedAt
        }
        switch journey.turn {
        case .firstAttempt, .retry:
            history.attempts += 1
            journey.turn = .sameAttempt
        case .sameAttempt: break
        }
        state = .lookingUp(history, journey, then: .asking)
        return .lookUp
    }

    /// Its variants are to be made from the stored original.
    package mutating func startDeriving(at now: ContinuousClock.Instant) -> EntryAction {
        var (history, journey) = turn()
        history.stages.queue = now - entry.queuedAt
        journey.turn = .sameAttempt
        state = .lookingUp(history, journey, then: .deriving)
        return .lookUp
    }

    /// Its host is given up in this run, for a reason and with a text that says of which host.
    package mutating func giveUp(
        _ reason: FailureReason, _ text: String, at now: ContinuousClock.Instant
    ) -> EntryAction {
        var (history, journey) = turn()
        if isWaiting { history.stages.queue = now - entry.queuedAt }
        state = .lookingUp(history, journey, then: .givingUp(AttemptFailure(reason, text)))
        return .lookUp
    }

    /// It is warm, and its resource gets attributes.
    package mutating func annotate(
        resource: Int64, images: [StoredImage?], expiresAt: Timestamp
    ) -> EntryAction {
        precondition(isWaiting, "only what was found fresh is annotated")
        state = .committing(
            History(), Journey(from: entry.url),
            Committing(
                stored: EntryEnd.Stored(
                    variants: images.allSatisfy { $0 != nil }
                        ? images.compactMap { $0.map(VariantEnd.kept) } : [],
                    expiresAt: expiresAt),
                outcome: .warm(.fresh)))
        return .write(.resource(resource, nil, []))
    }

    private func turn() -> (History, Journey) {
        switch state {
        case .waiting: (History(), Journey(from: entry.url))
        case .queued(let history, let journey): (history, journey)
        case .lookingUp, .asking, .savingPart, .processing, .committing, .ended:
            preconditionFailure("only what waits has a turn")
        }
    }

    /// Whether ``EntryAction/lookUp`` is still to be carried out; else what was found is known.
    package var needsLookup: Bool {
        if case .lookingUp(_, let journey, _) = state, case .due = journey.lookup {
            true
        } else {
            false
        }
    }

    // MARK: Ends

    /// The run ends it.
    package mutating func cancel() -> EntryAction { finish(.cancelled) }

    /// The stage that it is in has ended, or could not take it.
    package mutating func abort(_ failure: AttemptFailure) -> EntryAction {
        finish(.failed(EntryEnd.Failed(failure: failure, blame: .origin)))
    }

    /// The change of its row is committed.
    package mutating func committed() -> EntryAction {
        guard case .committing(_, _, let committing) = state else {
            preconditionFailure("what is committed was written")
        }
        switch committing.outcome {
        case .warm(let outcome):
            return finish(.stored(outcome, committing.stored))
        case .failed(let failure, let blame):
            return finish(
                .failed(
                    EntryEnd.Failed(failure: failure, blame: blame, stored: committing.stored)))
        }
    }

    /// Whether the entry fails with what is being written, in a way that the next runs are told of.
    package var isCommittingFailure: Bool {
        guard case .committing(_, _, let committing) = state,
            case .failed(let failure, let blame) = committing.outcome
        else { return false }
        return EntryEnd.Failed(failure: failure, blame: blame).memory(httpStatus: httpStatus)
            != .none
    }

    /// Ends it. What has happened on its way stays readable until it is forgotten.
    mutating func finish(_ end: EntryEnd) -> EntryAction {
        if case .ended = state { preconditionFailure("an entry has one outcome") }
        state = .ended(history, journey)
        return .finish(end)
    }

    var history: History {
        switch state {
        case .waiting: History()
        case .queued(let history, _), .lookingUp(let history, _, _), .asking(let history, _, _),
            .savingPart(let history, _, _), .processing(let history, _, _),
            .committing(let history, _, _), .ended(let history, _):
            history
        }
    }

    var journey: Journey {
        switch state {
        case .waiting: Journey(from: entry.url)
        case .queued(_, let journey), .lookingUp(_, let journey, _), .asking(_, let journey, _),
            .savingPart(_, let journey, _), .processing(_, let journey, _),
            .committing(_, let journey, _), .ended(_, let journey):
            journey
        }
    }
}
