/// Where the scheduler puts waiting entries that are not to be in memory: a temporary file, say.
///
/// Entries of one queue form a list: every record holds the link to the one that starts after it.
/// The scheduler keeps the ends of the lists, so that its memory does not grow with them.
package protocol QueueSpilling: AnyObject {
    /// Whether one more entry may wait in memory beside the `waiting` of its kind that do: those
    /// that were not started yet, or those that have been and wait for another turn.
    func hasRoom(beside waiting: Int, isReturning: Bool) -> Bool

    /// Takes an entry out of memory, and makes it the one that starts after `last`, if one is given.
    ///
    /// - Parameters:
    ///   - entry: that is in memory.
    ///   - position: of the entry in the start order of its queue.
    ///   - next: leads to the entry that starts after it.
    ///   - last: an entry that was spilled before, and had none after it.
    /// - Returns: the link to it.
    /// - Throws: when there is no space for it, or the link of `last` cannot be written; the entry
    ///   is in memory as before then.
    func spill(
        _ entry: Int, position: Int, next: SpillLink, behind last: SpillPlace?
    ) throws -> SpillLink

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
