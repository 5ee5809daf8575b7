import HTTPSemantics
import Scheduling
import Testing

@testable import EntryLifecycle
@testable import PrefetchModel

/// Further URLs of a line, digests that it gives, and directives of origins.
@Suite struct AlternativeTests {
    private static let others = EntryExtras(
        alternatives: [
            RequestURL(normalized: "http://i/2"), RequestURL(normalized: "http://j/3"),
        ])

    /// Takes the next turn and returns the requested URL.
    private func ask(_ machine: inout EntryMachine) -> String? {
        _ = machine.start(position: 2, at: Sample.now)
        guard case .ask(let request) = machine.lookedUp(.nothing, in: Sample.context()) else {
            return nil
        }
        return request.url.text
    }

    @Test func requestsEachURLOnceInItsOrder() {
        var machine = EntryMachine.asking(extras: AlternativeTests.others)
        for (host, url) in [("http://i", "http://i/2"), ("http://j", "http://j/3")] {
            let action = machine.responded(Sample.response(404))
            #expect(action.word == "retry")
            #expect(machine.target.origin == host)
            #expect(ask(&machine) == url)
        }
        #expect(machine.responded(Sample.response(410)).word == "http-status")
        #expect(machine.attempts == 3)
        // Later runs look for the first URL.
        #expect(machine.entry.listedURL == Sample.url)
    }

    private static var excluding: EntryContext { Sample.context(excluding: ["http://x/1"]) }

    /// Redirects to an excluded URL after some hops; no request is sent to it.
    @Test(arguments: [0, 1, 5], [301, 302, 303, 307, 308])
    func excludedTargetsAreNotRequested(hops: Int, status: Int) throws {
        let context = AlternativeTests.excluding
        var machine = EntryMachine.asking(.nothing, context)
        for hop in 0..<hops {
            let target = RequestURL(normalized: "http://h/hop\(hop)")
            #expect(
                machine.responded(Sample.response(status, redirect: .to(target)), in: context).word
                    == "queue")
            _ = machine.start(position: 2, at: Sample.now)
            #expect(machine.lookedUp(.nothing, in: context).word == "ask")
        }
        let last = RequestURL(normalized: "http://x/1")
        let end = try #require(
            machine.responded(Sample.response(status, redirect: .to(last)), in: context).end)
        #expect(end.outcome == .excluded && end.reason == .notSelected)
        let result = machine.result(end)
        #expect(result.message == "--exclude http://x/1: redirected to http://x/1")
        #expect(result.exchange?.redirects == hops)
    }

    /// Targets that cannot be requested, and ones that are not followed for another reason.
    @Test(arguments: ["data:image/png;base64,AAAA", "blob:x", "ftp://x/1", "http://h/1"])
    func targetsThatAreNotFollowedAreExcludedToo(target: String) {
        let redirect: Redirect =
            target.hasPrefix("http:")
            ? .to(RequestURL(normalized: target)) : .nowhere(location: target, message: "no")
        for (excluded, word) in [([], "redirect"), ([target], "not-selected")] {
            let context = Sample.context(excluding: Set(excluded))
            var machine = EntryMachine.asking(.nothing, context)
            #expect(
                machine.responded(Sample.response(302, redirect: redirect), in: context).word
                    == word)
        }
    }

    @Test func excludedTargetsLeadToTheNextURL() {
        let context = AlternativeTests.excluding
        let redirect = Sample.response(302, redirect: .to(RequestURL(normalized: "http://x/1")))
        var machine = EntryMachine.asking(extras: AlternativeTests.others, context)
        #expect(machine.responded(redirect, in: context).word == "retry")
        #expect(ask(&machine) == "http://i/2")
        // A failure that may be temporary is reported, so that the next run tries again.
        var failing = machine
        #expect(failing.responded(Sample.response(503), in: context).word == "retry")
        #expect(ask(&failing) == "http://j/3")
        #expect(failing.responded(redirect, in: context).word == "http-status")
        #expect(machine.responded(redirect, in: context).word == "retry")
        #expect(ask(&machine) == "http://j/3")
        #expect(machine.responded(redirect, in: context).word == "not-selected")
    }

    /// A remembered target, the target's own redirect, and a copy of a seed cache.
    @Test func rememberedTargetsAreExcludedToo() {
        let context = AlternativeTests.excluding
        for target in ["http://x/1", "http://h/2"] {
            let copy = Sample.copy(permanentTarget: target, responseURL: target)
            var machine = EntryMachine(Sample.entry(Sample.stale))
            _ = machine.start(position: 1, at: Sample.now)
            let action = machine.lookedUp(Findings(copy: copy), in: context)
            guard target == "http://h/2" else {
                #expect(action.word == "not-selected")
                continue
            }
            let redirect = Sample.response(
                302, redirect: .to(RequestURL(normalized: "http://x/1")))
            #expect(machine.responded(redirect, kept: [true, true], in: context).word == "queue")
            #expect(machine.target == Sample.url, "the listed URL decides")
        }
        var seeded = Sample.seeded
        seeded.validation.location.finalURL = "http://x/1"
        var machine = EntryMachine(Sample.entry(.seeded(expiresAt: Timestamp(seconds: 7))))
        _ = machine.startDeriving(at: Sample.now)
        var findings = Findings()
        findings.seeded = seeded
        #expect(machine.lookedUp(findings, in: context).word == "not-selected")
    }

    @Test func eachURLHasItsRetries() {
        let context = Sample.context(retries: 1)
        var machine = EntryMachine.asking(extras: AlternativeTests.others, context)
        #expect(machine.responded(Sample.response(500), in: context).word == "retry")
        #expect(ask(&machine) == "http://h/1")
        #expect(machine.responded(Sample.response(500), in: context).word == "retry")
        #expect(ask(&machine) == "http://i/2")
        #expect(machine.responded(Sample.response(500), in: context).word == "retry")
        #expect(ask(&machine) == "http://i/2")
    }

    /// No other URL would help, and the failure of an earlier one does not hide the cause.
    @Test(arguments: FailureReason.allCases)
    func localFailuresLeadToNoOtherURL(reason: FailureReason) {
        var machine = EntryMachine.asking(extras: AlternativeTests.others)
        #expect(machine.responded(Sample.response(500)).word == "retry")
        #expect(ask(&machine) == "http://i/2")
        let action = machine.transferFailed(
            Sample.transferFailure(reason), leaving: nil, cost: Sample.cost, in: Sample.context())
        let isLast = reason.isLocal || reason.isExclusion
        #expect((action.word == "retry") == !isLast)
        if reason.isLocal { #expect(action.end?.reason == reason) }
    }

    @Test func runsThatStopRequestNoOther() {
        var machine = EntryMachine.asking(extras: AlternativeTests.others)
        let action = machine.responded(Sample.response(404), in: Sample.context(.stopping))
        #expect(action.word == "http-status")
    }

    @Test func hostsThatAreGivenUpLeadToTheNextURL() {
        var machine = EntryMachine(Sample.entry(extras: AlternativeTests.others))
        _ = machine.giveUp(.connect, "gone", at: Sample.now)
        #expect(machine.lookedUp(.nothing, in: Sample.context()).word == "retry")
        #expect(machine.target.text == "http://i/2")
    }

    /// The stored copy has the digest of ``Sample/source``.
    @Test(arguments: [(UInt8(9), "ask if changed", "write 0"), (8, "ask", "queue")])
    func copiesOfAnotherSourceAreFetchedAgain(digest: UInt8, asked: String, derived: String) {
        let extras = EntryExtras(sourceDigest: Sample.digest(digest))
        let findings = Findings(copy: Sample.copy())
        var machine = EntryMachine(Sample.entry(Sample.stale, extras: extras))
        _ = machine.start(position: 1, at: Sample.now)
        #expect(machine.lookedUp(findings, in: Sample.context()).word == asked)
        var other = EntryMachine(
            Sample.entry(.derivable(expiresAt: Sample.time), extras: extras))
        _ = other.startDeriving(at: Sample.now)
        #expect(other.lookedUp(findings, in: Sample.context()).word == derived)
    }

    @Test(arguments: [(200, true), (304, true), (404, false)])
    func directivesExcludeImages(status: Int, isExcluded: Bool) throws {
        var rules = EntryRules()
        rules.exclusions.robots = try #require(RobotsDirectives("noai"))
        let context = EntryContext(
            rules: rules, phase: .running, variants: Sample.variants, now: Sample.time
        ) { _, _, _, _ in .final }
        var machine = EntryMachine.asking(
            Findings(copy: Sample.copy()), state: Sample.stale)
        let action = machine.responded(
            Sample.response(
                status, fields: [HeaderField(name: "X-Robots-Tag", value: "noai")]),
            gap: status == 200 ? 0 : nil, kept: [true, true], in: context)
        #expect(action.end?.reason == (isExcluded ? .robots : .httpStatus))
    }
}
