import PrefetchModel

package struct MergeReport: Sendable {
    package internal(set) var images = 0
    /// Images that the destination lacked before.
    package internal(set) var added = 0
    /// Images of the destination that a source has validated later.
    package internal(set) var updated = 0
    package internal(set) var failures = 0
    package internal(set) var files = AdoptionCounts()
    /// Rows with a missing or damaged content file in every cache that has it. Their images are
    /// kept without these variants, and the next run requests them.
    package var lostFiles = 0
    /// Content files of the destination that no row names any more, and which were removed.
    package internal(set) var removedFiles = 0
    /// Sources with damage, by their paths in the order given.
    package internal(set) var damaged: [(path: String, damage: SourceDamage)] = []

    package enum SourceDamage: Sendable {
        /// Its database could not be read as a whole; the report tells which rows were.
        case salvaged(SalvageReport)
        /// Rows that no version of this program writes.
        case invalidRows(Int)
    }

    /// Whether everything that the sources hold is in the merged cache.
    package var isComplete: Bool { lostFiles == 0 && damaged.isEmpty }
}

/// The number of content files by the way in which a cache got them.
package struct AdoptionCounts: Hashable, Sendable {
    package internal(set) var linked = 0
    /// Files that share their blocks with the source's (`FICLONE`).
    package internal(set) var cloned = 0
    package internal(set) var copied = 0
    /// Files that were there already, from another source or a merge that was stopped.
    package internal(set) var present = 0
    /// The size of the linked, cloned and copied files.
    package internal(set) var bytes = 0

    package var new: Int { linked + cloned + copied }

    static func + (left: AdoptionCounts, right: AdoptionCounts) -> AdoptionCounts {
        var sum = left
        sum.linked += right.linked
        sum.cloned += right.cloned
        sum.copied += right.copied
        sum.present += right.present
        sum.bytes += right.bytes
        return sum
    }
}
