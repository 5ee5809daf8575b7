import PrefetchModel
import Scheduling
import SeededRandom
import Testing

@testable import EntryLifecycle

/// Random events: each entry ends once, by the rules of its run.
@Suite struct EntryWalkTests {
    @Test(arguments: 0..<8)
    func everyWalkEndsInOneOutcome(seed: Int) {
        var walk = Walk(seed: UInt64(seed))
        var outcomes: [Outcome: Int] = [:]
        for _ in 0..<5000 {
            let (end, steps) = walk.run()
            outcomes[end.outcome, default: 0] += 1
            #expect(steps < 400)
        }
        // The walks reach every outcome.
        for outcome in [Outcome.downloaded, .revalidated, .fresh, .derived, .failed, .cancelled] {
            #expect(outcomes[outcome, default: 0] > 10, "\(outcome): \(outcomes)")
        }
    }

    /// Every state, with every event that may follow in each phase of a run.
    @Test func everyStateEndsOnceInEveryPhase() {
        for (name, machine) in Walk.places() {
            for phase in RunPhase.allCases {
                var ended = machine
                #expect(ended.cancel().end?.outcome == .cancelled, "\(name), \(phase)")
                ended = machine
                #expect(ended.abort(Sample.failure).end?.reason == .connect, "\(name), \(phase)")
                // Any other event leads to one end, too.
                var walk = Walk(seed: 1)
                for _ in 0..<50 {
                    var going = machine
                    let action = walk.happen(to: &going, in: phase)
                    let (end, steps) = walk.follow(action, &going, in: phase)
                    #expect(steps < 400, "\(name), \(phase)")
                    // A stopping run begins no further attempt.
                    if phase.isStopping { #expect(going.attempts <= machine.attempts + 1) }
                    #expect(going.result(end).outcome == end.outcome)
                }
            }
        }
    }

    @Test func aStoppingRunSendsNoRequests() {
        for phase in RunPhase.allCases where phase.isStopping {
            for (name, machine) in Walk.places() where !machine.isWaiting {
                var walk = Walk(seed: 2)
                for _ in 0..<200 {
                    var going = machine
                    guard going.rest == nil else { continue }
                    let action = walk.happen(to: &going, in: phase)
                    switch action {
                    case .ask, .queue, .moveOn, .forget(_, then: .queue),
                        .forgetPart(then: .queue):
                        Issue.record("\(name) in \(phase): \(action.word)")
                    default: break
                    }
                }
            }
        }
    }
}

/// Answers actions with random events.
private struct Walk {
    private var random: SplitMix
    private let retries = 2

    init(seed: UInt64) {
        random = SplitMix(seed: seed)
    }

    /// Runs an entry from its list to its end.
    mutating func run() -> (EntryEnd, steps: Int) {
        let states: [EntryState] = [
            .missing, Sample.stale, .derivable(expiresAt: Timestamp(seconds: 7)),
            .seeded(expiresAt: Timestamp(seconds: 7)),
        ]
        var machine = EntryMachine(Sample.entry(pick(states)))
        // Most runs are never stopped.
        let stop = pick([Int.max, .max, .max, .max, 3, 10])
        let phase = pick(RunPhase.allCases)
        var action = turn(of: &machine)
        var steps = 0
        while true {
            steps += 1
            if case .finish(let end) = action { return (end, steps) }
            action = react(to: action, &machine, in: steps >= stop ? phase : .running)
        }
    }

    /// Continues from an action to the end.
    mutating func follow(
        _ first: EntryAction, _ machine: inout EntryMachine, in phase: RunPhase
    ) -> (EntryEnd, steps: Int) {
        var action = first
        var steps = 0
        while true {
            if case .finish(let end) = action { return (end, steps) }
            steps += 1
            action = react(to: action, &machine, in: phase)
        }
    }

    private mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int(random.next() % UInt64(elements.count))]
    }

    private mutating func context(_ phase: RunPhase) -> EntryContext {
        Sample.context(phase, retries: retries)
    }

    private mutating func turn(of machine: inout EntryMachine) -> EntryAction {
        if !machine.entry.state.asksOrigin, machine.isWaiting {
            return machine.startDeriving(at: Sample.now)
        }
        return pick([true, true, true, true, true, false])
            ? machine.start(position: 1, at: Sample.now)
            : machine.giveUp(.connect, "h is down", at: Sample.now)
    }

    private mutating func react(
        to action: EntryAction, _ machine: inout EntryMachine, in phase: RunPhase
    ) -> EntryAction {
        switch action {
        case .finish: return action
        case .forget(_, let next), .forgetPart(let next): return next
        case .queue, .moveOn:
            // A stopping run cancels waiting entries.
            return phase.isStopping ? machine.cancel() : turn(of: &machine)
        case .lookUp, .ask, .process, .keepPart, .write:
            return happen(to: &machine, in: phase)
        }
    }

    /// Applies a random event that the state allows.
    mutating func happen(to machine: inout EntryMachine, in phase: RunPhase) -> EntryAction {
        let context = context(phase)
        switch machine.state {
        case .waiting, .queued:
            return phase.isStopping ? machine.cancel() : turn(of: &machine)
        case .lookingUp:
            return machine.lookedUp(findings(), in: context)
        case .asking(let request):
            return respond(to: request, &machine, context)
        case .savingPart:
            return machine.partSaved(pick([nil, Sample.part]), in: context)
        case .processing(let processing):
            return machine.processed(
                result(of: processing, machine.journey, keeps: phase), in: context)
        case .committing:
            return pick([true, true, true, false])
                ? machine.committed() : machine.abort(Failure(.disk, "full"))
        case .ended:
            preconditionFailure("nothing happens to an entry that has ended")
        }
    }

    private mutating func findings() -> Findings {
        let copies: [StoredCopy?] = [
            nil, Sample.copy(), Sample.copy(kept: [true, false]),
            Sample.copy(kept: [false, false], original: true),
            Sample.copy(kept: [true, false], original: true),
            Sample.copy(permanentTarget: "http://other/1", responseURL: "http://other/1"),
        ]
        var findings = Findings(copy: pick(copies), part: pick([nil, nil, Sample.part]))
        findings.seeded = pick([nil, Sample.seeded, Sample.seeded])
        return findings
    }

    private mutating func respond(
        to request: EntryRequest, _ machine: inout EntryMachine, _ context: EntryContext
    ) -> EntryAction {
        let kept = machine.keptImages.map { _ in pick([true, true, true, false]) }
        func responded(_ response: Response, gap: Int? = nil) -> EntryAction {
            machine.responded(response, gap: gap, kept: kept, in: context)
        }
        switch pick(Array(0..<10)) {
        case 0, 1: return responded(Sample.response(200), gap: 0)
        case 2 where request.part != nil:
            return responded(Sample.response(206), gap: request.part?.count ?? 0)
        case 3 where !request.conditions.isEmpty:
            // The copy's tag, or another.
            let tag = pick(["\"e\"", "\"other\""])
            return responded(
                Sample.response(304, fields: [HeaderField(name: "ETag", value: tag)]))
        case 4:
            let target = RequestURL(
                normalized: "http://\(pick(["h", "other"]))/\(pick([1, 2, 3, 4, 5]))")
            return responded(Sample.response(pick([301, 302]), redirect: .to(target)))
        case 5: return responded(Sample.response(pick([206, 304, 404, 416, 429, 500])))
        case 6:
            return machine.bodyRefused(
                Sample.response(200), cost: Sample.cost, in: context)
        case 7:
            return machine.transferCancelled(
                leaving: pick([nil, Sample.interrupted]), cost: Sample.cost, in: context)
        case 8:
            let fields = [HeaderField(name: "Cache-Control", value: "no-store")]
            return responded(Sample.response(200, fields: fields), gap: 0)
        default:
            return machine.transferFailed(
                Sample.transferFailure(pick([.connect, .interrupted, .timeout, .tls, .tooLarge])),
                leaving: pick([nil, Sample.interrupted]),
                cost: pick([Sample.cost, (0, .zero, nil)]),
                in: context)
        }
    }

    private mutating func result(
        of processing: Processing, _ journey: Journey, keeps phase: RunPhase
    ) -> ProcessingResult {
        let failures: [ProcessingResult] = [
            .failed(Failure(.corruptImage, "cut")),
            .failed(Failure(.interrupted, "cut")), .cancelled,
        ]
        let halfMade = ProcessingResult.made(
            [.made(Sample.image(3)), .failed(Failure(.internal, "no"))],
            source: Sample.source)
        switch processing.source {
        case .refusal:
            return .failed(Failure(.notAnImage, "text"))
        case .original:
            return pick(
                failures + [
                    Sample.made, halfMade, .originalDamaged,
                    .underivable(Failure(.tooLarge, "big")),
                ])
        case .seed: return pick(failures + [Sample.made, Sample.made, .originalDamaged])
        case .body:
            let isComplete = journey.findings.copy?.isComplete == true
            return pick(
                failures + [Sample.made, Sample.made, halfMade, .partDamaged]
                    + (isComplete ? [.unchanged] : []))
        }
    }

    /// A machine in each of its states.
    static func places() -> [(String, EntryMachine)] {
        let context = Sample.context(retries: 1)
        let whole = Findings(copy: Sample.copy(kept: [false, false], original: true))
        var places: [(String, EntryMachine)] = [("waiting", EntryMachine(Sample.entry()))]
        var machine = EntryMachine(Sample.entry(Sample.stale))
        _ = machine.start(position: 1, at: Sample.now)
        places.append(("looking up", machine))
        machine = EntryMachine(Sample.entry())
        _ = machine.giveUp(.connect, "h is down", at: Sample.now)
        places.append(("giving up", machine))
        places.append(("asking", .asking()))
        machine = .asking()
        _ = machine.transferFailed(
            Sample.transferFailure(.connect), leaving: nil, cost: Sample.cost, in: context)
        places.append(("waiting for a retry", machine))
        machine = .asking()
        _ = machine.transferFailed(
            Sample.transferFailure(), leaving: Sample.interrupted, cost: Sample.cost, in: context)
        places.append(("saving a part", machine))
        machine = .asking()
        _ = machine.transferCancelled(
            leaving: Sample.interrupted, cost: Sample.cost, in: context)
        places.append(("saving a part of a cancelled transfer", machine))
        places.append(("decoding", .processing(Findings(copy: Sample.copy()))))
        machine = EntryMachine(Sample.entry(.derivable(expiresAt: Timestamp(seconds: 7))))
        _ = machine.startDeriving(at: Sample.now)
        places.append(("looking up an original", machine))
        _ = machine.lookedUp(whole, in: context)
        places.append(("deriving", machine))
        machine = .asking()
        _ = machine.bodyRefused(Sample.response(200), cost: Sample.cost, in: context)
        places.append(("dropping", machine))
        machine = .processing()
        _ = machine.processed(Sample.made)
        places.append(("committing", machine))
        return places
    }
}
