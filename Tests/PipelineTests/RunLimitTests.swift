import Foundation
import PrefetchModel
import Testing

@testable import Pipeline

/// Runs over fakes that end at a limit.
@Suite(.timeLimit(.minutes(15)))
struct RunLimitTests {
    private static let folder = FileManager.default.temporaryDirectory.path

    private func run(
        seed: Int, limits: (ContinuousClock.Instant) -> RunLimits
    ) -> (fake: FakeRun, summary: RunSummary) {
        let fake = FakeRun(seed: UInt64(seed), fault: .none, entries: 90)
        let summary = fake.run(
            order: seed % 2 == 0 ? .fifo : .lifo, queueCapacity: [4, 1000][seed / 2 % 2],
            folder: RunLimitTests.folder, limits: limits)
        let counters = summary.counters
        #expect(counters.entriesDone == counters.entriesRead, "seed \(seed)")
        #expect(fake.results.count == counters.entriesRead, "seed \(seed)")
        #expect(fake.isClosed)
        return (fake, summary)
    }

    @Test func atMostThatManyEntriesStart() {
        for seed in 0..<100 {
            let most = seed % 7 + 1
            let (fake, summary) = run(seed: seed) { _ in
                var limits = RunLimits()
                limits.entries = most
                return limits
            }
            let starts = Set(fake.results.compactMap(\.start))
            #expect(starts == Set(1...most), "seed \(seed)")
            #expect(summary.endedBy == .entries, "seed \(seed)")
        }
    }

    @Test func aLimitThatIsNotReachedChangesNothing() {
        let (_, summary) = run(seed: 1) { start in
            var limits = RunLimits()
            limits.entries = 1000
            limits.deadline = start + .seconds(1_000_000)
            return limits
        }
        #expect(summary.endedBy == nil)
        #expect(summary.exitStatus == 1)
    }

    /// Nothing runs beyond the deadline, at whatever time it is.
    @Test func theRunEndsAtItsDeadline() {
        var ends = 0
        for seed in 0..<100 {
            let time = Duration.milliseconds(seed * 3)
            let (_, summary) = run(seed: seed) { start in
                var limits = RunLimits()
                limits.deadline = start + time
                return limits
            }
            // A step of the fake takes up to 5 ms, and those under way take some.
            #expect(summary.elapsed <= time + .milliseconds(100), "seed \(seed)")
            if summary.endedBy == .deadline { ends += 1 }
        }
        #expect(ends > 50)
    }

    @Test func theFirstCountedFailureEndsTheRun() {
        for seed in 0..<50 {
            let (fake, summary) = run(seed: seed) { _ in
                var limits = RunLimits()
                limits.endsAtFailure = true
                return limits
            }
            #expect(summary.exitStatus == 1)
            #expect(fake.results.contains { $0.outcome == .failed }, "seed \(seed)")
        }
    }

    @Test func startsEndEarlyEnoughForRunningTransfers() {
        let start = ContinuousClock.now
        var limits = RunLimits()
        #expect(limits.lastStart(start: start, transferTime: .seconds(9)) == nil)
        limits.deadline = start + .seconds(100)
        #expect(
            limits.lastStart(start: start, transferTime: .seconds(9)) == start
                + .milliseconds(90_500))
        // At most a quarter of the run.
        #expect(
            limits.lastStart(start: start, transferTime: .seconds(90)) == start + .seconds(75))
        limits.deadline = start - .seconds(1)
        #expect(limits.lastStart(start: start, transferTime: .zero) == start - .seconds(1))
    }
}
