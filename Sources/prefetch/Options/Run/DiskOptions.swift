import ArgumentParser
import CacheStorage
import Pipeline

/// Flags of `run` about files and rows in the cache.
struct DiskOptions: ParsableArguments {
    @Flag(RunFlags.fileAttributes) var fileAttributes: Bool
    @Option(RunFlags.sync) var sync: MetadataWriter.Durability
    @Option(RunFlags.maximumSize) var maxSize: SizeLimitArgument?
    @Option(RunFlags.prune) var prune: String?
    @Option(RunFlags.snapshot) var snapshot: SnapshotRule
    @Option(RunFlags.mode) var mode: ModeArgument?

    func validate() throws {
        if let prune { _ = try PruneRules(specification: prune) }
    }

    func apply(to configuration: inout RunConfiguration) throws {
        configuration.storing.writesFileAttributes = fileAttributes
        configuration.storing.durability = sync
        configuration.storing.maximumSize = maxSize?.size
        configuration.storing.pruning = try prune.map { try PruneRules(specification: $0) }
        configuration.storing.snapshots = snapshot
    }
}
