import PrefetchModel
import SeededRandom

@testable import Scheduling

/// Events in the order of their times.
final class Simulation {
    private struct Event {
        let time: Double
        let number: Int
        let action: () -> Void
    }

    /// Seconds since the start.
    private(set) var now = 0.0
    var random: SplitMix
    private var events: [Event] = []
    private var count = 0
    /// Whether time passes; if not, all events happen at its start.
    private let isClockMoving: Bool

    init(seed: UInt64, isClockMoving: Bool = true) {
        random = SplitMix(seed: seed)
        self.isClockMoving = isClockMoving
    }

    func schedule(after delay: Double, _ action: @escaping () -> Void) {
        count += 1
        let event = Event(time: now + (isClockMoving ? delay : 0), number: count, action: action)
        let place = events.lastIndex { $0.time <= event.time }.map { $0 + 1 } ?? 0
        events.insert(event, at: place)
    }

    /// Runs until nothing is left to happen, or drops the rest after `mostEvents`.
    ///
    /// - Returns: false when that takes more than the given number of events.
    func run(mostEvents: Int = 1_000_000) -> Bool {
        // Events hold the run, which holds the simulation.
        defer { events = [] }
        for _ in 0..<mostEvents {
            guard !events.isEmpty else { return true }
            let event = events.removeFirst()
            now = event.time
            event.action()
        }
        return events.isEmpty
    }

    /// A random time with this mean.
    func exponential(_ mean: Double) -> Double {
        -mean * logarithm(Double.random(in: 1e-9..<1, using: &random))
    }

    /// The natural logarithm, since nothing here imports a C library.
    private func logarithm(_ value: Double) -> Double {
        var mantissa = value.significand
        let exponent = Double(value.exponent)
        // atanh series around 1.
        mantissa = (mantissa - 1) / (mantissa + 1)
        var term = mantissa
        var sum = 0.0
        for power in stride(from: 1.0, to: 60, by: 2) {
            sum += term / power
            term *= mantissa * mantissa
        }
        return 2 * sum + exponent * 0.693_147_180_559_945_3
    }
}

/// A host that answers after some time, or refuses.
final class SimulatedHost {
    struct Answer {
        var isRefused = false
        var retryAfter: Double?
        var isUnreachable = false
        /// Seconds of service; the host serves at most ``servers`` requests at a time.
        var service: Double
        var quota: HostPacing.Quota?
    }

    let simulation: Simulation
    private let servers: Int
    /// Decides on a request, given the requests at the host, this one included, and its image.
    private let judge: (_ atOnce: Int, _ image: Int) -> Answer
    private var busy = 0
    private var queue: [() -> Void] = []
    private var atOnce = 0
    private(set) var mostAtOnce = 0

    init(
        _ simulation: Simulation, servers: Int = .max,
        _ judge: @escaping (_ atOnce: Int, _ image: Int) -> Answer
    ) {
        self.simulation = simulation
        self.servers = servers
        self.judge = judge
    }

    func request(_ image: Int, _ done: @escaping (Answer) -> Void) {
        atOnce += 1
        mostAtOnce = max(mostAtOnce, atOnce)
        let answer = judge(atOnce, image)
        let serve = { [self] in
            busy += 1
            simulation.schedule(after: answer.service) { [self] in
                busy -= 1
                atOnce -= 1
                if !queue.isEmpty { queue.removeFirst()() }
                done(answer)
            }
        }
        if busy < servers || answer.isRefused { serve() } else { queue.append(serve) }
    }
}

/// The entries of one host, requested as its ``HostPacing`` says.
final class SimulatedRun {
    private let host: SimulatedHost
    private var simulation: Simulation { host.simulation }
    let rules: HostPacing.PaceRules
    private(set) var pacing: HostPacing
    private var waiting: [Int]
    private var running = 0
    private var refusalsOfImage: [Int: Int] = [:]
    private var isWaking = false
    private(set) var answers = 0
    private(set) var refusals = 0
    private(set) var failures = 0
    /// The time of the last end, in seconds.
    private(set) var end = 0.0
    /// The limit and the running transfers at each answer.
    private(set) var limits: [Int] = []
    private(set) var mostRunning = 0
    private(set) var starts: [Double] = []
    /// Whether each response was refused, in their order.
    private(set) var isRefused: [Bool] = []

    /// Free refusals of an image, and then its retries.
    private static let mostRefusals = 7

    init(
        _ host: SimulatedHost, images: Int, _ rules: HostPacing.PaceRules,
        remembered: HostPacing.Memory? = nil
    ) {
        self.host = host
        self.rules = rules
        waiting = Array(0..<images)
        pacing =
            remembered.map { HostPacing(rules, remembered: $0, now: at(0)) } ?? HostPacing(rules)
    }

    /// Entries without an outcome.
    var left: Int { waiting.count + running }
    var refusalsPerAnswer: Double { Double(refusals) / Double(max(1, answers)) }
    /// The mean limit over the second half of the answers.
    var settledLimit: Double {
        let half = limits.suffix(limits.count / 2)
        return Double(half.reduce(0, +)) / Double(max(1, half.count))
    }
    /// The standard deviation of the limit over the second half, as a share of its mean.
    var oscillation: Double {
        let half = limits.suffix(limits.count / 2).map(Double.init)
        let mean = settledLimit
        let variance =
            half.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(max(1, half.count))
        return variance.squareRoot() / mean
    }

    var memory: HostPacing.Memory? { pacing.memory(rules, at: at(end)) }

    func start() {
        while !waiting.isEmpty, pacing.giveUpCause == nil, pacing.hasRoom(running: running) {
            if let time = pacing.wakeTime, time > at(simulation.now) {
                wake(at: time)
                return
            }
            send(waiting.removeFirst())
        }
    }

    private func wake(at time: ContinuousClock.Instant) {
        guard !isWaking else { return }
        isWaking = true
        let delay = (time - at(simulation.now)).secondsValue
        // A rounded time must not come too early again and again.
        simulation.schedule(after: max(delay, 0) + 1e-9) { [self] in
            isWaking = false
            start()
        }
    }

    private func send(_ image: Int) {
        let startedAt = simulation.now
        let start = pacing.started(at: at(startedAt), running: running, rules)
        running += 1
        mostRunning = max(mostRunning, running)
        starts.append(startedAt)
        host.request(image) { [self] answer in
            running -= 1
            end = simulation.now
            finish(image, answer, start, latency: end - startedAt)
            limits.append(pacing.concurrency)
            self.start()
        }
    }

    private func finish(
        _ image: Int, _ answer: SimulatedHost.Answer, _ start: HostPacing.NumberedStart,
        latency: Double
    ) {
        let signal: HostPacing.Signal =
            if answer.isUnreachable {
                .unreachable(.connect)
            } else if answer.isRefused {
                .overloaded(retryAfter: answer.retryAfter.map { .seconds($0) })
            } else {
                .answered
            }
        let former = refusalsOfImage[image, default: 0]
        let cause = pacing.finished(
            signal,
            HostPacing.Observation(
                latency: .seconds(latency), quota: answer.quota, isRepeated: former > 0),
            start: start, running: running, at: at(simulation.now), rules)
        isRefused.append(answer.isRefused)
        guard answer.isRefused || answer.isUnreachable else {
            answers += 1
            return
        }
        if answer.isRefused { refusals += 1 }
        refusalsOfImage[image] = former + 1
        if cause == .pace, former == 0 {
            waiting.insert(image, at: waiting.firstIndex { $0 > image } ?? waiting.endIndex)
        } else if former < SimulatedRun.mostRefusals {
            waiting.append(image)
        } else {
            failures += 1
        }
    }
}
