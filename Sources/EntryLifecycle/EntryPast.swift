package import PrefetchModel

/// The past of an entry, from its first turn on. Boxed, so that an entry waiting for that is no
/// larger than its listed fields.
///
/// `@unchecked Sendable`: only ``EntryMachine`` refers to it, in a private property, and copies it
/// before a change unless it holds the only reference. So no thread changes what another reads.
final class EntryPast: @unchecked Sendable {
    var history: History
    var journey: Journey

    init(_ history: History, _ journey: Journey) {
        self.history = history
        self.journey = journey
    }
}

/// The past of an entry that has had a turn.
package struct History: Sendable {
    package enum LastResult: Hashable, Sendable {
        case none
        /// `contentType` is nil for a response without the field.
        case response(status: Int, contentType: String?)
        /// `status` is nil before a head arrived, `curlCode` where libcurl reported none.
        case failure(status: Int?, curlCode: Int?)
    }

    /// The place of its first turn among the run's starts, from 1; nil before it.
    package var start: Int?
    /// Attempts so far, each from the listed URL on.
    package var attempts = 0
    /// Attempts at earlier URLs of its line.
    package var attemptsAtOthers = 0
    /// Requests for the rest of a body without a response.
    package var unansweredRanges = 0
    /// Refusals of its host for the pace, which are no attempts.
    package var refusals = 0
    /// The failure of an earlier URL that may have been temporary; nil without one.
    package var temporary: EarlierFailure?
    package var stages = StageDurations()
    package var bytesReceived = 0
    package var lastResult = LastResult.none
    package var connection: ResponseConnection?
    /// Reports of caches on the last response's way; nil for none. Not kept in files.
    package var cacheStatus: CacheStatus?

    package struct EarlierFailure: Hashable, Sendable {
        package var failure: Failure
        package var alternative: Int
        package var lastResult: LastResult

        /// A value to read another one into.
        package static let blank = EarlierFailure(
            failure: Failure(.internal, ""), alternative: 0, lastResult: .none)
    }

    package init() {}

    package var hadTurn: Bool { start != nil }

    package var httpStatus: Int? {
        switch lastResult {
        case .none: nil
        case .response(let status, _): status
        case .failure(let status, _): status
        }
    }
}

/// An entry's way through the run, from its first turn on.
package struct Journey: Sendable {
    package enum TurnPurpose: Sendable {
        case firstAttempt
        case retry(after: Failure)
        /// The next hop, or the listed URL once more in the same attempt.
        case sameAttempt
    }

    /// The findings of the look-up: done once, and again after the entry has waited in a file.
    enum Lookup: Sendable {
        case due
        /// Boxed: this is most of a journey.
        indirect case done(Findings)
    }

    package var route: Route
    package var turn = TurnPurpose.firstAttempt
    var lookup = Lookup.due
    /// False when a remembered redirect has turned out to be wrong.
    package var usesMemory = true
    /// False when the stored copy has turned out to be unusable: requests are unconditional.
    package var usesConditions = true

    package init(from url: RequestURL) {
        route = Route(from: url)
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

    mutating func restart(at url: RequestURL, turn: TurnPurpose) {
        route = Route(from: url)
        self.turn = turn
    }
}
