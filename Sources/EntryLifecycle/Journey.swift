package import PrefetchModel

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
    /// False when the stored copy has turned out to be unusable: requests are unconditional.
    package internal(set) var usesConditions: Bool

    package init(from url: RequestURL) {
        self.init(
            route: Route(from: url), turn: .firstAttempt, usesMemory: true, usesConditions: true)
    }

    package init(route: Route, turn: Turn, usesMemory: Bool, usesConditions: Bool) {
        self.route = route
        self.turn = turn
        lookup = .due
        self.usesMemory = usesMemory
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

    mutating func restart(at url: RequestURL, turn: Turn) {
        route = Route(from: url)
        self.turn = turn
    }
}
