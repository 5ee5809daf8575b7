import PrefetchModel
import Testing

@testable import Pipeline

@Suite(.timeLimit(.minutes(15)))
struct FailureToleranceTests {
    @Test func countsOrShares() {
        #expect(FailureTolerance.count(2).accepts(failures: 2, of: 3))
        #expect(!FailureTolerance.count(2).accepts(failures: 3, of: 3000))
        #expect(FailureTolerance.percent(5).accepts(failures: 5, of: 100))
        #expect(!FailureTolerance.percent(5).accepts(failures: 6, of: 100))
        #expect(FailureTolerance.percent(0).accepts(failures: 0, of: 0))
    }
}
