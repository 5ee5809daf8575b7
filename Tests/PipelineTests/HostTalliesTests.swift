import PrefetchModel
import Testing

@testable import Pipeline

@Suite(.timeLimit(.minutes(15)))
struct HostTalliesTests {
    private let now = ContinuousClock.now

    @Test func failuresWithoutAResponseCount() throws {
        var tallies = HostTallies()
        tallies.noteRequest(to: "https://a", at: now)
        for _ in 0..<5 { tallies.noteFailure(.dns, httpStatus: nil, at: "https://a", at: now) }
        tallies.noteFailure(.httpStatus, httpStatus: 403, at: "https://a", at: now)
        tallies.noteFailure(.disk, httpStatus: nil, at: "https://a", at: now)
        let tally = try #require(tallies.largest.first)
        let pace = tally.pace
        #expect(pace.host == "https://a")
        #expect(pace.requests == 1 && pace.responses == 0)
        #expect(pace.failures.count == 6)
        #expect(pace.failures.main?.cause == HostFailures.Cause(.dns, httpStatus: 200))
        #expect(pace.failures.main?.count == 5)
        #expect(tally.transferTimes == nil && tally.perSecond == 0)
    }

    @Test func theLargestHostsStayWhenMemoryIsShort() {
        var tallies = HostTallies()
        for _ in 0..<3 {
            tallies.noteRequest(to: "https://large", at: now)
            tallies.noteFailure(.connect, httpStatus: nil, at: "https://dead", at: now)
        }
        for number in 0..<10_000 { tallies.noteRequest(to: "https://\(number)", at: now) }
        #expect(tallies.largest.count == 10)
        #expect(tallies.largest.prefix(2).map(\.pace.host) == ["https://dead", "https://large"])
    }

    @Test func causesOfAHostAreLimited() {
        var failures = HostFailures()
        for status in 400..<500 {
            failures.note(HostFailures.Cause(.httpStatus, httpStatus: status))
        }
        #expect(failures.count == 100 && failures.main == nil)
        for _ in 0..<200 { failures.note(HostFailures.Cause(.httpStatus, httpStatus: 400)) }
        #expect(failures.main?.count == 201)
    }
}
