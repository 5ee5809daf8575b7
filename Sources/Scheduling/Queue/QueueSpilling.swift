/// The scheduler's storage for waiting entries that have no room in memory, such as a temporary
/// file.
///
/// The entries of one queue form a linked list: every record holds the link to its successor. The
/// scheduler keeps the ends of the lists, so its memory does not grow with them.
package protocol QueueSpilling: AnyObject {
    /// Whether one more entry may wait in memory beside `waiting` others of its kind: entries that
    /// were not started yet, or entries that were and wait for another turn.
    func hasRoom(beside waiting: Int, isReturning: Bool) -> Bool

    /// Moves an entry out of memory, links it after `last`, if one is given, and returns its link.
    /// After an error it stays in memory.
    ///
    /// `position` is that in the start order of its queue, and `next` links to its successor.
    func spill(
        _ entry: Int, position: Int, next: SpillLink, behind last: SpillPlace?
    ) throws -> SpillLink

    /// Moves an entry back into memory; its record is not read again.
    func load(_ place: SpillPlace) throws -> (entry: Int, next: SpillLink)
}

/// The location of a spilled entry, opaque to all but the storage that returned it.
package struct SpillPlace: Hashable, BitwiseCopyable, Sendable {
    package let offset: Int

    package init(offset: Int) {
        self.offset = offset
    }
}

package struct SpillLink: Hashable, BitwiseCopyable, Sendable {
    package var place: SpillPlace?
    /// The successor's position in the start order of its queue, known without reading the entry.
    package var position: Int

    package static let end = SpillLink(place: nil, position: 0)

    package init(place: SpillPlace?, position: Int) {
        self.place = place
        self.position = position
    }
}
