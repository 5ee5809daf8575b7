import ArgumentParser
import CacheStorage
import Pipeline
import PrefetchModel

/// Flags of `run` about files and rows in the cache.
struct DiskOptions: ParsableArguments {
    @Option(RunFlags.seedCache) var seedCache: String?
    @Flag(RunFlags.fileAttributes) var fileAttributes: Bool
    @Option(RunFlags.sync) var sync: MetadataWriter.Durability
    @Option(RunFlags.maximumSize) var maxSize: SizeLimitArgument?
    @Option(RunFlags.prune) var prune: String?
    @Flag(RunFlags.allowPartial) var allowsPartialLists: Bool
    @Option(RunFlags.snapshot) var snapshot: SnapshotRule
    @Option(RunFlags.mode) var mode: ModeArgument?

    func validate() throws {
        if seedCache?.isEmpty == true { throw ValidationError("--seed-cache needs a path") }
        if let prune { _ = try PruneRules(specification: prune) }
    }

    /// Opens the seed cache of a run over the cache in a directory; nil without one. If it cannot
    /// be read, the result is nil after a message: it only saves requests.
    func openedSeed(for directory: CacheDirectory?, isQuiet: Bool) throws -> SeedCache? {
        guard let seedCache else { return nil }
        let seed: SeedCache
        do throws(StorageError) {
            seed = try SeedCache(path: seedCache)
        } catch {
            // The hints are for the run's own cache.
            if !isQuiet { StandardError.message("--seed-cache: \(error.description); not used") }
            return nil
        }
        if let directory, seed.isSame(as: directory) {
            throw UserError("--seed-cache: \(seedCache) is the run's own cache")
        }
        return seed
    }

    func apply(to configuration: inout RunConfiguration) throws {
        configuration.storing.writesFileAttributes = fileAttributes
        configuration.storing.durability = sync
        configuration.storing.maximumSize = maxSize?.size
        configuration.storing.pruning = try prune.map { try PruneRules(specification: $0) }
        configuration.storing.allowsPartialLists = allowsPartialLists
        configuration.storing.snapshots = snapshot
    }
}
