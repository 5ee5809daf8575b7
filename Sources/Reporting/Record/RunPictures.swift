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

    mutating func note(_ result: EntryResult) {
        if result.replaced == nil {
            newCount += 1
            if new.count < RunPictures.limit { new.append(result) }
        } else {
            changedCount += 1
            if changed.count < RunPictures.limit { changed.append(result) }
        }
    }
}
