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
        var done: [(path: String, index: Int, lines: Int)] = []
        for path in paths {
            let bytes: [UInt8]
            do {
                bytes = try MergeCheck.end(of: path)
            } catch {
                problems.append((path, error.message))
                continue
            }
            guard let summary = RunSummary.read(lastLineOf: bytes), let result = summary.shard
            else {
                problems.append((path, "no summary of a shard"))
                continue
            }
            let shard = result.shard
            if shard.count != count {
                problems.append((path, "shard \(shard.index) of \(shard.count)"))
            } else if result.plan != plan {
                problems.append((path, "shard \(shard.index) of another plan"))
            } else if let gap = MergeCheck.gap(in: summary) {
                problems.append((path, "shard \(shard.index) \(gap)"))
            } else {
                let lines = summary.counters.entriesRead + result.otherEntries
                done.append((path, shard.index, lines))
            }
        }
        // All shards have read the same lists.
        let counts = Dictionary(grouping: done, by: \.lines)
        let lines = counts.max { ($0.value.count, $1.key) < ($1.value.count, $0.key) }?.key ?? 0
        for shard in done {
            guard shard.lines != lines else {
                isDone[shard.index] = true
                continue
            }
            problems.append(
                (
                    shard.path,
                    "shard \(shard.index) ran other lists, with \(shard.lines) lines instead of "
                        + "\(lines)"
                ))
        }
        return (isDone.indices.filter { !isDone[$0] }, problems)
    }

    /// `ended with status 2`; nil if every entry of the shard had its turn.
    private static func gap(in summary: RunSummary) -> String? {
        if let limit = summary.endedBy { return "was ended by --\(limit.rawValue)" }
        guard summary.exitStatus <= 1 else { return "ended with status \(summary.exitStatus)" }
        let cancelled = summary.counters[.cancelled]
        return cancelled > 0 ? "has \(cancelled) cancelled entries" : nil
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
