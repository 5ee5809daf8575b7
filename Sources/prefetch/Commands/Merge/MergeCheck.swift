import PrefetchModel
import Reporting
import Sharding

/// `merge --check`: finds the shards that have not run to their end.
struct MergeCheck {
    /// The number of shards, and the digest of their plan; nil without a plan.
    let count: Int
    let plan: String?

    /// Takes the path of a plan, or the number of shards.
    init(_ argument: String) throws {
        if let count = Int(argument), Shard.counts.contains(count) {
            (self.count, plan) = (count, nil)
        } else {
            let (plan, _, digest) = try ShardPlan.open(argument)
            (count, self.plan) = (plan.shards, "\(digest)")
        }
    }

    /// Returns the indexes of the missing shards, and the reason why a file counts for none.
    func missing(
        from paths: [String]
    ) -> (indexes: [Int], problems: [(path: String, reason: String)]) {
        var isDone = [Bool](repeating: false, count: count)
        var problems: [(String, String)] = []
        var done: [(path: String, summary: ShardSummary)] = []
        for path in paths {
            let bytes: [UInt8]
            do {
                bytes = try MergeCheck.end(of: path)
            } catch {
                problems.append((path, error.message))
                continue
            }
            guard let summary = ShardSummary(bytes) else {
                problems.append((path, "no summary of a shard"))
                continue
            }
            let shard = summary.shard.shard
            if shard.count != count {
                problems.append((path, "shard \(shard.index) of \(shard.count)"))
            } else if summary.shard.plan != plan {
                problems.append((path, "shard \(shard.index) of another plan"))
            } else if let end = summary.end {
                problems.append((path, "shard \(shard.index) \(end)"))
            } else {
                done.append((path, summary))
            }
        }
        // All shards have read the same lists.
        let counts = Dictionary(grouping: done) { $0.summary.lines }
        let lines = counts.max { ($0.value.count, $1.key) < ($1.value.count, $0.key) }?.key
        for (path, summary) in done {
            if summary.lines == lines {
                isDone[summary.shard.shard.index] = true
            } else {
                problems.append(
                    (
                        path,
                        "shard \(summary.shard.shard.index) ran other lists, with "
                            + "\(summary.lines) lines instead of \(lines ?? 0)"
                    ))
            }
        }
        return (isDone.indices.filter { !isDone[$0] }, problems)
    }

    /// No summary is longer.
    private static let mostBytes = 1 << 20

    /// The last bytes of a file; a report may have millions of lines.
    private static func end(of path: String) throws(UserError) -> [UInt8] {
        var bytes: [UInt8] = []
        try InputFile(path).readPieces { piece in
            bytes += piece
            if bytes.count > 2 * mostBytes { bytes.removeFirst(bytes.count - mostBytes) }
        }
        return bytes
    }

    /// `3,17-19`, as Kubernetes, Slurm and AWS Batch take it.
    static func ranges(_ indexes: [Int]) -> String {
        var ranges: [ClosedRange<Int>] = []
        for index in indexes {
            if let last = ranges.last, last.upperBound + 1 == index {
                ranges[ranges.count - 1] = last.lowerBound...index
            } else {
                ranges.append(index...index)
            }
        }
        return ranges.map { range in
            range.count == 1 ? "\(range.lowerBound)" : "\(range.lowerBound)-\(range.upperBound)"
        }.joined(separator: ",")
    }
}
