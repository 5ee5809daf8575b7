import PrefetchModel
import Scheduling
import Testing

@testable import EntryLifecycle

@Suite struct EntryMachineTests {
    // MARK: Tables

    /// What follows from each answer, with nothing stored and with a whole copy.
    @Test(arguments: [
        (200, true, "decode", "decode"), (200, false, "http-status", "http-status"),
        (204, false, "http-status", "http-status"), (206, false, "http-status", "http-status"),
        (301, false, "redirect", "redirect"), (302, false, "redirect", "redirect"),
        (304, false, "http-status", "write validation 0"),
        (404, false, "http-status", "http-status"), (416, false, "http-status", "http-status"),
        (500, false, "http-status", "http-status"),
    ])
    func whatFollowsFromAnAnswer(
        status: Int, hasBody: Bool, without: String, with: String
    ) {
        for (findings, expected) in [
            (Findings.nothing, without), (Findings(copy: Sample.copy()), with),
        ] {
            var machine = EntryMachine.asking(findings, plan: .refresh(resource: 7))
            let action = machine.answered(
                Sample.answer(status, hasBody ? .received(gap: 0) : .none), cost: Sample.cost,
                kept: machine.keptImages.map { _ in true }, in: Sample.context())
            #expect(action.word == expected)
        }
    }

    /// What is asked for, by what is stored.
    @Test(arguments: [
        (Findings.nothing, "ask"), (Findings(copy: Sample.copy()), "ask if changed"),
        // A 304 would be of no use.
        (Findings(copy: Sample.copy(kept: [true, false])), "ask"),
        (Findings(copy: Sample.copy(kept: [false, false])), "ask"),
        (Findings(copy: Sample.copy(kept: [false, false], original: true)), "ask if changed"),
        // Its validators are of another URL.
        (Findings(copy: Sample.copy(responseURL: "http://h/2")), "ask"),
        (Findings(part: Sample.part), "ask for the rest"),
        (
            Findings(
                part: PartialBody(
                    url: "http://h/2", count: 2 << 20, validator: .entityTag("\"e\""), total: nil)),
            "ask"
        ),
        (Findings(copy: Sample.copy(permanentTarget: "http://other/1")), "move on"),
        // In the same origin no other host has to be waited for, and its validators are of the other URL.
        (Findings(copy: Sample.copy(permanentTarget: "http://h/2")), "ask"),
        (
            Findings(copy: Sample.copy(permanentTarget: "http://h/2", responseURL: "http://h/2")),
            "ask if changed"
        ),
    ])
    func whatIsAskedFor(findings: Findings, expected: String) {
        var machine = EntryMachine(Sample.entry(.refresh(resource: 7)))
        #expect(machine.start(position: 1, at: Sample.now).word == "look up")
        #expect(machine.needsLookup)
        #expect(machine.lookedUp(findings, in: Sample.context()).word == expected)
        #expect(!machine.needsLookup)
    }

    /// What a 304 leads to, by what is still there when it comes.
    @Test(arguments: [
        ([true, true], false, "write validation 0"), ([true, true], true, "write validation 0"),
        ([true, false], true, "derive"), ([false, false], true, "derive"),
        // The file went while the origin was asked.
        ([true, false], false, "queue"),
    ])
    func aConfirmedCopy(kept: [Bool], original: Bool, expected: String) {
        var machine = EntryMachine.asking(
            Findings(copy: Sample.copy(original: original)), plan: .refresh(resource: 7))
        let action = machine.answered(
            Sample.answer(304), cost: Sample.cost, kept: kept, in: Sample.context())
        #expect(action.word == expected)
    }

    /// What the codec workers say of a body, of one that continues a part, and of a stored original.
    @Test(arguments: EntryMachineTests.results)
    func whatIsMade(
        name: String, result: ProcessingResult, body: String, continued: String,
        original: String?
    ) {
        var machine = EntryMachine.processing()
        #expect(machine.processed(result).word == body, "\(name), of a body")

        machine = .asking(Findings(part: Sample.part))
        _ = machine.answered(
            Sample.answer(206, .received(gap: 2 << 20)), cost: Sample.cost, kept: [],
            in: Sample.context())
        #expect(machine.processed(result).word == continued, "\(name), of a continued one")

        guard let original else { return }
        machine = EntryMachine(Sample.entry(.derive(resource: 7)))
        _ = machine.startDeriving(at: Sample.now)
        let copy = Sample.copy(kept: [false, false], original: true)
        #expect(
            machine.lookedUp(Findings(copy: copy), in: Sample.context()).word == "derive")
        #expect(machine.processed(result).word == original, "\(name), of an original")
    }

    private static let results:
        [(String, ProcessingResult, body: String, continued: String, original: String?)] = [
            ("made", Sample.made, "write body", "write body", "write 2"),
            (
                "half made",
                ProcessingResult.made(
                    [.made(Sample.image(3)), .failed(AttemptFailure(.internal, "no"))],
                    source: Sample.source), "write body", "write body", "write 1"
            ),
            (
                "corrupt", .failed(AttemptFailure(.corruptImage, "cut")), "corrupt-image", "queue",
                "corrupt-image"
            ),
            (
                "too large", .failed(AttemptFailure(.tooManyPixels, "big")), "too-many-pixels",
                "too-many-pixels", "too-many-pixels"
            ),
            ("part damaged", .partDamaged, "queue", "queue", nil),
            ("cancelled", .cancelled, "cancelled", "cancelled", "cancelled"),
            (
                "original damaged", .originalDamaged, "queue", "queue", "forget, queue"
            ),
            (
                "underivable", .underivable(AttemptFailure(.tooLarge, "big")), "too-large",
                "too-large", "too-large"
            ),
        ]

    /// Transfers that end without a response, and whether what came of the body is kept.
    @Test(arguments: FailureReason.allCases)
    func brokenTransfers(reason: FailureReason) {
        let isKept = [.interrupted, .timeout, .stalled, .tls].contains(reason)
        let isRetried = RetryPolicy.isRetried(reason, httpStatus: nil)
        for broken in [nil, Sample.broken] {
            var machine = EntryMachine.asking()
            let context = Sample.context(retries: 1)
            var action = machine.broke(
                Sample.brokenTransfer(reason, leaving: broken), cost: Sample.cost, in: context)
            if broken != nil, isKept {
                #expect(action.word == "keep part")
                action = machine.partSaved(Sample.part, in: context)
            }
            #expect(action.word == (isRetried ? "retry" : reason.rawValue))
        }
    }

    // MARK: Ways

    @Test func aRetryBeginsAtTheListedURLAndGoesOnFromThePart() throws {
        let context = Sample.context(retries: 1)
        var machine = EntryMachine.asking()
        let target = RequestURL(normalized: "http://other/2")
        #expect(
            machine.answered(
                Sample.answer(301, redirect: .to(target)), cost: Sample.cost, kept: [],
                in: context
            ).word == "queue")
        #expect(machine.target == target)
        #expect(machine.start(position: 9, at: Sample.now).word == "look up")
        #expect(!machine.needsLookup)
        #expect(machine.lookedUp(.nothing, in: context).word == "ask")
        let broke = machine.broke(
            Sample.brokenTransfer(leaving: Sample.broken), cost: Sample.cost, in: context)
        guard case .keepPart(let part, _) = broke else {
            Issue.record("\(broke)")
            return
        }
        #expect(part.url == target.text)
        #expect(machine.partSaved(part, in: context).word == "retry")
        #expect(machine.target == Sample.url && machine.waitsForRetry)
        _ = machine.start(position: 10, at: Sample.now)
        // The part is of the other URL.
        #expect(machine.lookedUp(.nothing, in: context).word == "ask")
        _ = machine.answered(
            Sample.answer(302, redirect: .to(target)), cost: Sample.cost, kept: [], in: context)
        _ = machine.start(position: 11, at: Sample.now)
        #expect(machine.lookedUp(.nothing, in: context).word == "ask for the rest")
        let end = machine.broke(Sample.brokenTransfer(), cost: Sample.cost, in: context)
        let result = machine.result(try #require(end.end))
        #expect(result.attempts == 2 && result.start == 1 && result.bytesReceived == 40)
        #expect(result.reason == .interrupted && result.exchange?.finalURL == target.text)
        #expect(result.exchange?.redirects == 1)
    }

    @Test func redirectsAreFollowedToTheirLimit() {
        var machine = EntryMachine(Sample.entry())
        for hop in 0...10 {
            _ = machine.start(position: 1, at: Sample.now)
            #expect(machine.lookedUp(.nothing, in: Sample.context()).word == "ask")
            let target = RequestURL(normalized: "http://h/hop\(hop)")
            let action = machine.answered(
                Sample.answer(302, redirect: .to(target)), cost: Sample.cost, kept: [],
                in: Sample.context())
            #expect(action.word == (hop < 10 ? "queue" : "redirect"))
        }
        machine = .asking()
        #expect(
            machine.answered(
                Sample.answer(302, redirect: .to(Sample.url)), cost: Sample.cost, kept: [],
                in: Sample.context()
            ).word == "redirect", "a loop")
        machine = EntryMachine(
            Sample.entry(url: RequestURL(normalized: "https://h/1")))
        _ = machine.start(position: 1, at: Sample.now)
        _ = machine.lookedUp(.nothing, in: Sample.context())
        #expect(
            machine.answered(
                Sample.answer(302, redirect: .to(Sample.url)), cost: Sample.cost, kept: [],
                in: Sample.context()
            ).word == "redirect", "a downgrade")
    }

    /// Where permanent redirects led, and what is done when that is so no more.
    @Test func aRememberedTargetIsAnOffer() throws {
        let context = Sample.context()
        var machine = EntryMachine(Sample.entry(.refresh(resource: 7)))
        _ = machine.start(position: 1, at: Sample.now)
        let copy = Sample.copy(
            permanentTarget: "http://other/1", responseURL: "http://other/1")
        #expect(machine.lookedUp(Findings(copy: copy), in: context).word == "move on")
        #expect(machine.target.text == "http://other/1")
        _ = machine.start(position: 2, at: Sample.now)
        let action = machine.lookedUp(.nothing, in: context)
        guard case .ask(let inquiry) = action else {
            Issue.record("\(action)")
            return
        }
        #expect(inquiry.isForeign && inquiry.addressRule == .redirectedFromPublic)
        #expect(!inquiry.conditions.isEmpty)
        // As part of the same attempt, and not again.
        #expect(
            machine.answered(
                Sample.answer(404), cost: Sample.cost, kept: [true, true], in: context
            )
            .word == "queue")
        #expect(machine.target == Sample.url)
        _ = machine.start(position: 3, at: Sample.now)
        #expect(machine.lookedUp(.nothing, in: context).word == "ask")
        let end = machine.answered(
            Sample.answer(404), cost: Sample.cost, kept: [true, true], in: context)
        let result = machine.result(try #require(end.end))
        #expect(result.attempts == 1 && result.start == 1)
        #expect(result.message?.hasSuffix("stays") == true && result.stored != nil)
    }

    @Test func whatIsMadeIsReportedAndWritten() throws {
        let kept = Findings(copy: Sample.copy(kept: [true, false]))
        var machine = EntryMachine.processing(kept)
        let ends: [VariantEnd] = [.kept(Sample.image(1)), .made(Sample.image(4))]
        let action = machine.processed(.made(ends, source: Sample.source))
        guard case .write(.body(let validation, let source, let changes)) = action else {
            Issue.record("\(action)")
            return
        }
        #expect(source == Sample.source && validation.location.url == Sample.url.text)
        #expect(changes.map(\.position) == [0, 1] && changes.map(\.isKept) == [true, false])
        let end = try #require(machine.committed().end)
        #expect(end.outcome == .downloaded)
        let result = machine.result(end)
        #expect(result.stored == Sample.image(1) && result.httpStatus == 200)
        #expect(result.stages.decode == .milliseconds(1) && result.stages.queue != nil)
    }

    /// The others are stored, and the entry has failed.
    @Test func aVariantThatCannotBeMadeFailsTheEntry() throws {
        var machine = EntryMachine.processing()
        let failure = AttemptFailure(.tooManyPixels, "variant web: too large")
        #expect(
            machine.processed(
                .made([.made(Sample.image(3)), .failed(failure)], source: Sample.source)
            ).word == "write body")
        let end = try #require(machine.committed().end)
        #expect(end.reason == .tooManyPixels)
        let result = machine.result(end)
        #expect(result.message == failure.message && result.stored == Sample.image(3))
    }

    @Test func theSameBytesConfirmTheCopy() throws {
        var machine = EntryMachine.processing(Findings(copy: Sample.copy()))
        #expect(machine.processed(.unchanged).word == "write validation 0")
        let result = machine.result(try #require(machine.committed().end))
        #expect(result.message == "the same bytes as before" && result.outcome == .downloaded)
    }

    @Test func attributesOfAFreshEntry() throws {
        var machine = EntryMachine(Sample.entry(.annotate(resource: 7)))
        let action = machine.annotate(
            resource: 7, images: [Sample.image(1), Sample.image(2)], expiresAt: Sample.time)
        #expect(action.word == "write 0")
        let result = machine.result(try #require(machine.committed().end))
        #expect(result.outcome == .fresh && result.start == nil && result.exchange == nil)
        #expect(result.stored == Sample.image(1) && result.expiresAt == Sample.time)
    }

    /// Of an offline run, for which a damaged original cannot be fetched.
    @Test func aDamagedOriginalOffline() {
        let context = Sample.context(isOffline: true)
        var machine = EntryMachine(Sample.entry(.derive(resource: 7)))
        _ = machine.startDeriving(at: Sample.now)
        let copy = Sample.copy(kept: [false, false], original: true)
        _ = machine.lookedUp(Findings(copy: copy), in: context)
        #expect(
            machine.processed(.originalDamaged, in: context).word == "forget, excluded")
    }

    // MARK: Hosts that are given up

    @Test func entriesOfAHostThatIsGivenUp() throws {
        let context = Sample.context(retries: 1)
        // One that was never asked for.
        var machine = EntryMachine(Sample.entry(.refresh(resource: 7)))
        #expect(machine.giveUp(.connect, "h is down", at: Sample.now).word == "look up")
        var findings = Findings(copy: Sample.copy())
        findings.isKnownTrouble = true
        var end = try #require(machine.lookedUp(findings, in: context).end)
        var result = machine.result(end)
        #expect(result.message?.hasPrefix("not requested: h is down; the copy of") == true)
        #expect(result.attempts == 0 && result.start == nil)
        #expect(machine.findings.isKnownTrouble)
        guard case .failed(let failed) = end else { return }
        #expect(failed.blame == .hostGivenUp)

        // One that waits for its retry.
        machine = .asking(.nothing, context)
        _ = machine.broke(Sample.brokenTransfer(.connect), cost: Sample.cost, in: context)
        #expect(machine.waitsForRetry)
        _ = machine.giveUp(.connect, "h is down", at: Sample.now)
        end = try #require(machine.lookedUp(.nothing, in: context).end)
        result = machine.result(end)
        #expect(result.message == "broke; not retried: h is down" && result.attempts == 1)

        // One that waits where a permanent redirect led.
        machine = EntryMachine(Sample.entry(.refresh(resource: 7)))
        _ = machine.start(position: 1, at: Sample.now)
        let copy = Sample.copy(permanentTarget: "http://other/1")
        _ = machine.lookedUp(Findings(copy: copy), in: context)
        _ = machine.giveUp(.connect, "other is down", at: Sample.now)
        #expect(machine.lookedUp(.nothing, in: context).word == "queue")
        #expect(machine.target == Sample.url)
    }
}

extension EntryMachine {
    fileprivate static func asking(
        _ findings: Findings, _ context: EntryContext
    ) -> EntryMachine {
        asking(findings, plan: .fetch, context)
    }
}
