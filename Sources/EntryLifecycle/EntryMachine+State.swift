import PrefetchModel

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
