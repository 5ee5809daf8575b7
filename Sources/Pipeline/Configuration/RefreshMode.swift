/// Which cached entries are asked for again.
package enum RefreshMode: String, CaseIterable, Sendable {
    /// Those that are not fresh any more.
    case stale
    /// All of them, with conditions: an origin that still has the same answers without a body.
    case all
    /// All of them, without conditions: each is downloaded, decoded and stored anew.
    case force
    /// None: what is stored is good, however old.
    case none

    /// Whether also what is fresh is asked for.
    var asksForFresh: Bool { self == .all || self == .force }
}
