package import PrefetchModel

/// The past of an entry that has had a turn.
package struct History: Sendable {
    package enum Beginning: Hashable, Sendable {
        case notAsked
        /// `position`: the place of its first transfer among the run's starts, from 1.
        case asked(position: Int)
    }

    /// The last response or failure.
    package enum LastAnswer: Hashable, Sendable {
        case none
        /// `contentType` is nil for a response without the field.
        case response(status: Int, contentType: String?)
        /// `status` is nil before a head arrived, `curlCode` where libcurl reported none.
        case failure(status: Int?, curlCode: Int?)
    }

    package internal(set) var beginning = Beginning.notAsked
    /// Attempts so far, each from the listed URL on.
    package internal(set) var attempts = 0
    package internal(set) var stages = StageDurations()
    package internal(set) var bytesReceived = 0
    package internal(set) var answer = LastAnswer.none

    package init() {}

    /// Restores a spilled history.
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

/// An entry's way through the run, from its first turn on.
package struct Journey: Sendable {
    /// The purpose of the next turn at a host.
    package enum Turn: Sendable {
        case firstAttempt
        case retry(after: Failure)
        /// The next hop, or the listed URL once more in the same attempt.
        case sameAttempt
    }

    /// The findings of the look-up: done once, and again after the entry has waited in a file.
    package enum Lookup: Sendable {
        case due
        /// Boxed: this is most of a journey, which is copied at every step.
        indirect case done(Findings)
    }

    package internal(set) var route: Route
    package internal(set) var turn: Turn
    package internal(set) var lookup: Lookup
    /// False when a remembered redirect has turned out to be wrong.
    package internal(set) var usesMemory: Bool
    /// False when a stored part has turned out to be unusable: the whole body is requested.
    package internal(set) var usesParts: Bool
    /// False when the stored copy has turned out to be unusable: requests are unconditional.
    package internal(set) var usesConditions: Bool

    package init(from url: RequestURL) {
        self.init(
            route: Route(from: url), turn: .firstAttempt, usesMemory: true, usesParts: true,
            usesConditions: true)
    }

    /// Restores a spilled journey.
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

    /// Starts again at the listed URL.
    mutating func restart(at url: RequestURL, turn: Turn) {
        route = Route(from: url)
        self.turn = turn
    }
}

extension EntryMachine {
    /// The state of an entry, with the values that it needs there and no others.
    ///
    /// Boxed, so that an entry waiting for its first turn is no larger than its listed fields.
    indirect enum State: Sendable {
        /// Waits for its first turn.
        case waiting
        /// Waits for another turn, at the host of the route's target.
        case queued(History, Journey)
        /// Has its turn; the cache is looked up.
        case lookingUp(History, Journey, then: LookupPurpose)
        /// Has a request on the wire.
        case asking(History, Journey, EntryRequest)
        /// A codec worker saves the received part of a body.
        case savingPart(History, Journey, then: TransferInterruption)
        /// The codec workers have its body or stored original.
        case processing(History, Journey, Processing)
        /// The writer has a change of its row.
        case committing(History, Journey, PendingCommit)
        /// Has its outcome.
        case ended(History, Journey)
    }
}

/// The purpose of a look-up.
enum LookupPurpose: Sendable {
    case asking
    case deriving
    /// The host is given up; the report mentions a stored copy, which stays.
    case givingUp(Failure)
}

/// The reason why a body broke off, which decides the step after storing its part.
enum TransferInterruption: Sendable {
    case failure(Failure)
    case cancellation
}

/// A change with the writer.
struct PendingCommit: Sendable {
    let stored: EntryEnd.Stored
    let outcome: CommittedOutcome
}

/// The outcome after the commit.
enum CommittedOutcome: Sendable {
    case warm(Outcome)
    /// A variant could not be made; the others are stored.
    case failed(Failure, EntryEnd.Failed.Blame)
}

/// A job with the codec workers.
struct Processing: Sendable {
    enum Source: Sendable {
        /// `isContinued`: whether the body began with a stored part.
        case body(isContinued: Bool, ResourceValidation)
        /// The stored original.
        case original(Confirmation)
        /// A body that was refused by its beginning.
        case refusal
    }

    /// The validity of a resource whose original is used.
    enum Confirmation: Sendable {
        /// Fresh: no request was sent.
        case fresh
        /// Confirmed by a 304.
        case confirmed(ResourceValidation)
    }

    let source: Source
    /// A remark for the report if the entry becomes warm; empty for none.
    var remark: String
}
