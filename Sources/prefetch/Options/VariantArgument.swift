import CacheStorage

extension CacheCatalog {
    /// What `--variant` means of the commands that take a name or a recipe: a name that runs have used, else
    /// a recipe.
    ///
    /// - Throws: for what is neither, as wrong usage.
    func selector(ofVariant text: String) throws -> VariantSelector {
        let noted: [NotedVariant]
        let isRecipe: Bool
        do throws(StorageError) {
            noted = try variantNames()
            if noted.contains(where: { $0.name == text }) { return .name(text) }
            // A recipe of which nothing is left is none that is misspelt.
            if text.contains(";") { return .recipe(text) }
            isRecipe = try hasVariant(ofRecipe: text)
        } catch {
            throw CommandFailure(error)
        }
        guard isRecipe else { throw VariantChoice.unknown(text, noted) }
        return .recipe(text)
    }
}
