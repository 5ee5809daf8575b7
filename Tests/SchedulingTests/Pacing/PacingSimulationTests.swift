import PrefetchModel
import Testing

@testable import Scheduling

/// The pace of hosts against simulated ones.
@Suite(.timeLimit(.minutes(15)))
struct PacingSimulationTests {
    private typealias Answer = SimulatedHost.Answer

    private static let rules = HostPacing.PaceRules(
        concurrency: 64, firstConcurrency: 6, isAdaptive: true)

    /// Runs `images` against a host, which `make` sets up.
    private func run(
        _ images: Int, seed: UInt64 = 1, rules: HostPacing.PaceRules = Self.rules,
        remembered: HostPacing.Memory? = nil,
        _ make: (Simulation) -> SimulatedHost
    ) -> SimulatedRun {
        let simulation = Simulation(seed: seed)
        let run = SimulatedRun(make(simulation), images: images, rules, remembered: remembered)
        run.start()
        #expect(simulation.run())
        return run
    }

    /// The shortest time with a fixed number of transfers, from 1 to 64.
    private func bestFixedTime(
        _ images: Int, seed: UInt64, _ make: (Simulation) -> SimulatedHost
    ) -> Double {
        [1, 2, 4, 6, 8, 10, 12, 16, 24, 32, 48, 64].map { concurrency in
            run(images, seed: seed, rules: HostPacing.PaceRules(concurrency: concurrency), make).end
        }.min() ?? 0
    }

    // MARK: Latency

    @Test func fixedLatencyReachesTheLimit() {
        let run = run(1500) { SimulatedHost($0) { _, _ in Answer(service: 0.08) } }
        #expect(run.answers == 1500)
        #expect(run.pacing.concurrency == 64)
        // 1,500 ÷ 32 × 80 ms would be 3.75 s.
        #expect(run.end < 2.5)
        #expect(run.pacing.limit(run.rules) == .settings)
    }

    @Test func settlesWhereLatencyBeginsToGrow() {
        let host = { (simulation: Simulation) in
            SimulatedHost(simulation, servers: 8) { _, _ in Answer(service: 0.05) }
        }
        let run = run(1600, host)
        #expect((6...10).contains(run.settledLimit), "\(run.settledLimit)")
        #expect(run.oscillation <= 0.2)
        #expect(run.end <= 1.1 * bestFixedTime(1600, seed: 1, host))
        #expect(run.pacing.limit(run.rules) == .latency)
    }

    /// Service times vary as much as they can: the mean of eight says little.
    @Test(arguments: [4, 8, 20], [UInt64](1...4))
    func findsThePaceOfRandomServiceTimes(servers: Int, seed: UInt64) {
        let host = { (simulation: Simulation) in
            SimulatedHost(simulation, servers: servers) { _, _ in
                Answer(service: simulation.exponential(0.05))
            }
        }
        let run = run(4000, seed: seed, host)
        #expect(run.answers == 4000)
        #expect(
            run.end <= 1.4 * bestFixedTime(4000, seed: seed, host),
            "\(run.end) and \(run.settledLimit) at once")
        #expect(run.settledLimit <= Double(2 * servers + 4), "\(run.settledLimit)")
        // One transfer more or less is a fifth of five.
        #expect(
            run.oscillation <= max(0.2, 1.5 / run.settledLimit), "\(run.oscillation)")
    }

    @Test func returnsAfterAStepOfLatencyThatIsNotDueToIt() {
        let run = run(3000) { simulation in
            var count = 0
            return SimulatedHost(simulation) { _, _ in
                count += 1
                return Answer(service: count < 700 ? 0.08 : 0.16)
            }
        }
        #expect(run.settledLimit > 58, "\(run.settledLimit)")
    }

    @Test func neverExceedsTheUsersLimits() {
        let rules = HostPacing.PaceRules(
            concurrency: 10, firstConcurrency: 6, isAdaptive: true, interval: .milliseconds(5))
        let run = run(500, rules: rules) { SimulatedHost($0) { _, _ in Answer(service: 0.3) } }
        #expect(run.mostRunning == 10)
        let gaps = zip(run.starts, run.starts.dropFirst()).map { $1 - $0 }
        #expect(gaps.allSatisfy { $0 > 0.005 - 1e-6 })
    }

    @Test(arguments: [UInt64](1...4))
    func sharesABottleneckFairly(seed: UInt64) {
        let simulation = Simulation(seed: seed)
        let host = SimulatedHost(simulation, servers: 16) { _, _ in
            Answer(service: simulation.exponential(0.05))
        }
        let runs = [0, 1].map { _ in SimulatedRun(host, images: 3000, Self.rules) }
        runs[0].start()
        // The second one begins when the first has settled.
        simulation.schedule(after: 3) { runs[1].start() }
        #expect(simulation.run())
        #expect(runs.map(\.answers) == [3000, 3000])
        let rates = [3000 / runs[0].end, 3000 / (runs[1].end - 3)]
        #expect(rates[0] < 2.5 * rates[1] && rates[1] < 2.5 * rates[0], "\(rates)")
    }

    // MARK: Refusals

    /// Refuses more than `count` requests in any `seconds`.
    private func slidingWindow(
        _ count: Int, in seconds: Double, latency: Double = 0.001, retryAfter: Double? = nil
    ) -> (Simulation) -> SimulatedHost {
        { simulation in
            var times: [Double] = []
            return SimulatedHost(simulation) { _, _ in
                times.removeAll { $0 <= simulation.now - seconds }
                guard times.count < count else {
                    return Answer(isRefused: true, retryAfter: retryAfter, service: latency)
                }
                times.append(simulation.now)
                return Answer(service: latency)
            }
        }
    }

    /// Refuses requests without a token, and `rate` tokens arrive a second, up to `burst`.
    private func tokenBucket(
        burst: Double, rate: @escaping (Double) -> Double
    ) -> (Simulation) -> SimulatedHost {
        { simulation in
            var (tokens, time) = (burst, 0.0)
            return SimulatedHost(simulation) { _, _ in
                tokens = min(burst, tokens + (simulation.now - time) * rate(simulation.now))
                time = simulation.now
                guard tokens >= 1 else { return Answer(isRefused: true, service: 0.005) }
                tokens -= 1
                return Answer(service: 0.02)
            }
        }
    }

    @Test(arguments: [0.001, 0.08, 0.5])
    func findsAndRemembersASlidingWindow(latency: Double) {
        let host = slidingWindow(5, in: 1, latency: latency)
        let first = run(100, host)
        #expect(first.answers == 100)
        #expect(first.end <= 24 + 2 * latency, "\(first.end)")
        #expect(first.refusalsPerAnswer <= 0.2, "\(first.refusals)")
        #expect(first.pacing.limit(first.rules) == .refusals)
        let second = run(100, remembered: first.memory, host)
        #expect(second.answers == 100)
        #expect(second.end <= 25, "\(second.end)")
        #expect(second.refusalsPerAnswer <= 0.05 + latency / 20, "\(second.refusals)")
    }

    @Test func findsTheRateOfATokenBucket() {
        let host = tokenBucket(burst: 10) { _ in 20 }
        let first = run(2000, host)
        #expect(first.answers == 2000)
        #expect(first.end <= 1.2 * 100)
        #expect(first.refusalsPerAnswer <= 0.05)
        let second = run(2000, remembered: first.memory, host)
        #expect(second.end <= 1.2 * 100)
        #expect(second.refusalsPerAnswer <= 0.05)
    }

    @Test(arguments: [(20.0, 8.0), (8.0, 20.0)])
    func followsAChangeOfTheRate(rates: (before: Double, after: Double)) {
        let run = run(600, tokenBucket(burst: 10) { $0 < 15 ? rates.before : rates.after })
        #expect(run.answers == 600)
        #expect(run.refusalsPerAnswer <= 0.1)
        #expect(run.end <= 1.4 * (15 + (600 - 15 * rates.before) / rates.after))
    }

    /// The remembered rate is four times too high: no more than ten answers later it is close.
    @Test func correctsARememberedRateWithinTenAnswers() {
        let memory = HostPacing.Memory(
            concurrency: 6, interval: .milliseconds(50), failuresInARow: 0, coolingUntil: nil)
        let run = run(100, remembered: memory, slidingWindow(5, in: 1))
        #expect(run.answers == 100)
        #expect(run.end <= 28)
        var answers = 0
        let rest = run.isRefused.drop { isRefused in
            answers += isRefused ? 0 : 1
            return answers <= 10
        }
        #expect(rest.count { $0 } <= 12, "\(run.isRefused)")
    }

    @Test(arguments: [1, 4, 20])
    func findsALimitOfConnections(most: Int) {
        let run = run(600) {
            SimulatedHost($0) { atOnce, _ in
                Answer(isRefused: atOnce > most, service: atOnce > most ? 0.001 : 0.05)
            }
        }
        #expect(run.answers == 600)
        #expect(run.refusalsPerAnswer <= 0.1)
        #expect(run.end <= 3 * 600 * 0.05 / Double(most))
    }

    /// Refusals at random are not due to the pace, and a slower one does not help.
    @Test(arguments: [0.05, 0.3], [UInt64](1...4))
    func doesNotSlowDownForRefusalsAtRandom(share: Double, seed: UInt64) {
        let run = run(2000, seed: seed) { simulation in
            SimulatedHost(simulation) { _, _ in
                Answer(
                    isRefused: Double.random(in: 0..<1, using: &simulation.random) < share,
                    service: 0.05)
            }
        }
        #expect(run.answers + run.failures == 2000)
        // With many refusals, some seeds take minutes to tell that they are not due to the pace.
        #expect(run.end <= (share < 0.1 ? 45 : 400), "\(run.end)")
    }

    /// A host that refused its first requests is not slow for the rest of the run, nor in the next.
    @Test func forgetsAGuessedRate() {
        let host = { (simulation: Simulation) in
            var count = 0
            return SimulatedHost(simulation) { _, _ in
                count += 1
                return Answer(isRefused: count <= 6, service: 0.02)
            }
        }
        let first = run(400, host)
        #expect(first.answers == 400)
        #expect(first.end <= 20, "\(first.end)")
        let second = run(400, remembered: first.memory) {
            SimulatedHost($0) { _, _ in Answer(service: 0.02) }
        }
        #expect(second.end <= first.end, "\(second.end)")
    }

    /// A limit that no longer exists is left behind within some runs.
    @Test func rememberedRateGrowsWithoutRefusals() {
        var memory: HostPacing.Memory? = HostPacing.Memory(
            concurrency: 6, interval: .milliseconds(200), failuresInARow: 0, coolingUntil: nil)
        var times: [Double] = []
        for _ in 0..<5 {
            let run = run(60, remembered: memory) {
                SimulatedHost($0) { _, _ in Answer(service: 0.02) }
            }
            times.append(run.end)
            memory = run.memory
        }
        #expect(times[4] < times[0] / 2, "\(times)")
    }

    /// Every second image is always refused.
    @Test func refusesToCrawlForAHalfClosedHost() {
        let run = run(100) {
            SimulatedHost($0) { _, image in
                Answer(isRefused: image.isMultiple(of: 2), service: 0.02)
            }
        }
        #expect(run.answers == 50)
        #expect(run.end <= 90, "\(run.end)")
    }

    @Test func survivesTheLargestLimit() {
        let rules = HostPacing.PaceRules(concurrency: .max, isAdaptive: true)
        let run = run(100, rules: rules) { simulation in
            var count = 0
            return SimulatedHost(simulation) { _, _ in
                count += 1
                return Answer(isRefused: count <= 6, service: 0.02)
            }
        }
        #expect(run.answers == 100)
        #expect(run.end <= 20, "\(run.end)")
    }

    /// Every fifth image is always refused.
    @Test func doesNotSlowDownForRefusedImages() {
        let run = run(1000) {
            SimulatedHost($0) { _, image in
                Answer(isRefused: image.isMultiple(of: 5), service: 0.05)
            }
        }
        #expect(run.answers == 800)
        #expect(run.isRefused.prefix(1000).count { !$0 } >= 600)
    }

    @Test func givesAClosedHostUpWhenThePatienceEnds() {
        let run = run(100) {
            SimulatedHost($0) { _, _ in Answer(isRefused: true, service: 0.05) }
        }
        #expect(run.answers == 0)
        #expect(run.pacing.giveUpCause != nil)
        #expect(run.refusals <= 17)
        #expect((59...62).contains(run.end))
    }

    @Test func obeysRetryAfter() {
        let run = run(60, slidingWindow(10, in: 10, retryAfter: 5))
        #expect(run.answers == 60)
        #expect(run.refusalsPerAnswer <= 0.4)
    }

    @Test func stopsBeforeTheQuotaRunsOut() {
        let run = run(100) { simulation in
            var (used, window) = (0, 0.0)
            return SimulatedHost(simulation) { _, _ in
                if simulation.now >= window + 10 {
                    window = simulation.now
                    used = 0
                }
                used += 1
                return Answer(
                    isRefused: used > 30, service: 0.05,
                    quota: (
                        remaining: max(0, 30 - used),
                        reset: .seconds(window + 10 - simulation.now)
                    ))
            }
        }
        #expect(run.answers == 100)
        #expect(run.refusals == 0)
        #expect(run.end <= 45)
    }

    // MARK: Robustness

    /// All answers arrive at one instant.
    @Test(arguments: [0.0, 0.2, 1.0])
    func survivesAClockThatStandsStill(share: Double) {
        let simulation = Simulation(seed: 1, isClockMoving: false)
        let host = SimulatedHost(simulation) { _, _ in
            Answer(
                isRefused: Double.random(in: 0..<1, using: &simulation.random) < share,
                service: 0.05)
        }
        let run = SimulatedRun(host, images: 200, Self.rules)
        run.start()
        // A pause never ends then.
        _ = simulation.run(mostEvents: 10_000)
        #expect((1...64).contains(run.pacing.concurrency))
        if let rate = run.pacing.requestsPerSecond { #expect(rate.isFinite && rate > 0) }
        if share == 0 { #expect(run.answers == 200) }
    }

    /// Random hosts: each run ends, and each entry has been answered, has failed, or its host is
    /// given up.
    @Test(arguments: [UInt64](1...150))
    func alwaysEnds(seed: UInt64) {
        let run = run(300, seed: seed) { simulation in
            func chance() -> Double { Double.random(in: 0..<1, using: &simulation.random) }
            func choice<Value>(_ values: Value...) -> Value {
                values[Int(chance() * 0.999 * Double(values.count))]
            }
            let refused = choice(0, 0.02, 0.3, 0.9)
            let unreachable = choice(0, 0, 0.05, 0.5)
            let servers = choice(1, 4, 50)
            let mean = choice(0.0005, 0.05, 2)
            return SimulatedHost(simulation, servers: servers) { _, _ in
                let isRefused = chance() < refused
                return Answer(
                    isRefused: isRefused,
                    retryAfter: isRefused ? choice(nil, nil, 0.5, 30) : nil,
                    isUnreachable: !isRefused && chance() < unreachable,
                    service: simulation.exponential(mean),
                    quota: chance() < 0.9
                        ? nil
                        : (
                            remaining: Int.random(in: 0...9, using: &simulation.random),
                            reset: .seconds(3)
                        ))
            }
        }
        let isGivenUp = run.pacing.giveUpCause != nil
        #expect(run.answers + run.failures == 300 || isGivenUp, "\(run.left) are left")
        #expect(run.mostRunning <= 64)
    }
}
