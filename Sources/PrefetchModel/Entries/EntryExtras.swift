/// Optional settings of a manifest entry, stored apart from its record because few entries have
/// any.
package struct EntryExtras: Hashable, Sendable {
    /// The freshness lifetime, instead of the origin's; zero means stale at once.
    package var timeToLive: Duration?
    /// In the order of the line, with unique names.
    package var attributes: [EntryAttribute]
    /// Request header fields that replace the run's fields of the same names; an empty value
    /// removes a field. They may be secrets and are never stored.
    package var headers: [HeaderField]
    /// The format of the variant `main`, in place of the run's.
    package var encoding: Recipe.Encoding?
    /// The JPEG quality of the variant `main`, 1…100, in place of the run's; ignored by formats
    /// without quality.
    package var quality: Int?
    /// The size of the variant `main`, in place of the run's.
    package var resize: ResizeGeometry?
    /// The treatment of animations in the variant `main`, in place of the run's; ignored by
    /// `original`.
    package var animation: Recipe.Animation?
    /// The run's variants to make; nil for all of them.
    package var variants: VariantSelection?

    /// Whether the entry may need other variants than the run; see ``VariantSet/applying(_:)``.
    package var changesVariants: Bool {
        encoding != nil || quality != nil || resize != nil || animation != nil || variants != nil
    }

    /// The limit of attributes per entry. Without one, a line of 64 KiB could create 9,000 database
    /// rows.
    package static let maximumAttributes = 64
    /// The limits of request fields, and of the bytes of all their names and values: servers refuse
    /// much larger header sections.
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
