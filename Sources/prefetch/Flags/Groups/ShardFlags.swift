import ArgumentParser
import CacheStorage
import ConfigurationFiles
import Glibc
import Hashing
import Manifests
import PrefetchModel
import Sharding
import Threading

/// Flags of `run` about its lists, and its part of them.
struct ShardFlags: FlagRows {
    static let flags = FlagTable(ShardFlags())

    let lists = RunFlag<[String]>(
        repeatable: "list", value: "url",
        help: """
            Also read the list at this URL, or in this file; repeatable. The cache keeps a copy, \
            which is used when the origin fails.
            """, brief: "read the list at this URL", isConfigurable: false, inProjects: .refused)

    let shard = RunFlag<ShardArgument?>(
        "shard", value: "i/n",
        help: """
            Take only shard I of N, 0 to N-1, for runs on N machines: all URLs of a registrable domain \
            are in one shard. auto is the index of the array job (Kubernetes, Slurm, AWS Batch), auto/N \
            gives N where the engine does not.
            """, isConfigurable: false)

    let plan = RunFlag<String?>(
        "plan", value: "file",
        help: "Take the shards of this plan, which `prefetch plan --shards N -o FILE` has made.",
        isConfigurable: false)

    static func combined(_ flags: Flags<ShardFlags>) throws {
        if flags.plan != nil, flags.shard == nil {
            throw ValidationError("--plan needs --shard with the index of the shard, or auto")
        }
    }
}

/// A run's shard, and the digest of its plan.
struct ShardChoice {
    let shard: Shard
    let plan: ShardPlan?
    /// The bytes of the plan's file and their digest; nil without a plan.
    let planFile: (bytes: [UInt8], digest: ContentDigest)?

    /// The number of shards that share the limits of a host, for hosts of split domains.
    var parts: HostTable<Int> {
        let parts = plan?.parts(of: shard.index) ?? []
        return HostTable(
            parts.flatMap { domain, count in
                [domain, "*.\(domain)"].compactMap(HostPattern.init).map { ($0, count) }
            })
    }

    /// The entries of lists that belong to this shard.
    var filter: ShardFilter {
        let (count, plan) = (shard.count, plan)
        return ShardFilter(index: shard.index) {
            let selector = ShardSelector(count: count, plan: plan)
            return { selector.shard(of: $0, key: $1) }
        }
    }

    /// Whether the domain of a URL in normal form has no place in this shard.
    var leaves: @Sendable (String) -> Bool {
        let selector = Monitor(ShardSelector(count: shard.count, plan: plan))
        let index = shard.index
        return { url in
            var url = url
            return url.withUTF8 { bytes in
                selector.withLock {
                    !$0.shards(of: UnsafeRawBufferPointer(bytes)).contains(index)
                }
            }
        }
    }

    var result: ShardResult {
        ShardResult(shard, plan: planFile.map { "\($0.digest)" })
    }
}

extension Flags<ShardFlags> {
    /// Finds the shard, one of the plan's if there is a plan; nil for the whole lists.
    func choice() throws -> ShardChoice? {
        guard let shard = self.shard else { return nil }
        try RegistrableDomain.load(for: "--shard")
        let file = try self.plan.map(ShardPlan.open)
        let (index, count) = try place(shard, planned: file?.plan.shards)
        guard let chosen = Shard(index: index, count: count) else {
            throw UserError(
                .usage,
                "--shard: there is no shard \(index) of \(count): they are 0 to \(count - 1)")
        }
        return ShardChoice(
            shard: chosen, plan: file?.plan, planFile: file.map { ($0.bytes, $0.digest) })
    }

    private func place(_ shard: ShardArgument, planned: Int?) throws -> (index: Int, count: Int) {
        func count(_ given: Int?, _ hint: String) throws -> Int {
            if let given, let planned, given != planned {
                throw UserError(.usage, "--shard: the plan has \(planned) shards, and not \(given)")
            }
            guard let count = planned ?? given else { throw UserError(.usage, hint) }
            return count
        }
        switch shard {
        case .one(let index, let given):
            return (index, try count(given, "--shard: write I/N, like 3/8, or give --plan"))
        case .auto(let given):
            guard let task = ArrayTask(environment) else {
                throw UserError(
                    .usage,
                    "--shard auto: none of AWS_BATCH_JOB_ARRAY_INDEX, SLURM_ARRAY_TASK_ID and "
                        + "JOB_COMPLETION_INDEX is set: this is not an array job")
            }
            // A given number counts: a part of the tasks may have been submitted again.
            return (
                task.index,
                try count(
                    given ?? (planned == nil ? task.count : nil),
                    "--shard auto: \(task.variable) does not tell the number of shards: "
                        + "write auto/N")
            )
        }
    }
}

extension ShardPlan {
    /// Reads a plan and its digest.
    ///
    /// - Throws: `UserError` with status 2.
    static func open(
        _ path: String
    ) throws -> (plan: ShardPlan, bytes: [UInt8], digest: ContentDigest) {
        let bytes = try InputFile(path).read(limit: mostFileBytes)
        return (
            try ShardPlan(file: bytes, name: path), bytes,
            bytes.withUnsafeBytes { SHA256Hasher().digest(of: $0) }
        )
    }
}

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
