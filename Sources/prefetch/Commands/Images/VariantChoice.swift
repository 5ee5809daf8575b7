import ArgumentParser
import CacheStorage
import PrefetchModel
import Upkeep

/// The variant of an image that `get` prints.
enum VariantChoice {
    case recipe(String)
    /// The variant that runs call by this name; `noted` are all names that runs have used.
    case name(String, noted: [NotedVariant])

    var name: String? {
        switch self {
        case .recipe: nil
        case .name(let name, _): name
        }
    }

    /// The requested variant among the variants of one image, newest first; nil without any.
    ///
    /// - Throws: `UserError` if only other variants exist.
    func chosen(of variants: [CacheCatalog.Item]) throws(UserError) -> CacheCatalog.Item? {
        guard !variants.isEmpty else { return nil }
        switch self {
        case .recipe(let recipe):
            if let chosen = variants.first(where: { $0.recipe == recipe }) { return chosen }
            let stored = VariantChoice.recipes(of: variants)
            throw UserError(.incomplete, "not stored as \(recipe), only as \(stored)")
        case .name(let name, let noted):
            if let chosen = VariantChoice.chosen(name, of: variants, noted) { return chosen }
            throw refusal(name, variants, noted)
        }
    }

    /// The same for a manifest line: its fields may name a recipe or a variant of its own.
    func chosen(
        of variants: [CacheCatalog.Item], by line: EntryExtras?, in runs: VariantSet?
    ) throws(UserError) -> CacheCatalog.Item? {
        guard let recipe = recipe(by: line, in: runs), !variants.isEmpty else {
            return try chosen(of: variants)
        }
        let item = variants.first { !$0.isSuperseded && $0.isMade(asBy: recipe) }
        if let item { return item }
        let stored = VariantChoice.recipes(of: variants)
        throw UserError(.incomplete, "not stored as \(recipe), only as \(stored)")
    }

    /// The variants of all runs' flags, to which a line's fields apply. Nil for a recipe, and if
    /// runs have used more names than a set holds: the fields then select nothing.
    var variantsOfRuns: VariantSet? {
        guard case .name(_, let noted) = self else { return nil }
        return try? VariantSet(
            noted.filter(\.isOfRun).compactMap { noted in
                guard let name = VariantName(noted.name),
                    let recipe = Recipe(canonicalText: noted.recipe)
                else { return nil }
                return RequestedVariant(name: name, recipe: recipe)
            })
    }

    /// The recipe of the requested name by a line's fields, of the line's first variant if the line
    /// excludes `main`.
    private func recipe(by line: EntryExtras?, in runs: VariantSet?) -> String? {
        guard case .name(let name, _) = self, let line, line.changesVariants,
            let variants = runs?.applying(line)
        else { return nil }
        let isMain = name == VariantName.main.text
        return
            (variants.first { $0.name.text == name } ?? (isMain ? variants.primary : nil))?
            .recipeText
    }

    private static func chosen(
        _ name: String, of variants: [CacheCatalog.Item], _ noted: [NotedVariant]
    ) -> CacheCatalog.Item? {
        let known = noted.first { $0.name == name }
        let recipe = known?.recipe
        let inUse = variants.filter { !$0.isSuperseded }
        let tagged = inUse.first { $0.name == name }
        let made = inUse.first { $0.recipe == recipe }
        // Lines may have their own recipes for `main` and for names that no flag defines, so the
        // noted recipe for that name may be another variant of this image.
        if name == VariantName.main.text || known?.isOfRun == false { return tagged ?? made }
        // A variant with the current recipe wins over one that only had the name before.
        return made ?? tagged ?? variants.first { $0.recipe == recipe }
    }

    private func refusal(
        _ name: String, _ variants: [CacheCatalog.Item], _ noted: [NotedVariant]
    ) -> UserError {
        let inUse = variants.filter { !$0.isSuperseded }
        guard !inUse.isEmpty else {
            return UserError(
                .incomplete,
                """
                the variant in use is no longer stored; superseded variants: \
                \(VariantChoice.recipes(of: variants))
                """,
                hint: "--recipe RECIPE prints one of them")
        }
        let names = noted.filter { noted in
            inUse.contains { $0.name == noted.name || $0.recipe == noted.recipe }
        }.map(\.name)
        return UserError(
            .incomplete, "not stored as \(name), only as \(names.joined(separator: ", "))",
            hint: names.first.map { "--variant \($0) prints the stored one" })
    }

    private static func recipes(of variants: [CacheCatalog.Item]) -> String {
        variants.map(\.recipe).sorted().joined(separator: ", ")
    }

    /// A usage error: no run has used this name.
    static func unknown(_ name: String, _ noted: [NotedVariant]) -> UserError {
        let names = noted.map(\.name)
        let guess = names.first(where: name.isNearly).map { " (did you mean '\($0)'?)" } ?? ""
        return UserError(
            .usage,
            """
            --variant: unknown variant '\(name)'\(guess); the cache has \
            \(names.joined(separator: ", "))
            """)
    }
}

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

/// Flags of `get` that choose the variant.
struct WantedVariant: ParsableArguments {
    @Option(
        help: .value(
            "name",
            """
            The variant to print, by its name in --variant NAME=SPEC of runs (default: main, the \
            variant of their other flags).
            """), completion: .storedVariants)
    var variant: String?

    @Option(
        help: .value(
            "recipe",
            """
            The recipe of the variant to print, as in `list --json` (default: the recipe that the \
            last run used for the variant's name).
            """))
    var recipe: String?

    func validate() throws {
        guard recipe == nil || variant == nil else {
            throw ValidationError("--variant and --recipe cannot be combined")
        }
    }

    /// The variant that the flags select.
    ///
    /// - Throws: `UserError` with status 64 for a name that no run has used.
    func choice(from catalog: CacheCatalog) throws -> VariantChoice {
        if let recipe { return .recipe(recipe) }
        let noted = try catalog.variantNames()
        guard let name = variant else { return .name(VariantName.main.text, noted: noted) }
        guard noted.contains(where: { $0.name == name }) else {
            throw VariantChoice.unknown(name, noted)
        }
        return .name(name, noted: noted)
    }
}
