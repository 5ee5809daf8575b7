import PrefetchModel

extension EntryMachine {
    /// The state of an entry, with the values that it needs there and no others.
    ///
    /// Boxed, so that an entry waiting for its first turn is no larger than its listed fields.
    indirect enum EntryPhase: Sendable {
        case waiting
        /// Waits for another turn, at the host of the route's target.
        case queued(History, Journey)
        case lookingUp(History, Journey, then: LookupPurpose)
        case asking(History, Journey, EntryRequest)
        case savingPart(History, Journey, then: TransferInterruption)
        case processing(History, Journey, Processing)
        /// The writer has a change of its row; the end follows the commit.
        case committing(History, Journey, EntryEnd)
        case ended(History, Journey)
    }
}

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

struct Processing: Sendable {
    enum ProcessedSource: Sendable {
        /// `isContinued`: whether the body began with a stored part.
        case body(isContinued: Bool, ResourceValidation)
        case original(Confirmation)
        case seed(ResourceValidation)
        case refusal
    }

    /// The validity of a resource with an original in use.
    enum Confirmation: Sendable {
        case fresh
        case confirmed(ResourceValidation)
    }

    let source: ProcessedSource
    /// A remark for the report if the entry becomes warm; empty for none.
    var remark: String
}
