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
    /// The format of the variant `main`, in place of the run's.
    package var encoding: Recipe.Encoding?
    /// The JPEG quality of the variant `main`, 1…100, in place of the run's; of no effect on a format
    /// that has none.
    package var quality: Int?
    /// The size of the variant `main`, in place of the run's.
    package var resize: ResizeGeometry?
    /// What becomes of an animation in the variant `main`, in place of the run's; of no effect on `original`.
    package var animation: Recipe.Animation?
    /// Which of the run's variants are made; nil for all of them.
    package var variants: VariantSelection?

    /// Whether the entry may ask for other variants than the run; ``VariantSet/applying(_:)`` has them.
    package var changesVariants: Bool {
        encoding != nil || quality != nil || resize != nil || animation != nil || variants != nil
    }

    /// The most attributes that one entry may bring. They are few by nature; without a bound, a
    /// line of 64 KiB would make 9 000 rows of a database.
    package static let maximumAttributes = 64
    /// The most fields for requests, and the most bytes of all their names and values: servers
    /// refuse header sections not much larger.
    package static let maximumHeaders = 64
    package static let maximumHeaderBytes = 8 << 10

    package init(
        timeToLive: Duration? = nil, attributes: [EntryAttribute] = [],
        headers: [HeaderField] = [], encoding: Recipe.Encoding? = nil, quality: Int? = nil,
        resize: ResizeGeometry? = nil, animation: Recipe.Animation? = nil,
        variants: VariantSelection? = nil
    ) {
        self.timeToLive = timeToLive
        self.attributes = attributes
        self.headers = headers
        self.encoding = encoding
        self.quality = quality
        self.resize = resize
        self.animation = animation
        self.variants = variants
    }
}
