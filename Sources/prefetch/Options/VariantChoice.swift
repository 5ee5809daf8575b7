import CacheStorage
import Glibc
import PrefetchModel

/// Which of an image's variants `get` gives.
enum VariantChoice {
    /// The one that was made by this recipe.
    case recipe(String)
    /// The one that runs call so; `noted` are the names that runs have used.
    case name(String, noted: [NotedVariant])

    /// That was asked for; nil when it was a recipe.
    var name: String? {
        switch self {
        case .recipe: nil
        case .name(let name, _): name
        }
    }

    /// The variant that is asked for, of those of one image, the newest first; nil when there are none.
    ///
    /// - Throws: when there are others only.
    func chosen(
        of variants: [CacheCatalog.Item]
    ) throws(GetCommand.Refusal) -> CacheCatalog.Item? {
        guard !variants.isEmpty else { return nil }
        switch self {
        case .recipe(let recipe):
            if let chosen = variants.first(where: { $0.recipe == recipe }) { return chosen }
            let stored = VariantChoice.recipes(of: variants)
            throw GetCommand.Refusal(message: "is not stored as \(recipe), but as \(stored)")
        case .name(let name, let noted):
            if let chosen = VariantChoice.chosen(name, of: variants, noted) { return chosen }
            throw refusal(name, variants, noted)
        }
    }

    private static func chosen(
        _ name: String, of variants: [CacheCatalog.Item], _ noted: [NotedVariant]
    ) -> CacheCatalog.Item? {
        let recipe = noted.first { $0.name == name }?.recipe
        let inUse = variants.filter { !$0.isSuperseded }
        let tagged = inUse.first { $0.name == name }
        let made = inUse.first { $0.recipe == recipe }
        // Entries may have recipes of their own for `main`, so what the last run called so, over
        // whatever list, may be another variant of this image.
        if name == VariantName.main.text { return tagged ?? made }
        // It may share the variant with a name that has left it; what it was before says less.
        return made ?? variants.first { $0.recipe == recipe } ?? tagged
    }

    private func refusal(
        _ name: String, _ variants: [CacheCatalog.Item], _ noted: [NotedVariant]
    ) -> GetCommand.Refusal {
        let inUse = variants.filter { !$0.isSuperseded }
        guard !inUse.isEmpty else {
            return GetCommand.Refusal(
                message: """
                    the variant in use is no longer stored, but \
                    \(VariantChoice.recipes(of: variants)) is
                    """,
                hint: "--recipe picks a variant")
        }
        let names = noted.filter { noted in
            inUse.contains { $0.name == noted.name || $0.recipe == noted.recipe }
        }.map(\.name)
        return GetCommand.Refusal(
            message: "is not stored as \(name), but as \(names.joined(separator: ", "))",
            hint: names.first.map { "--variant \($0) gets what is stored" })
    }

    private static func recipes(of variants: [CacheCatalog.Item]) -> String {
        variants.map(\.recipe).sorted().joined(separator: ", ")
    }
}

extension GetCommand {
    /// What the flags ask for.
    ///
    /// - Throws: for a name that no run has used, as wrong usage.
    func choice(from catalog: CacheCatalog) throws -> VariantChoice {
        if let recipe { return .recipe(recipe) }
        let noted: [NotedVariant]
        do throws(StorageError) {
            noted = try catalog.variantNames()
        } catch {
            throw CommandFailure(error)
        }
        guard let name = variant else { return .name(VariantName.main.text, noted: noted) }
        guard noted.contains(where: { $0.name == name }) else {
            throw VariantChoice.unknown(name, noted)
        }
        return .name(name, noted: noted)
    }
}

extension VariantChoice {
    /// Wrong usage: no run has called a variant so.
    static func unknown(_ name: String, _ noted: [NotedVariant]) -> CommandFailure {
        let names = noted.map(\.name)
        let guess = names.first(where: name.isNearly).map { " (did you mean '\($0)'?)" } ?? ""
        return CommandFailure(
            exitStatus: EX_USAGE,
            message: """
                --variant: unknown variant '\(name)'\(guess); the cache has \
                \(names.joined(separator: ", "))
                """)
    }
}
