package import PrefetchModel

/// The rows of one stored download, committed together: resource, variants and attributes.
package struct ImageRow: Sendable {
    package var key: String
    /// The metadata of the response that delivered the body.
    package var validation: ResourceValidation
    package var source: SourceImage
    /// The variants that could be made, at least one, with different names.
    package var variants: [VariantRow]
    package var attributes: [EntryAttribute]
    /// Whether a requested variant could not be made. Then the key's failure stays, so that the
    /// next failure continues its count.
    package var isIncomplete: Bool

    package init(
        key: String, validation: ResourceValidation, source: SourceImage, variants: [VariantRow],
        attributes: [EntryAttribute] = [], isIncomplete: Bool = false
    ) {
        self.key = key
        self.validation = validation
        self.source = source
        self.variants = variants
        self.attributes = attributes
        self.isIncomplete = isIncomplete
    }
}
