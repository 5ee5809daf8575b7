/// Where the scheduler puts waiting entries that are not to be in memory: a temporary file, say.
///
/// Entries of one queue form a list: every record holds the link to the one that starts after it.
/// The scheduler keeps the ends of the lists, so that its memory does not grow with them.
package protocol QueueSpilling: AnyObject {
    /// Whether one more entry may wait in memory beside the `waiting` that do.
    func hasRoom(beside waiting: Int) -> Bool

    /// Takes an entry out of memory.
    ///
    /// - Throws: when there is no space for it; the entry is in memory as before then.
    func spill(_ entry: Int, next: SpillLink) throws -> SpillPlace

    /// Changes the link of a spilled entry, whose next one came after it was spilled.
    ///
    /// - Throws: when it cannot be written.
    func setNext(_ next: SpillLink, of place: SpillPlace) throws

    /// Brings an entry back into memory; its record is not asked for again.
    ///
    /// - Throws: when it cannot be read.
    func load(_ place: SpillPlace) throws -> (entry: Int, next: SpillLink)
}

/// Where a spilled entry lies; only who gave it understands it.
package struct SpillPlace: Hashable, Sendable {
    package let offset: Int

    package init(offset: Int) {
        self.offset = offset
    }
}

/// Leads from one spilled entry to the one that starts after it.
package struct SpillLink: Hashable, Sendable {
    /// Nil at the end of the list.
    package var place: SpillPlace?
    /// The place of that entry in the start order of its queue, so that it is known without
    /// reading the entry.
    package var position: Int

    package static let end = SpillLink(place: nil, position: 0)

    package init(place: SpillPlace?, position: Int) {
        self.place = place
        self.position = position
    }
}
