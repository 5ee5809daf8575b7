import CacheStorage
import Glibc
import Hashing
import Manifests
import Pipeline
import PrefetchModel
import Reporting
import Sharding

/// `plan --shards`: counts the entries of each domain in one pass, and writes a plan.
struct ShardPlanning {
    let shards: Int
    let machines: Int?
    let path: String

    /// Reads all entries, and writes the plan. `hosts` is the cache that knows the pace of hosts;
    /// domains are split by `rules`.
    func run(
        over reader: inout ManifestSequence, hosts: CacheCatalog?, rules: HostRules
    ) throws -> ShardPlan {
        var planner = ShardPlanner()
        var badLines = 0
        while let batch = try reader.nextBatch() {
            badLines += batch.records.count { $0.problem >= 0 }
            batch.text.withUnsafeBytes { text in
                for record in batch.records where record.problem < 0 {
                    planner.add(UnsafeRawBufferPointer(rebasing: text[record.url]))
                }
            }
        }
        if badLines > 0 {
            StandardError.write("prefetch: \(counted(badLines, "bad line")), which shard 0 reports")
        }
        let lists = try reader.names.map {
            ShardPlan.List(name: $0, identity: try ShardPlan.List.Identity(list: $0))
        }
        let paces = try hosts.map(ShardPlanning.times) ?? [:]
        let plan = planner.plan(
            shards: shards, machines: machines, lists: lists, mostParts: rules.mostParts
        ) { domain, count in
            paces[domain].map { $0 * count }
        }
        try OutputFile.replace(path, with: plan.file)
        return plan
    }

    /// The time of a request by domain, at the slowest pace that a host of it has accepted.
    private static func times(_ catalog: CacheCatalog) throws -> [String: Duration] {
        var times: [String: Duration] = [:]
        for state in try catalog.hostStates(at: WallClock.now()) {
            let answered = state.latency.map { $0 / Double(state.concurrency ?? 1) }
            guard let time = [answered, state.interval].compactMap(\.self).max() else { continue }
            var url = state.host + "/"
            let domain = url.withUTF8 { bytes in
                ShardSelector.domain(ofURL: UnsafeRawBufferPointer(bytes))
            }
            times[domain] = max(times[domain] ?? .zero, time)
        }
        return times
    }

    /// `plan.json: 8 shards of 124990 to 125010 entries; 2 domains in several shards`
    func text(_ plan: ShardPlan) -> [String] {
        let least = plan.loads.min() ?? 0
        let most = plan.loads.max() ?? 0
        var text = "\(path): \(counted(plan.shards, "shard")) of "
        text += least == most ? "\(most) entries each" : "\(least) to \(most) entries"
        if !plan.split.isEmpty {
            text += "; \(counted(plan.split.count, "domain")) in several shards"
        }
        var lines = [text]
        if let slowest = plan.times?.max() {
            lines.append(
                "  the slowest domain takes \(durationText(slowest)) at its pace in earlier runs")
        }
        return lines
    }
}

extension ShardPlan.List.Identity {
    /// The hashed bytes at each end: reading all of a large list twice would take minutes.
    private static let endBytes = 64 << 10

    /// The identity of a list in a regular file; nil for other lists.
    init?(list path: String) throws {
        guard path != "-", path != EntryBatch.nameOfArguments, !ManifestSequence.isURL(path) else {
            return nil
        }
        func unreadable(_ code: Int32) -> UserError {
            UserError(path, "cannot read: \(String(cString: strerror(code)))")
        }
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw unreadable(errno) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw unreadable(errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { return nil }
        let size = Int(status.st_size)
        var bytes: [UInt8] = []
        let end = max(ShardPlan.List.Identity.endBytes, size - ShardPlan.List.Identity.endBytes)
        for start in [0, end] where start < size {
            let length = min(ShardPlan.List.Identity.endBytes, size - start)
            var part = [UInt8](repeating: 0, count: length)
            let count = pread(descriptor, &part, length, off_t(start))
            guard count == length else { throw unreadable(count < 0 ? errno : EIO) }
            bytes += part
        }
        let digest = bytes.withUnsafeBytes { SHA256Hasher().digest(of: $0) }
        self.init(bytes: size, digest: digest.description)
    }
}

extension ShardPlan {
    /// Returns the name of a list that is not one of the plan's, or of a planned one that is not
    /// read; nil if the lists are the same. Only regular files are compared.
    func difference(from names: [String]) throws -> String? {
        let known = lists.compactMap(\.identity)
        var read: [List.Identity] = []
        for name in names {
            guard let identity = try List.Identity(list: name) else { continue }
            guard known.contains(identity) else { return name }
            read.append(identity)
        }
        return lists.first { list in list.identity.map { !read.contains($0) } ?? false }?.name
    }
}
