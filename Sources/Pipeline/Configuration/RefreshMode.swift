/// The cached entries that are requested again.
package enum RefreshMode: String, CaseIterable, Sendable {
    case stale
    /// All entries, with conditions: an unchanged image costs no body.
    case all
    /// All entries, without conditions: each is downloaded, decoded and stored again.
    case force
    /// None: stored images count as fresh.
    case none

    var asksForFresh: Bool { self == .all || self == .force }
}
