import ArgumentParser
import CacheStorage
import Glibc
import PrefetchModel
import Sharding

/// The caches of shards that are not merged: `DIR-{shard}`, with the index in place of `{shard}`.
struct ShardedCaches: ExpressibleByArgument {
    private static let place = "{shard}"

    private let text: String

    init?(argument: String) {
        guard argument.contains(ShardedCaches.place) else { return nil }
        text = argument
    }

    func path(_ index: Int) -> String {
        text.replacing(ShardedCaches.place, with: "\(index)")
    }

    /// Finds the shards, and the rule by which entries belong to them: that of the plan at a path.
    ///
    /// - Throws: `UserError` without caches, or if the plan has another number.
    func open(plan: String?) throws -> Opened {
        try RegistrableDomain.load(for: "--caches")
        var count = 0
        while access(path(count), F_OK) == 0 { count += 1 }
        if let next = (count + 1...count + 64).first(where: { access(path($0), F_OK) == 0 }) {
            throw UserError("--caches: \(path(count)) is missing, but \(path(next)) is there")
        }
        guard count > 0 else {
            throw UserError(.incomplete, "--caches: \(path(0)): there is no cache yet")
        }
        let file = try plan.map(ShardPlan.open)
        if let planned = file?.plan.shards, planned != count {
            throw UserError(
                "--caches: the plan has \(planned) shards, and there are \(count) caches")
        }
        return Opened(
            caches: self, count: count, selector: ShardSelector(count: count, plan: file?.plan))
    }

    /// The shards; not thread-safe.
    final class Opened {
        private let caches: ShardedCaches
        let count: Int
        private let selector: ShardSelector
        private var catalogs: [Int: CacheCatalog] = [:]

        fileprivate init(caches: ShardedCaches, count: Int, selector: ShardSelector) {
            self.caches = caches
            self.count = count
            self.selector = selector
        }

        func catalog(_ index: Int) throws -> CacheCatalog {
            // `merge` may have replaced the database.
            if let catalog = catalogs[index], !catalog.isReplaced { return catalog }
            let catalog = try CacheCatalog(
                directory: CacheDirectory(path: caches.path(index), access: .readOnly))
            catalogs[index] = catalog
            return catalog
        }

        /// The shards that may have a URL in normal form; all for nil.
        func shards(of url: String?) -> [Int] {
            guard var url else { return Array(0..<count) }
            return url.withUTF8 { selector.shards(of: UnsafeRawBufferPointer($0)) }
        }

        /// The shards that may have an entry; all for a line that is no URL, which may be a key.
        func shards(of record: EntryBatch.Record, in text: UnsafeRawBufferPointer) -> [Int] {
            guard record.problem < 0 else { return Array(0..<count) }
            return selector.shards(of: UnsafeRawBufferPointer(rebasing: text[record.url]))
        }
    }
}

/// Flags of `get` about the caches of shards.
struct ShardSource: ParsableArguments {
    @Option(
        help: .value(
            "dir-{shard}",
            """
            Look in the caches of shards that are not merged. Their directories have the index in place \
            of {shard}; the domain of the URL decides on the cache.
            """), completion: .directory)
    var caches: ShardedCaches?

    @Option(
        help: .value(
            "file", "The plan of the shards of --caches (default: none, they are --shard I/N)."),
        completion: .file())
    var plan: String?

    func validate() throws {
        guard plan == nil || caches != nil else { throw ValidationError("--plan needs --caches") }
    }

    /// Finds the shards; nil without `--caches`.
    func open() throws -> ShardedCaches.Opened? { try caches?.open(plan: plan) }
}
