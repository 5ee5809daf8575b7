/// Writes what a report says of warm entries where they are read: on several threads, which are idle
/// for as long as one thread writes for all of them.
package protocol WarmLineWriting: Sendable {
    /// Writes the lines of entries of a batch, which may be none, in the order of their records.
    ///
    /// The entries ask for the run's `variants` as they are; one that asks for others
    /// (``EntryExtras/changesVariants``) has no line here, and is told of by an ``EntryResult``.
    /// Called from several threads at once.
    ///
    /// - Precondition: each entry has an image, or nil, for each variant, or `variants` is `main` alone.
    func lines(
        of entries: [WarmEntry], variants: VariantSet, in batch: EntryBatch
    ) -> WarmLines
}

/// An entry of a batch that ends as ``Outcome/fresh``, unless it is a duplicate.
package struct WarmEntry: Sendable {
    /// Index into ``EntryBatch/records``.
    package let number: Int
    /// Of ``VariantSet/primary``.
    package let image: StoredImage?
    /// Of every variant of the run in its order, the primary one included; empty in a run with `main`
    /// alone. A slice, so that those of a batch lie in one array.
    package let variantImages: ArraySlice<StoredImage?>
    /// Zero for an image to be validated at every use.
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

/// The lines of a batch's warm entries.
package struct WarmLines: Sendable {
    /// One line after the other, line ends included.
    package let bytes: [UInt8]
    /// Where the line of each of the batch's records ends; it begins where that of the one before
    /// ends, so records without a line have an empty one.
    private let ends: [Int]

    /// - Precondition: there is an end for each record of the batch, and they ascend.
    package init(bytes: [UInt8], ends: [Int]) {
        self.bytes = bytes
        self.ends = ends
    }

    /// Whether a line was written of a record.
    package func has(_ number: Int) -> Bool { !self[record: number].isEmpty }

    /// The bytes of a record's line; empty where it has none.
    package subscript(record number: Int) -> Range<Int> {
        (number == 0 ? 0 : ends[number - 1])..<ends[number]
    }
}
