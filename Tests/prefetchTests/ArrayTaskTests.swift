import Testing

@testable import prefetch

/// The shard that the environment of an array job gives.
@Suite(.timeLimit(.minutes(15)))
struct ArrayTaskTests {
    private static let batch = "AWS_BATCH_JOB_ARRAY_INDEX"
    private static let kubernetes = "JOB_COMPLETION_INDEX"
    private static let slurm = "SLURM_ARRAY_TASK_ID"

    @Test(
        arguments: [
            ([kubernetes: "5"], kubernetes, nil),
            ([batch: "5", "AWS_BATCH_JOB_ARRAY_SIZE": "7"], batch, 7),
            (
                [
                    slurm: "5", "SLURM_ARRAY_TASK_COUNT": "7", "SLURM_ARRAY_TASK_MIN": "0",
                    "SLURM_ARRAY_TASK_MAX": "6",
                ], slurm, 7
            ),
            // A part of the tasks was submitted again.
            (
                [
                    slurm: "5", "SLURM_ARRAY_TASK_COUNT": "2", "SLURM_ARRAY_TASK_MIN": "5",
                    "SLURM_ARRAY_TASK_MAX": "6",
                ], slurm, nil
            ),
        ] as [([String: String], String, Int?)])
    func engineTellsTheShard(environment: [String: String], variable: String, count: Int?) {
        let task = ArrayTask { environment[$0] }
        #expect(task == ArrayTask(index: 5, count: count, variable: variable))
    }

    @Test func otherJobsHaveNoShard() {
        #expect(ArrayTask { _ in nil } == nil)
        #expect(ArrayTask { $0 == Self.slurm ? "x" : nil } == nil)
    }
}
