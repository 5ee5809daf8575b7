import ArgumentParser
import CacheStorage
import PrefetchModel

/// Flags of `get` that choose the variant.
struct WantedVariant: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            """
            The variant to print, by its name in --variant NAME=SPEC of runs (default: main, the \
            variant of their other flags).
            """,
            valueName: "name"), completion: .storedVariants)
    var variant: String?

    @Option(
        help: ArgumentHelp(
            """
            The recipe of the variant to print, as in `list --json` (default: the recipe that the \
            last run used for the variant's name).
            """,
            valueName: "recipe"))
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

/// Flags of `get` about the caches of shards.
struct ShardSource: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            """
            Look in the caches of shards that are not merged. Their directories have the index in place \
            of {shard}; the domain of the URL decides on the cache.
            """,
            valueName: "dir-{shard}"), completion: .directory)
    var caches: ShardedCaches?

    @Option(
        help: ArgumentHelp(
            "The plan of the shards of --caches (default: none, they are --shard I/N).",
            valueName: "file"), completion: .file())
    var plan: String?

    func validate() throws {
        guard plan == nil || caches != nil else { throw ValidationError("--plan needs --caches") }
    }

    /// Finds the shards; nil without `--caches`.
    func open() throws -> ShardedCaches.Opened? { try caches?.open(plan: plan) }
}
