import PrefetchModel
import Scheduling
import SeededRandom
import Testing

@Suite(.timeLimit(.minutes(15)))
struct RetryPolicyTests {
    @Test func limitDoublesUpToTheCeiling() {
        let backoff = Backoff()
        let limits = (1...9).map { backoff.limit(retry: $0) }
        #expect(limits == [1, 2, 4, 8, 16, 32, 60, 60, 60].map { Duration.seconds($0) })
        #expect(backoff.limit(retry: .max) == .seconds(60))
        #expect(Backoff(base: .seconds(100)).limit(retry: 1) == .seconds(60))
        #expect(Backoff(base: .zero).limit(retry: 5) == .zero)
    }

    @Test(arguments: [UInt64](1...5))
    func jitterIsFull(seed: UInt64) {
        var random = SplitMix(seed: seed)
        let delays = (0..<4000).map { _ in Backoff().delay(retry: 3, using: &random) }
        #expect(delays.allSatisfy { $0 >= .zero && $0 <= .seconds(4) }, "seed \(seed)")
        let mean = delays.reduce(.zero, +) / 4000
        #expect(mean > .seconds(1.8) && mean < .seconds(2.2), "seed \(seed)")
        #expect(delays.contains { $0 < .milliseconds(100) }, "seed \(seed)")
        #expect(delays.contains { $0 > .milliseconds(3900) }, "seed \(seed)")
    }

    @Test func entryHasLimitedRetries() {
        var random = SplitMix(seed: 1)
        var policy = RetryPolicy(maximumRetries: 2, backoff: Backoff(base: .zero))
        let decisions = (1...3).map {
            policy.decide(.connect, httpStatus: nil, attempts: $0, starts: 1, using: &random)
        }
        #expect(decisions == [.retry(after: .zero), .retry(after: .zero), .final])
        #expect(policy.retries == 2)
    }

    @Test func hostsMayHaveLimitsOfTheirOwn() throws {
        var random = SplitMix(seed: 1)
        let pattern = try #require(HostPattern("*.a"))
        var policy = RetryPolicy(
            maximumRetries: 2, byHost: HostTable([(pattern, 0)]), backoff: Backoff(base: .zero))
        let decisions = ["http://x.a/", "http://x.b/"].map {
            policy.decide(
                .connect, httpStatus: nil, attempts: 1, starts: 1,
                of: RequestURL(normalized: $0), using: &random)
        }
        #expect(decisions == [.final, .retry(after: .zero)])
    }

    @Test func runRetriesAreLimitedByStarts() {
        var random = SplitMix(seed: 1)
        var policy = RetryPolicy(maximumRetries: 3, backoff: Backoff(base: .zero))
        var count = 0
        while policy.decide(.dns, httpStatus: nil, attempts: 1, starts: 1000, using: &random)
            != .exhausted
        {
            count += 1
        }
        #expect(count == 300)
        // A failure that is never retried is not reported as exhausted.
        #expect(
            policy.decide(.redirect, httpStatus: nil, attempts: 1, starts: 1000, using: &random)
                == .final)
    }

    @Test func withdrawnRetriesDoNotCount() {
        var random = SplitMix(seed: 1)
        var policy = RetryPolicy(maximumRetries: 3, backoff: Backoff(base: .zero))
        for _ in 0..<1000 {
            #expect(
                policy.decide(
                    .dns, httpStatus: nil, attempts: 1, starts: 1, hasRoom: false, using: &random)
                    == .noRoom)
        }
        #expect(policy.retries == 0)
        for _ in 0..<100 {
            _ = policy.decide(.dns, httpStatus: nil, attempts: 1, starts: 1, using: &random)
        }
        policy.withdraw()
        let decisions = (0..<2).map { _ in
            policy.decide(.dns, httpStatus: nil, attempts: 1, starts: 1, using: &random)
        }
        #expect(decisions == [.retry(after: .zero), .exhausted])
    }

    @Test func transientFailuresAreRetried() {
        for reason in FailureReason.allCases where reason != .httpStatus {
            let isRetried = RetryPolicy.isRetried(reason, httpStatus: 404)
            let expected: Set<FailureReason> = [
                .dns, .connect, .tls, .timeout, .stalled, .interrupted,
            ]
            #expect(isRetried == expected.contains(reason), "\(reason)")
        }
        let retried = (100...699).filter {
            RetryPolicy.isRetried(.httpStatus, httpStatus: $0)
        }
        #expect(retried == [408, 421, 425, 429] + Array(500...699))
        #expect(!RetryPolicy.isRetried(.httpStatus, httpStatus: nil))
    }
}
