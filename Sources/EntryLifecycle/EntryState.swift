package import PrefetchModel

/// What has become of an entry that has been dealt with at least once.
package struct History: Sendable {
    package enum Beginning: Hashable, Sendable {
        case notAsked
        /// The position in which its first transfer began, 1 for the run's first.
        case asked(position: Int)
    }

    /// What came back last.
    package enum LastAnswer: Hashable, Sendable {
        case none
        /// `contentType` is nil for a response without the field.
        case response(status: Int, contentType: String?)
        /// `status` is nil when no head had arrived, `curlCode` where libcurl had no part.
        case failure(status: Int?, curlCode: Int?)
    }

    package internal(set) var beginning = Beginning.notAsked
    /// Times that it was tried, each from its listed URL on.
    package internal(set) var attempts = 0
    package internal(set) var stages = StageDurations()
    package internal(set) var bytesReceived = 0
    package internal(set) var answer = LastAnswer.none

    package init() {}

    /// As it was written down.
    package init(
        beginning: Beginning, attempts: Int, stages: StageDurations, bytesReceived: Int,
        answer: LastAnswer
    ) {
        self.beginning = beginning
        self.attempts = attempts
        self.stages = stages
        self.bytesReceived = bytesReceived
        self.answer = answer
    }

    package var wasAsked: Bool { beginning != .notAsked }

    package var httpStatus: Int? {
        switch answer {
        case .none: nil
        case .response(let status, _): status
        case .failure(let status, _): status
        }
    }
}

/// Why an attempt failed.
package struct AttemptFailure: Hashable, Sendable {
    package let reason: FailureReason
    package let message: String

    package init(_ reason: FailureReason, _ message: String) {
        self.reason = reason
        self.message = message
    }
}

/// An entry's way through the run from its first turn on.
package struct Journey: Sendable {
    /// What the next turn at a host is.
    package enum Turn: Sendable {
        case firstAttempt
        case retry(after: AttemptFailure)
        /// The next hop, or the listed URL once more as part of the same attempt.
        case sameAttempt
    }

    /// What is stored of the entry. Looked up once, and again after the entry has waited in a file.
    package enum Lookup: Sendable {
        case due
        /// Boxed, since a journey is handed on at every step and this is most of it.
        indirect case done(Findings)
    }

    package internal(set) var route: Route
    package internal(set) var turn: Turn
    package internal(set) var lookup: Lookup
    /// False when what earlier runs were told of redirects has turned out to be wrong.
    package internal(set) var usesMemory: Bool
    /// False when a part of the body has turned out to be of no use, so that the whole is asked for.
    package internal(set) var usesParts: Bool
    /// False when what is stored has turned out to be of no use, so that nothing is confirmed.
    package internal(set) var usesConditions: Bool

    package init(from url: RequestURL) {
        self.init(
            route: Route(from: url), turn: .firstAttempt, usesMemory: true, usesParts: true,
            usesConditions: true)
    }

    /// As it was written down.
    package init(
        route: Route, turn: Turn, usesMemory: Bool, usesParts: Bool, usesConditions: Bool
    ) {
        self.route = route
        self.turn = turn
        lookup = .due
        self.usesMemory = usesMemory
        self.usesParts = usesParts
        self.usesConditions = usesConditions
    }

    var findings: Findings {
        get {
            switch lookup {
            case .due: .nothing
            case .done(let findings): findings
            }
        }
        set { lookup = .done(newValue) }
    }

    /// Begins anew at the listed URL.
    mutating func restart(at url: RequestURL, turn: Turn) {
        route = Route(from: url)
        self.turn = turn
    }
}

/// Where an entry is, with all that it needs there and nothing else.
///
/// Boxed, so that an entry that waits for its first turn is no larger than what was listed of it.
indirect enum EntryState: Sendable {
    /// For its first turn.
    case waiting
    /// For another turn, at the host that the route leads to.
    case queued(History, Journey)
    /// Its turn has come; what is stored of it is looked up.
    case lookingUp(History, Journey, then: LookupPurpose)
    /// A request is on the wire.
    case asking(History, Journey, Inquiry)
    /// A codec worker keeps what came of a body.
    case savingPart(History, Journey, then: BrokenEnd)
    /// A body or a stored original is with the codec workers.
    case processing(History, Journey, Processing)
    /// A change of its row is with the writer.
    case committing(History, Journey, Committing)
    /// It has its outcome.
    case ended(History, Journey)
}

/// What a look-up is for.
enum LookupPurpose: Sendable {
    case asking
    case deriving
    /// The host is given up; of what is stored the copy stays, which is said.
    case givingUp(AttemptFailure)
}

/// What follows when what came of a body has been kept.
enum BrokenEnd: Sendable {
    case failure(AttemptFailure)
    case cancellation
}

/// What is with the writer.
struct Committing: Sendable {
    let stored: EntryEnd.Stored
    let outcome: CommittedOutcome
}

/// What follows with the commit.
enum CommittedOutcome: Sendable {
    case warm(Outcome)
    /// Some variant could not be made; the others are stored.
    case failed(AttemptFailure, EntryEnd.Failed.Blame)
}

/// What is with the codec workers.
struct Processing: Sendable {
    enum Source: Sendable {
        /// `isContinued`: whether it began with a part that was there.
        case body(isContinued: Bool, ResourceValidation)
        /// The stored original.
        case original(Confirmation)
        /// A body that was refused by its beginning.
        case refusal
    }

    /// What a run knows of a resource whose original is used.
    enum Confirmation: Sendable {
        /// It is fresh: nobody was asked.
        case fresh
        /// By a 304.
        case confirmed(ResourceValidation)
    }

    let source: Source
    /// What there is to say of the entry if it becomes warm; empty for nothing.
    var remark: String
}
