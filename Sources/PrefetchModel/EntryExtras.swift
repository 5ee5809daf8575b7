/// What few entries of a manifest carry, kept apart from their records so that the others do not
/// pay for it.
package struct EntryExtras: Hashable, Sendable {
    /// How long the image is fresh, instead of what its origin says; zero means stale at once.
    package var timeToLive: Duration?
    /// In the order of the line, with no name twice.
    package var attributes: [EntryAttribute]
    /// Fields for the entry's requests, in place of those of the run with the same names; an empty
    /// value leaves a field out. They may be secrets, and are never stored.
    package var headers: [HeaderField]

    /// The most attributes that one entry may bring. They are few by nature; without a bound, a
    /// line of 64 KiB would make 9 000 rows of a database.
    package static let maximumAttributes = 64
    /// The most fields for requests, and the most bytes of all their names and values: servers
    /// refuse header sections not much larger.
    package static let maximumHeaders = 64
    package static let maximumHeaderBytes = 8 << 10

    package init(
        timeToLive: Duration? = nil, attributes: [EntryAttribute] = [],
        headers: [HeaderField] = []
    ) {
        self.timeToLive = timeToLive
        self.attributes = attributes
        self.headers = headers
    }
}
