import ArgumentParser
import PrefetchModel
import Testing

@testable import prefetch

/// The effect of `--deadline` on statuses and on waiting for the cache.
@Suite(.timeLimit(.minutes(15)))
struct DeadlineTests {
    @Test(arguments: [(0, 3), (1, 1), (2, 2)] as [(Int32, Int32)])
    func failuresKeepTheirStatus(before: Int32, after: Int32) {
        var summary = RunSummary(
            counters: RunCounters(), startedAt: Timestamp(seconds: 0), elapsed: .zero,
            exitStatus: before, cacheDirectory: "/c")
        summary.endAtDeadline()
        #expect(summary.exitStatus == after && summary.endedBy == .deadline)
    }

    @Test(
        arguments: [
            (.wait(nil), .wait(.seconds(2))), (.wait(.seconds(30)), .wait(.seconds(2))),
            (.wait(.seconds(1)), .wait(.seconds(1))), (.fail, .fail),
        ] as [(LockArgument, LockArgument)])
    func bucketsLimitTheWaitForTheCache(lock: LockArgument, limited: LockArgument) throws {
        #expect(try Flags<BucketFlags>.parse(["--deadline", "2s"]).limited(lock) == limited)
        #expect(try Flags<BucketFlags>.parse([]).limited(lock) == lock)
    }
}
