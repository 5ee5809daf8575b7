import ArgumentParser
import PrefetchModel

/// Flags of `get` about the caches of shards.
struct ShardSource: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            """
            Look in the caches of shards that are not merged, whose directories have the index in place \
            of {shard}: the domain of the URL decides on the cache.
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
