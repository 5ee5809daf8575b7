/// Optional settings of a manifest entry, stored apart from its record because few entries have
/// any.
package struct EntryExtras: Hashable, Sendable {
    /// The freshness lifetime, instead of the origin's; zero means stale at once.
    package var timeToLive: Duration?
    /// In the order of the line, with unique names.
    package var attributes: [EntryAttribute] = []
    /// Request header fields that replace the run's fields of the same names; an empty value
    /// removes a field. They may be secrets and are never stored.
    package var headers: [HeaderField] = []
    /// URLs to request, in this order, if the entry's own fails.
    package var alternatives: [RequestURL] = []
    /// The SHA-256 that the source must have; nil for any.
    package var sourceDigest: ContentDigest?
    package var bodyFilter: BodyFiltering?
    package var main = RecipeChanges()
    /// The run's variants to make; nil for all of them.
    package var variants: VariantSelection?
    /// Variants beside the run's, with other names.
    package var ownVariants: [RequestedVariant] = []
    /// The columns of a table, or the members of a JSON object, that are no fields: a JSON object
    /// for the report. Nil without any.
    package var columns: [UInt8]?
    /// The entry's absolute URL as the list spells it, if that differs from the normalised one and
    /// the reader keeps it.
    package var spelling: String?

    package static let empty = EntryExtras()

    /// Whether the entry may need other variants than the run; see ``VariantSet/applying(_:)``.
    package var changesVariants: Bool {
        main != RecipeChanges() || variants != nil || !ownVariants.isEmpty || bodyFilter != nil
    }

    package func hasVariants(of other: EntryExtras) -> Bool {
        main == other.main && variants == other.variants && ownVariants == other.ownVariants
            && bodyFilter == other.bodyFilter
    }

    /// The fields that are not about variants; nil without any.
    package var withoutVariants: EntryExtras? {
        let rest = EntryExtras(
            timeToLive: timeToLive, attributes: attributes, headers: headers,
            alternatives: alternatives, sourceDigest: sourceDigest, columns: columns)
        return rest == .empty ? nil : rest
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
}
