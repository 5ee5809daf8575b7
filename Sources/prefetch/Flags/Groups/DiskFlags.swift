import CacheStorage
import ConfigurationFiles
import Pipeline
import PrefetchModel

/// Flags of `run` about files and rows in the cache.
struct DiskFlags: FlagRows {
    static let flags = FlagTable(DiskFlags())

    let seedCache = RunFlag<String?>(
        "seed-cache", value: "dir",
        help: """
            Take images that are missing or stale from this cache, without a request, where they are \
            fresh in it with all requested variants. It is not changed.
            """, inProjects: .refused, check: .path)

    let fileAttributes = RunFlag<Bool>(
        "file-attributes",
        help: """
            Set the extended attributes user.xdg.origin.url and user.mime_type on content files; \
            on many file systems they take a block per file.
            """
    ) { $0.run.storing.writesFileAttributes = $1 }

    let sync = RunFlag<MetadataWriter.Durability>(
        "sync", value: "how", sets: \.run.storing.durability,
        help: """
            What a power cut may lose: the last seconds (normal), nothing that was reported (full), \
            or whole images of this run (off).
            """, inProjects: .refused)

    let maxSize = RunFlag<SizeLimitArgument?>(
        "max-size", value: "size",
        help: """
            Keep the content files within this size on disk: evicts images that are not in this \
            run's lists, least recently listed first; if that is not enough, new images fail. The \
            lists are read completely before the first download.
            """, inProjects: .refused
    ) { $0.run.storing.maximumSize = $1.size }

    let prune = RunFlag<String?>(
        "prune", value: "rules",
        help: """
            Prune by these rules at the end of the run, at most once a day: any of \
            \(PruneRule.allCases.map(\.example).joined(separator: ",")). See `prefetch prune`.
            """, inProjects: .refused
    ) { $0.run.storing.pruning = try PruneRules(specification: $1) }

    let allowsPartialLists = RunFlag<Bool>(
        "allow-partial",
        help: """
            Remove what no list names even if a list is not whole: a line cannot be read, a sitemap \
            did not arrive, or a list is empty. Otherwise nothing is removed then.
            """, inProjects: .refused
    ) { $0.run.storing.allowsPartialLists = $1 }

    let snapshot = RunFlag<SnapshotRule>(
        "snapshot", value: "when", sets: \.run.storing.snapshots,
        help: """
            Whether a run that changed something copies the database once a day (daily or off). A \
            later run restores from this snapshot if the database is damaged.
            """, inProjects: .refused)

    let mode = RunFlag<FileMode?>(
        "mode", value: "mode",
        help: """
            Permissions of new files, whatever the umask; folders get matching execute bits. \
            `prefetch chmod` changes existing files. The cache remembers the mode (default: the \
            remembered one, else 0600).
            """, inProjects: .refused)

    static func combined(_ flags: Flags<DiskFlags>) throws {
        if let prune = flags.prune { _ = try PruneRules(specification: prune) }
    }
}

extension Flags<DiskFlags> {
    /// Opens the seed cache of a run over the cache in a directory; nil without one. If it cannot
    /// be read, the result is nil after a message: it only saves requests.
    func openedSeed(for directory: CacheDirectory?, isQuiet: Bool) throws -> SeedCache? {
        guard let seedCache = self.seedCache else { return nil }
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
}
