package import PrefetchModel

/// The cache's complete record of one resource.
package struct CachedCopy: Sendable {
    package let resourceID: Int64
    package let location: ResourceLocation
    package let response: StoredResponse
    package let fetchedAt: Timestamp
    package let validatedAt: Timestamp
    package let expiresAt: Timestamp
    package let sourceDigest: ContentDigest
    package let sourceFormat: String
    /// As ``Placeholder/thumbHash``; nil without one.
    package let thumbHash: [UInt8]?
    /// The stored images, each with the canonical text of its recipe.
    package let images: [(recipe: String, image: StoredImage)]
    /// The names in use, each with the recipe of its variant. Several names may share one.
    package let names: [(name: VariantName, recipe: String)]

    /// The image of a recipe by its canonical text.
    package subscript(recipe: String) -> StoredImage? {
        images.first { $0.recipe == recipe }?.image
    }

    /// The variant of a recipe, given its canonical text, or a variant of another recipe with the
    /// same bytes; nil if neither is stored.
    package func image(asBy recipe: String, sameRules: SameRules) -> StoredImage? {
        if let image = self[recipe] { return image }
        let rule = sameRules[sourceFormat]
        let effective = Recipe.effectiveText(of: recipe, under: rule)
        return images.first {
            Recipe.effectiveText(of: $0.recipe, under: rule) == effective
        }?.image
    }
}
