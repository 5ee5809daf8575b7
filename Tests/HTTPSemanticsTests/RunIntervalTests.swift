import HTTPSemantics
import PrefetchModel
import Testing

@Suite(.timeLimit(.minutes(15)))
struct RunIntervalTests {
    /// The starts of runs with these intervals, in minutes, the latest first.
    private static func expected(_ minutes: [Int]) -> Duration? {
        var starts = [Timestamp(seconds: 1_800_000_000)]
        for minute in minutes {
            starts.append(starts[starts.count - 1].advanced(by: .seconds(-60 * minute)))
        }
        return RunInterval.expected(from: starts)
    }

    @Test(arguments: [
        ([], nil), ([60], nil), ([60, 60], 60), ([60, 61], 61), ([48, 60, 72], 72),
        // Irregular.
        ([60, 5], nil), ([60, 60, 600], nil), ([1, 10, 100, 1000], nil),
        // A night without runs, and a run by hand within the hour.
        ([60, 60, 60, 540], 60), ([60, 60, 20, 40, 60, 60, 60, 60], 60),
        // A clock that was set back.
        ([60, -5000, 60], 60),
    ])
    func isTheLongestRegularInterval(minutes: [Int], expected: Int?) {
        #expect(Self.expected(minutes) == expected.map { .seconds(60 * $0) })
    }

    @Test func runsAtTheSameTimeHaveNoInterval() {
        #expect(Self.expected([0, 0, 0]) == nil)
    }
}
