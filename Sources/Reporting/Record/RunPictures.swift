package import PrefetchModel

/// The first new and changed images of a run.
package struct RunPictures: Sendable {
    /// The limit of each list.
    package static let limit = 24

    /// Downloads of images that were not stored before.
    package private(set) var new: [EntryResult] = []
    /// Downloads with other bytes than the stored image.
    package private(set) var changed: [EntryResult] = []
    package private(set) var newCount = 0
    package private(set) var changedCount = 0

    /// Adds an image.
    ///
    /// - Returns: Whether it is among the first.
    mutating func note(_ result: EntryResult) -> Bool {
        let isNew = result.replaced == nil
        if isNew { newCount += 1 } else { changedCount += 1 }
        guard (isNew ? new : changed).count < RunPictures.limit else { return false }
        if isNew { new.append(result) } else { changed.append(result) }
        return true
    }
}
