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
    /// URLs to request, in this order, if the entry's own fails.
    package var alternatives: [RequestURL]
    /// The SHA-256 that the source must have; nil for any.
    package var sourceDigest: ContentDigest?
    /// The filter of the body; nil for the run's.
    package var bodyFilter: BodyFiltering?
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
    /// The steps of the variant `main`, in place of all of the run's.
    package var steps: [Transformation]?
    /// The crop of the variant `main`, in place of the last one or as its first step.
    package var crop: CropGeometry?
    /// The run's variants to make; nil for all of them.
    package var variants: VariantSelection?
    /// Variants beside the run's, with other names.
    package var ownVariants: [RequestedVariant]
    /// The columns of a table, or the members of a JSON object, that are no fields: a JSON object
    /// for the report. Nil without any.
    package var columns: [UInt8]?
    /// The entry's absolute URL as the list spells it, if that differs from the normalised one and
    /// the reader keeps it.
    package var spelling: String?

    /// Whether the entry may need other variants than the run; see ``VariantSet/applying(_:)``.
    package var changesVariants: Bool {
        changesMain || variants != nil || !ownVariants.isEmpty || bodyFilter != nil
    }

    private var changesMain: Bool {
        encoding != nil || quality != nil || resize != nil || animation != nil || steps != nil
            || crop != nil
    }

    /// Whether both request the same variants.
    package func hasVariants(of other: EntryExtras) -> Bool {
        encoding == other.encoding && quality == other.quality && resize == other.resize
            && animation == other.animation && steps == other.steps && crop == other.crop
            && variants == other.variants && ownVariants == other.ownVariants
            && bodyFilter == other.bodyFilter
    }

    /// The fields that are not about variants; nil without any.
    package var withoutVariants: EntryExtras? {
        guard
            timeToLive != nil || !attributes.isEmpty || !headers.isEmpty || !alternatives.isEmpty
                || sourceDigest != nil || columns != nil
        else { return nil }
        return EntryExtras(
            timeToLive: timeToLive, attributes: attributes, headers: headers,
            alternatives: alternatives, sourceDigest: sourceDigest, columns: columns)
    }

    /// Applies the fields about `main` to its recipe in the run. As with the flag, a quality is
    /// ignored by formats without one.
    package func change(_ main: inout Recipe) {
        guard changesMain else { return }
        if let encoding { main.encoding = encoding }
        if let quality { main.quality = quality }
        if let steps { main.replaceSteps(with: steps) }
        if let crop { main.replaceCrop(with: crop) }
        if let resize { main.replaceSize(with: resize) }
        if let animation { main.animation = animation }
    }

    /// The limit of attributes per entry. Without one, a line of 64 KiB could create 9,000 database
    /// rows.
    package static let maximumAttributes = 64
    /// The limits of request fields, and of the bytes of all their names and values: servers refuse
    /// much larger header sections.
    package static let maximumHeaders = 64
    package static let maximumHeaderBytes = 8 << 10
    /// The limit of ``alternatives``: each costs a request and its retries.
    package static let maximumAlternatives = 8

    package init(
        timeToLive: Duration? = nil, attributes: [EntryAttribute] = [],
        headers: [HeaderField] = [], alternatives: [RequestURL] = [],
        sourceDigest: ContentDigest? = nil, encoding: Recipe.Encoding? = nil, quality: Int? = nil,
        resize: ResizeGeometry? = nil, animation: Recipe.Animation? = nil,
        steps: [Transformation]? = nil, crop: CropGeometry? = nil,
        variants: VariantSelection? = nil, ownVariants: [RequestedVariant] = [],
        columns: [UInt8]? = nil
    ) {
        self.timeToLive = timeToLive
        self.attributes = attributes
        self.headers = headers
        self.alternatives = alternatives
        self.sourceDigest = sourceDigest
        self.encoding = encoding
        self.quality = quality
        self.resize = resize
        self.animation = animation
        self.steps = steps
        self.crop = crop
        self.variants = variants
        self.ownVariants = ownVariants
        self.columns = columns
    }
}
