/// Writes report lines of warm entries on the look-up threads, which would otherwise wait for one
/// writing thread.
package protocol WarmLineWriting: Sendable {
    /// Writes the lines of a batch's entries, in the order of their records.
    ///
    /// The entries request the run's `variants`; an entry with other variants
    /// (``EntryExtras/changesVariants``) is reported by an ``EntryResult`` instead. Called from
    /// several threads at once.
    ///
    /// - Precondition: Each entry has an image or nil for each variant, or `variants` is `main`
    ///   alone.
    func lines(of entries: [WarmEntry], variants: VariantSet, in batch: EntryBatch) -> WarmLines
}

/// An entry of a batch that ends as ``Outcome/fresh``, unless it is a duplicate.
package struct WarmEntry: Sendable {
    /// Index into ``EntryBatch/records``.
    package let number: Int
    /// The image of ``VariantSet/primary``.
    package let image: StoredImage?
    /// The images of all variants of the run in order, including the primary one; empty in a run
    /// with `main` alone. A slice, so that a batch shares one array.
    package let variantImages: ArraySlice<StoredImage?>
    /// Zero for an image that must be validated at every use.
    package let expiresAt: Timestamp

    package init(
        number: Int, image: StoredImage?, variantImages: ArraySlice<StoredImage?> = [],
        expiresAt: Timestamp
    ) {
        self.number = number
        self.image = image
        self.variantImages = variantImages
        self.expiresAt = expiresAt
    }
}

package struct WarmLines: Sendable {
    /// The lines, including line ends.
    package let bytes: [UInt8]
    /// The end of each record's line, which begins at the end of the one before; a record without a
    /// line has an empty one.
    private let ends: [Int]

    /// - Precondition: `ends` has one element per record of the batch, ascending.
    package init(bytes: [UInt8], ends: [Int]) {
        self.bytes = bytes
        self.ends = ends
    }

    package func has(_ number: Int) -> Bool { !self[record: number].isEmpty }

    /// The range of a record's line; empty if it has none.
    package subscript(record number: Int) -> Range<Int> {
        (number == 0 ? 0 : ends[number - 1])..<ends[number]
    }
}
