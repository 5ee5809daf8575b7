package import PrefetchModel

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
