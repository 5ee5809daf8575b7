/// What few entries of a manifest carry, kept apart from their records so that the others do not
/// pay for it.
package struct EntryExtras: Hashable, Sendable {
    /// How long the image is fresh, instead of what its origin says; zero means stale at once.
    package var timeToLive: Duration?
    /// In the order of the line, with no name twice.
    package var attributes: [EntryAttribute]

    /// The most attributes that one entry may bring. They are few by nature; without a bound, a
    /// line of 64 KiB would make 9 000 rows of a database.
    package static let maximumAttributes = 64

    package init(timeToLive: Duration? = nil, attributes: [EntryAttribute] = []) {
        self.timeToLive = timeToLive
        self.attributes = attributes
    }
}
