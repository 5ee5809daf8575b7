import PrefetchModel
import Testing

@testable import Scheduling

@Suite(.timeLimit(.minutes(15)))
struct HostPacingTests {
    private let rules = HostPacing.PaceRules(concurrency: 8)

    private func finish(
        _ pacing: inout HostPacing, _ signal: HostPacing.Signal, at now: Double = 0,
        times: Int = 1
    ) {
        for _ in 0..<times {
            let start = pacing.started(at: at(now), rules)
            pacing.finished(signal, start: start, at: at(now), rules)
        }
    }

    @Test func overloadHalvesConcurrencyOncePerRound() {
        var pacing = HostPacing(rules)
        let starts = (0..<8).map { _ in pacing.started(at: at(0), rules) }
        for start in starts {
            pacing.finished(.overloaded(retryAfter: nil), start: start, at: at(0), rules)
        }
        #expect(pacing.concurrency == 4)
        finish(&pacing, .overloaded(retryAfter: nil))
        #expect(pacing.concurrency == 2)
        finish(&pacing, .overloaded(retryAfter: nil), times: 2)
        #expect(pacing.concurrency == 1)
    }

    @Test func goodRoundRaisesConcurrencyByOne() {
        var pacing = HostPacing(rules)
        finish(&pacing, .overloaded(retryAfter: nil), times: 3)
        #expect(pacing.concurrency == 1)
        var answers: [Int] = []
        for concurrency in 1..<8 {
            var count = 0
            while pacing.concurrency == concurrency {
                finish(&pacing, .answered)
                count += 1
            }
            answers.append(count)
        }
        #expect(answers == [1, 2, 3, 4, 5, 6, 7])
        finish(&pacing, .answered, times: 100)
        #expect(pacing.concurrency == 8)
        #expect(pacing.memory(rules, at: at(100)) == nil)
    }

    /// Over HTTP/2 a host may get more transfers than connections.
    @Test func sharedConnectionsHaveALimitOfTheirOwn() {
        let rules = HostPacing.PaceRules(
            concurrency: 8, sharedConcurrency: 32, firstConcurrency: 8, isAdaptive: true)
        var pacing = HostPacing(
            rules,
            remembered: HostPacing.Memory(
                concurrency: 16, latency: .milliseconds(50), failuresInARow: 0, coolingUntil: nil),
            now: at(0))
        func answer(isShared: Bool) {
            let start = pacing.started(at: at(1), rules)
            pacing.finished(
                .answered, HostPacing.Observation(isShared: isShared), start: start, at: at(1),
                rules)
        }
        answer(isShared: true)
        #expect(pacing.limit(rules) != .settings)
        answer(isShared: false)
        #expect(pacing.limit(rules) == .settings)
    }

    /// Defaults are not told as settings.
    @Test(arguments: [true, false])
    func onlyChosenNumbersLimitAHost(isChosen: Bool) {
        let rules = HostPacing.PaceRules(concurrency: 8, isChosen: isChosen)
        let paced = HostPacing.PaceRules(concurrency: 8, isChosen: isChosen, interval: .seconds(1))
        var pacing = HostPacing(rules)
        #expect(pacing.limit(rules) == (isChosen ? .settings : nil))
        _ = pacing.started(at: at(0), paced)
        #expect(pacing.limit(paced) == .settings)
    }

    @Test func breakerOpensAfterTenConsecutiveFailures() {
        var pacing = HostPacing(rules)
        finish(&pacing, .unreachable(.connect), times: 9)
        finish(&pacing, .answered)
        finish(&pacing, .unreachable(.connect), times: 9)
        finish(&pacing, .nothing)
        #expect(pacing.wakeTime == nil)
        #expect(pacing.hasRoom(running: 7))
        finish(&pacing, .unreachable(.connect))
        #expect(pacing.wakeTime == at(1))
        #expect(pacing.hasRoom(running: 0))
        #expect(!pacing.hasRoom(running: 1))
    }

    /// The host is reachable; its capacity is unknown.
    @Test func interruptedResponseResetsFailures() {
        var pacing = HostPacing(rules)
        finish(&pacing, .unreachable(.connect), times: 9)
        finish(&pacing, .brokeOff)
        finish(&pacing, .unreachable(.connect), times: 9)
        #expect(pacing.wakeTime == nil)
        finish(&pacing, .unreachable(.connect))
        finish(&pacing, .brokeOff, at: 1)
        #expect(pacing.concurrency == 1)
        finish(&pacing, .brokeOff, at: 1, times: 100)
        #expect(pacing.concurrency == 1)
        #expect(pacing.memory(rules, at: at(2))?.failuresInARow == 0)
    }

    @Test func successfulProbeClosesBreakerAtConcurrencyOne() {
        var pacing = HostPacing(rules)
        finish(&pacing, .unreachable(.connect), times: 10)
        finish(&pacing, .unreachable(.connect), at: 1)
        #expect(pacing.wakeTime == at(3))
        finish(&pacing, .answered, at: 3)
        #expect(pacing.giveUpCause == nil)
        #expect(pacing.concurrency >= 1)
        #expect(!pacing.hasRoom(running: 2))
        finish(&pacing, .answered, at: 3, times: 40)
        #expect(pacing.hasRoom(running: 7))
    }

    @Test func probesHostUntilPatienceEnds() {
        var pacing = HostPacing(rules)
        finish(&pacing, .unreachable(.connect), at: 1, times: 10)
        var times: [ContinuousClock.Instant?] = [pacing.wakeTime]
        for now in [2.0, 4, 8, 16, 32] {
            finish(&pacing, .unreachable(.connect), at: now)
            times.append(pacing.wakeTime)
            #expect(pacing.giveUpCause == nil)
        }
        // The last probe is at its end.
        #expect(times == [at(2), at(4), at(8), at(16), at(32), at(61)])
        finish(&pacing, .unreachable(.connect), at: 61)
        #expect(pacing.giveUpCause == .unreachable(.connect, failures: 16))
        #expect(pacing.memory(rules, at: at(62))?.failuresInARow == 16)
    }

    /// Transfers that were already running are part of the first try.
    @Test func absentHostIsGivenUpAfterThreeTries() {
        var pacing = HostPacing(rules)
        for start in (0..<6).map({ _ in pacing.started(at: at(0), rules) }) {
            pacing.finished(.absent(.connect), start: start, at: at(0), rules)
        }
        #expect(pacing.wakeTime == at(3))
        #expect(!pacing.hasRoom(running: 1))
        #expect(pacing.memory(rules, at: at(2))?.failuresInARow == 0)
        finish(&pacing, .absent(.connect), at: 3)
        #expect(pacing.giveUpCause == nil)
        #expect(pacing.wakeTime == at(9))
        finish(&pacing, .absent(.connect), at: 9)
        #expect(pacing.giveUpCause == .unreachable(.connect, failures: 8))
        #expect(pacing.memory(rules, at: at(10))?.failuresInARow == 8)
    }

    /// Probes that were answered are no tries of an absent host.
    @Test func overloadedHostThatRestartsIsNotGivenUp() {
        var pacing = HostPacing(rules)
        finish(&pacing, .overloaded(retryAfter: nil), times: 13)
        #expect(!pacing.hasRoom(running: 1))
        finish(&pacing, .absent(.connect), at: 20)
        #expect(pacing.giveUpCause == nil)
    }

    /// The server restarts in the middle of a run.
    @Test func hostThatHasRespondedIsProbedUntilPatienceEnds() {
        var pacing = HostPacing(rules)
        finish(&pacing, .answered)
        finish(&pacing, .absent(.connect), at: 1, times: 9)
        #expect(pacing.wakeTime == nil)
        finish(&pacing, .absent(.connect), at: 1)
        for now in [2.0, 4, 8, 16] { finish(&pacing, .absent(.connect), at: now) }
        #expect(pacing.giveUpCause == nil)
    }

    @Test func absentHostThatReturnsIsRequestedAgain() {
        var pacing = HostPacing(rules)
        finish(&pacing, .absent(.dns))
        finish(&pacing, .absent(.dns), at: 1)
        finish(&pacing, .answered, at: 3)
        #expect(pacing.giveUpCause == nil)
        #expect(pacing.hasRoom(running: 0))
        finish(&pacing, .absent(.dns), at: 4)
        #expect(pacing.giveUpCause == nil)
    }

    @Test func absentHostGetsThreeRequestsWithoutPatience() {
        let rules = HostPacing.PaceRules(concurrency: 8, patience: .zero)
        var pacing = HostPacing(rules)
        for number in 1...3 {
            #expect(pacing.giveUpCause == nil)
            let start = pacing.started(at: at(0), rules)
            pacing.finished(.absent(.connect), start: start, at: at(0), rules)
            #expect(pacing.giveUpCause == nil || number == 3)
        }
        #expect(pacing.giveUpCause == .unreachable(.connect, failures: 3))
    }

    @Test func untrustedHostIsGivenUpAtOnce() {
        var pacing = HostPacing(rules)
        finish(&pacing, .untrusted)
        #expect(pacing.giveUpCause == .unreachable(.tls, failures: 1))
    }

    /// One of several servers has a wrong certificate.
    @Test func untrustedServerOfAHostThatHasRespondedIsTriedAgain() {
        var pacing = HostPacing(rules)
        finish(&pacing, .answered)
        finish(&pacing, .untrusted, times: 9)
        #expect(pacing.giveUpCause == nil)
        #expect(pacing.wakeTime == nil)
    }

    @Test func patienceRestartsWithEachResponse() {
        var pacing = HostPacing(rules)
        finish(&pacing, .unreachable(.connect), times: 10)
        finish(&pacing, .answered, at: 50)
        finish(&pacing, .unreachable(.connect), at: 51, times: 10)
        finish(&pacing, .unreachable(.connect), at: 61)
        #expect(pacing.giveUpCause == nil)
        finish(&pacing, .unreachable(.connect), at: 111)
        #expect(pacing.giveUpCause != nil)
    }

    @Test func withdrawnStartDoesNotUseTheInterval() {
        let rules = HostPacing.PaceRules(concurrency: 8, interval: .seconds(5))
        var pacing = HostPacing(rules)
        let first = pacing.started(at: at(0), rules)
        pacing.withdrew(first)
        #expect(pacing.wakeTime == nil)
        _ = pacing.started(at: at(1), rules)
        let third = pacing.started(at: at(7), rules)
        pacing.withdrew(third)
        #expect(pacing.wakeTime == at(6))
    }

    @Test func transfersBeforeTheOpeningAreNoProbes() {
        var pacing = HostPacing(rules)
        let starts = (0..<18).map { _ in pacing.started(at: at(0), rules) }
        for start in starts {
            pacing.finished(.unreachable(.connect), start: start, at: at(0), rules)
        }
        #expect(pacing.giveUpCause == nil)
        #expect(pacing.wakeTime == at(1))
        // A late success of those still counts.
        pacing.finished(.answered, start: starts[0], at: at(0.5), rules)
        #expect(pacing.memory(rules, at: at(10))?.failuresInARow != 10)
    }

    @Test func zeroPatienceMeansNoProbes() {
        let rules = HostPacing.PaceRules(concurrency: 8, patience: .zero)
        var pacing = HostPacing(rules)
        for _ in 0..<10 {
            let start = pacing.started(at: at(0), rules)
            pacing.finished(.unreachable(.connect), start: start, at: at(0), rules)
        }
        #expect(pacing.giveUpCause == .unreachable(.connect, failures: 10))
    }

    @Test(arguments: [(0.0, nil), (10, 10), (300, 300)] as [(Double, Double?)])
    func hostIsRequestedAfterRetryAfter(seconds: Double, wakes: Double?) {
        var pacing = HostPacing(rules)
        finish(&pacing, .overloaded(retryAfter: .seconds(seconds)))
        #expect(pacing.giveUpCause == nil)
        if let wakes { #expect(pacing.wakeTime == at(wakes)) }
        // A later response does not shorten it.
        finish(&pacing, .overloaded(retryAfter: .seconds(1)))
        #expect(pacing.wakeTime == at(max(1, seconds)))
    }

    @Test func permanentlyOverloadedHostIsGivenUp() {
        var pacing = HostPacing(rules)
        finish(&pacing, .overloaded(retryAfter: .seconds(1)), times: 12)
        finish(&pacing, .overloaded(retryAfter: .seconds(1)), at: 59)
        #expect(pacing.giveUpCause == nil)
        finish(&pacing, .overloaded(retryAfter: .seconds(1)), at: 60)
        #expect(pacing.giveUpCause == .overloaded(answers: 14))
    }

    @Test func overloadWithoutRetryAfterOpensBreakerAfterTen() {
        var pacing = HostPacing(rules)
        finish(&pacing, .overloaded(retryAfter: nil), times: 9)
        #expect(pacing.wakeTime == nil)
        finish(&pacing, .overloaded(retryAfter: nil))
        #expect(pacing.wakeTime == at(1))
        finish(&pacing, .overloaded(retryAfter: nil), at: 1)
        #expect(pacing.wakeTime == at(3))
        finish(&pacing, .answered, at: 3)
        finish(&pacing, .overloaded(retryAfter: nil), at: 3, times: 9)
        #expect(pacing.wakeTime == at(3))
    }

    @Test func formerlyUnreachableHostIsProbedFirst() {
        let memory = HostPacing.Memory(
            concurrency: nil, failuresInARow: 13, coolingUntil: nil)
        var pacing = HostPacing(rules, remembered: memory, now: at(0))
        #expect(pacing.hasRoom(running: 0))
        #expect(!pacing.hasRoom(running: 1))
        // The earlier run was patient already.
        finish(&pacing, .unreachable(.connect))
        // Only requests of this run are counted.
        #expect(pacing.giveUpCause == .unreachable(.connect, failures: 1))
        var good = HostPacing(rules, remembered: memory, now: at(0))
        finish(&good, .answered, times: 100)
        #expect(good.isPristine(rules, at: at(100)))
    }

    @Test func intervalRestartsWithEachStart() {
        let rules = HostPacing.PaceRules(concurrency: 8, interval: .milliseconds(500))
        var pacing = HostPacing(rules)
        _ = pacing.started(at: at(1), rules)
        #expect(pacing.wakeTime == at(1.5))
        #expect(!pacing.isPristine(rules, at: at(1.4)))
        #expect(pacing.isPristine(rules, at: at(1.5)))
    }
}
