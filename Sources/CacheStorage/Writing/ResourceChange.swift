package import PrefetchModel

/// A change of a resource with an unchanged body: the origin confirmed it, variants were made from
/// it, or it got attributes.
package struct ResourceChange: Sendable {
    package var resourceID: Int64
    package var key: String
    /// The variants in use from now on.
    package var used: [RequestedVariant]
    /// The origin's response; nil without a request.
    package var validation: ResourceValidation?
    /// The new variants.
    package var variants: [VariantRow]
    /// Attributes to add; they replace attributes of the same name.
    package var attributes: [EntryAttribute]
    /// See ``ImageRow/isIncomplete``.
    package var isIncomplete: Bool

    package init(
        resourceID: Int64, key: String, used: [RequestedVariant],
        validation: ResourceValidation? = nil, variants: [VariantRow] = [],
        attributes: [EntryAttribute] = [], isIncomplete: Bool = false
    ) {
        self.resourceID = resourceID
        self.key = key
        self.used = used
        self.validation = validation
        self.variants = variants
        self.attributes = attributes
        self.isIncomplete = isIncomplete
    }
}
