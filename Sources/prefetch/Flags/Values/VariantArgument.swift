import CacheStorage
import PrefetchModel

extension CacheCatalog {
    /// The variants that `--variant` selects: by a name that runs have used, else by recipe.
    ///
    /// - Throws: `UserError` with status 64 if it is neither.
    func selector(ofVariant text: String) throws -> VariantSelector {
        let noted = try variantNames()
        if noted.contains(where: { $0.name == text }) { return .name(text) }
        // A recipe that no variant has any more is not a typo.
        if text.contains(";") { return .recipe(text) }
        guard try hasVariant(ofRecipe: text) else { throw VariantChoice.unknown(text, noted) }
        return .recipe(text)
    }
}
