import CacheStorage

extension CacheCatalog {
    /// The variants that `--variant` selects: by a name that runs have used, else by recipe.
    ///
    /// - Throws: ``CommandFailure`` with status 64 if it is neither.
    func selector(ofVariant text: String) throws -> VariantSelector {
        let noted: [NotedVariant]
        let isRecipe: Bool
        do throws(StorageError) {
            noted = try variantNames()
            if noted.contains(where: { $0.name == text }) { return .name(text) }
            // A recipe that no variant has any more is not a typo.
            if text.contains(";") { return .recipe(text) }
            isRecipe = try hasVariant(ofRecipe: text)
        } catch {
            throw CommandFailure(error)
        }
        guard isRecipe else { throw VariantChoice.unknown(text, noted) }
        return .recipe(text)
    }
}
