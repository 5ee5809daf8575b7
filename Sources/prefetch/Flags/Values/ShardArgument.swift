import ArgumentParser
import PrefetchModel

/// The shard of a run: `I/N`, `I` with a plan, `auto`, or `auto/N`.
enum ShardArgument: ExpressibleByArgument, Hashable {
    case one(index: Int, count: Int?)
    /// The index of the array job that runs this command.
    case auto(count: Int?)

    init?(argument: String) {
        let parts = argument.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2 else { return nil }
        var count: Int?
        if parts.count == 2 {
            guard let number = Int(digits: parts[1]), Shard.counts.contains(number) else {
                return nil
            }
            count = number
        }
        if parts[0] == "auto" {
            self = .auto(count: count)
        } else {
            guard let index = Int(digits: parts[0]) else { return nil }
            self = .one(index: index, count: count)
        }
    }

    static var allValueStrings: [String] { ["I/N", "auto", "auto/N"] }
    static var defaultCompletionKind: CompletionKind { .list(["auto"]) }
}

/// The place of this process in an array job.
struct ArrayTask: Hashable {
    let index: Int
    /// Nil if the engine does not tell.
    let count: Int?
    /// The variable that gives the index.
    let variable: String
}

extension ArrayTask {
    /// The environment of AWS Batch, Slurm or Kubernetes; nil outside an array job.
    ///
    /// Slurm gives the number of tasks that were submitted. It is that of the shards only if their
    /// indexes are all from 0 on, which is not so when missing shards are submitted again.
    init?(_ value: (String) -> String?) {
        if let index = ArrayTask.number("AWS_BATCH_JOB_ARRAY_INDEX", value) {
            self.init(
                index: index, count: ArrayTask.number("AWS_BATCH_JOB_ARRAY_SIZE", value),
                variable: "AWS_BATCH_JOB_ARRAY_INDEX")
        } else if let index = ArrayTask.number("SLURM_ARRAY_TASK_ID", value) {
            let count = ArrayTask.number("SLURM_ARRAY_TASK_COUNT", value)
            let isWhole =
                ArrayTask.number("SLURM_ARRAY_TASK_MIN", value) == 0
                && ArrayTask.number("SLURM_ARRAY_TASK_MAX", value) == count.map { $0 - 1 }
            self.init(index: index, count: isWhole ? count : nil, variable: "SLURM_ARRAY_TASK_ID")
        } else if let index = ArrayTask.number("JOB_COMPLETION_INDEX", value) {
            self.init(index: index, count: nil, variable: "JOB_COMPLETION_INDEX")
        } else {
            return nil
        }
    }

    private static func number(_ name: String, _ value: (String) -> String?) -> Int? {
        value(name).flatMap { Int(digits: $0) }
    }
}
