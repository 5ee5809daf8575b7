import PrefetchModel
import Scheduling
import Testing

@testable import EntryLifecycle

@Suite struct EntryMachineTests {
    // MARK: Tables

    /// Every status, with nothing stored and with a complete copy.
    @Test(arguments: [
        (200, true, "decode", "decode"), (200, false, "http-status", "http-status"),
        (204, false, "http-status", "http-status"), (206, false, "http-status", "http-status"),
        (301, false, "redirect", "redirect"), (302, false, "redirect", "redirect"),
        (304, false, "http-status", "write validation 0"),
        (404, false, "http-status", "http-status"), (416, false, "http-status", "http-status"),
        (500, false, "http-status", "http-status"),
    ])
    func handlesEveryStatus(
        status: Int, hasBody: Bool, without: String, with: String
    ) {
        for (findings, expected) in [
            (Findings.nothing, without), (Findings(copy: Sample.copy()), with),
        ] {
            var machine = EntryMachine.asking(findings, state: Sample.stale)
            let action = machine.responded(
                Sample.response(status), gap: hasBody ? 0 : nil,
                kept: machine.keptImages.map { _ in true }, in: Sample.context())
            #expect(action.word == expected)
        }
    }

    /// The answers to a request for the rest of a body.
    @Test(arguments: [
        (206, "forget the part, queue"), (416, "forget the part, queue"),
        (404, "forget the part, queue"), (403, "forget the part, queue"),
        (500, "forget the part, queue"), (204, "forget the part, queue"),
        (301, "forget the part, queue"), (429, "http-status"), (503, "http-status"),
    ])
    func handlesEveryAnswerToARange(status: Int, expected: String) {
        var machine = EntryMachine.asking(Findings(part: Sample.part))
        let action = machine.responded(Sample.response(status), gap: nil, in: Sample.context())
        #expect(action.word == expected)
    }

    /// The request, by the stored copy.
    @Test(arguments: [
        (Findings.nothing, "ask"), (Findings(copy: Sample.copy()), "ask if changed"),
        // A 304 would be useless.
        (Findings(copy: Sample.copy(kept: [true, false])), "ask"),
        (Findings(copy: Sample.copy(kept: [false, false])), "ask"),
        (Findings(copy: Sample.copy(kept: [false, false], original: true)), "ask if changed"),
        // The validators belong to another URL.
        (Findings(copy: Sample.copy(responseURL: "http://h/2")), "ask"),
        (Findings(part: Sample.part), "ask for the rest"),
        (
            Findings(
                part: PartialBody(
                    url: "http://h/2", count: 2 << 20, validator: .entityTag("\"e\""), total: nil)),
            "ask"
        ),
        (Findings(copy: Sample.copy(permanentTarget: "http://other/1")), "move on"),
        // The same origin needs no other host's turn; the validators belong to the other URL.
        (Findings(copy: Sample.copy(permanentTarget: "http://h/2")), "ask"),
        (
            Findings(copy: Sample.copy(permanentTarget: "http://h/2", responseURL: "http://h/2")),
            "ask if changed"
        ),
    ])
    func choosesTheRequestByTheStoredCopy(findings: Findings, expected: String) {
        var machine = EntryMachine(Sample.entry(Sample.stale))
        #expect(machine.start(position: 1, at: Sample.now).word == "look up")
        #expect(machine.needsLookup)
        #expect(machine.lookedUp(findings, in: Sample.context()).word == expected)
        #expect(!machine.needsLookup)
    }

    /// The step after a 304, by the files that still exist.
    @Test(arguments: [
        ([true, true], false, "write validation 0"), ([true, true], true, "write validation 0"),
        ([true, false], true, "derive"), ([false, false], true, "derive"),
        // The file disappeared during the request.
        ([true, false], false, "queue"),
    ])
    func usesAConfirmedCopy(kept: [Bool], original: Bool, expected: String) {
        var machine = EntryMachine.asking(
            Findings(copy: Sample.copy(original: original)), state: Sample.stale)
        let action = machine.responded(
            Sample.response(304), kept: kept, in: Sample.context())
        #expect(action.word == expected)
    }

    /// Each result for a body, for a resumed body, and for a stored original.
    @Test(arguments: EntryMachineTests.results)
    func handlesResultsOfTheWorkers(
        name: String, result: ProcessingResult, body: String, continued: String,
        original: String?
    ) {
        var machine = EntryMachine.processing()
        #expect(machine.processed(result).word == body, "\(name), of a body")

        machine = .asking(Findings(part: Sample.part))
        _ = machine.responded(
            Sample.response(206), gap: 2 << 20,
            in: Sample.context())
        #expect(machine.processed(result).word == continued, "\(name), of a continued one")

        guard let original else { return }
        machine = EntryMachine(Sample.entry(.derivable(expiresAt: Timestamp(seconds: 7))))
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
                    [.made(Sample.image(3)), .failed(Failure(.internal, "no"))],
                    source: Sample.source), "write body", "write body", "write 1"
            ),
            (
                "corrupt", .failed(Failure(.corruptImage, "cut")), "corrupt-image",
                "forget the part, queue", "corrupt-image"
            ),
            (
                "too large", .failed(Failure(.tooManyPixels, "big")), "too-many-pixels",
                "too-many-pixels", "too-many-pixels"
            ),
            (
                "part damaged", .partDamaged, "forget the part, queue", "forget the part, queue",
                nil
            ),
            ("cancelled", .cancelled, "cancelled", "cancelled", "cancelled"),
            (
                "original damaged", .originalDamaged, "queue", "queue", "forget, queue"
            ),
            (
                "underivable", .underivable(Failure(.tooLarge, "big")), "too-large",
                "too-large", "too-large"
            ),
        ]

    /// Transfers without a whole response, with and without a part to store.
    @Test(arguments: FailureReason.allCases)
    func handlesTransfersWithoutAResponse(reason: FailureReason) {
        let isKept = [.interrupted, .timeout, .stalled, .tls].contains(reason)
        let isRetried = RetryPolicy.isRetried(reason, httpStatus: nil)
        for interrupted in [nil, Sample.interrupted] {
            var machine = EntryMachine.asking()
            let context = Sample.context(retries: 1)
            var action = machine.transferFailed(
                Sample.transferFailure(reason), leaving: interrupted, cost: Sample.cost, in: context
            )
            if interrupted != nil, isKept {
                #expect(action.word == "keep part")
                action = machine.partSaved(Sample.part, in: context)
            }
            #expect(action.word == (isRetried ? "retry" : reason.rawValue))
        }
    }

    /// Some origins break the connection at each range: the part is forgotten after two failures
    /// without an answer, or the last one.
    @Test(arguments: FailureReason.allCases, [nil, 206])
    func forgetsAPartWhoseRestGetsNoAnswerTwice(reason: FailureReason, status: Int?) {
        let isRetried = RetryPolicy.isRetried(reason, httpStatus: status)
        let context = Sample.context(retries: 2)
        for bytes in [0, 1] {
            let mayBeForgotten =
                [.interrupted, .timeout, .stalled].contains(reason) && bytes == 0 && status == nil
            var machine = EntryMachine.asking(Findings(part: Sample.part), context)
            for attempt in 1...(isRetried ? 2 : 1) {
                let action = machine.transferFailed(
                    TransferFailure(
                        Failure(reason, "broke"), httpStatus: status, curlCode: 56),
                    leaving: nil, cost: (bytes, .zero, nil),
                    in: context)
                let isForgotten = mayBeForgotten && (attempt == 2 || !isRetried)
                let next = isRetried ? "retry" : reason.rawValue
                #expect(action.word == (isForgotten ? "forget the part, \(next)" : next))
                guard isRetried else { continue }
                _ = machine.start(position: 2, at: Sample.now)
                let request = machine.lookedUp(.nothing, in: context)
                #expect(request.word == (isForgotten ? "ask" : "ask for the rest"))
            }
        }
    }

    /// Other failures do not count.
    @Test func keepsAPartWhoseRestGetsNoAnswerOnce() {
        let context = Sample.context(retries: 3)
        var machine = EntryMachine.asking(.nothing, context)
        for attempt in 1...3 {
            let isFirst = attempt == 1
            var action = machine.transferFailed(
                Sample.transferFailure(), leaving: isFirst ? Sample.interrupted : nil,
                cost: (isFirst ? 2 << 20 : 0, .zero, nil),
                in: context)
            if isFirst { action = machine.partSaved(Sample.part, in: context) }
            #expect(action.word == (attempt < 3 ? "retry" : "forget the part, retry"))
            _ = machine.start(position: 2, at: Sample.now)
            let request = machine.lookedUp(.nothing, in: context)
            #expect(request.word == (attempt < 3 ? "ask for the rest" : "ask"))
        }
    }

    /// Without retries the next run could not get the image either.
    @Test func forgetsAPartWhoseRestGetsNoAnswerAtLast() {
        var machine = EntryMachine.asking(Findings(part: Sample.part))
        let action = machine.transferFailed(
            Sample.transferFailure(), leaving: nil,
            cost: (0, .zero, nil), in: Sample.context())
        #expect(action.word == "forget the part, interrupted")
    }

    // MARK: Sequences

    @Test func aRetryStartsAtTheListedURLAndResumesThePart() throws {
        let context = Sample.context(retries: 1)
        var machine = EntryMachine.asking()
        let target = RequestURL(normalized: "http://other/2")
        #expect(
            machine.responded(
                Sample.response(301, redirect: .to(target)),
                in: context
            ).word == "queue")
        #expect(machine.target == target)
        #expect(machine.start(position: 9, at: Sample.now).word == "look up")
        #expect(!machine.needsLookup)
        #expect(machine.lookedUp(.nothing, in: context).word == "ask")
        let action = machine.transferFailed(
            Sample.transferFailure(), leaving: Sample.interrupted, cost: Sample.cost, in: context)
        guard case .keepPart(let part, _) = action else {
            Issue.record("\(action)")
            return
        }
        #expect(part.url == target.text)
        #expect(machine.partSaved(part, in: context).word == "retry")
        #expect(machine.target == Sample.url && machine.waitsForRetry)
        _ = machine.start(position: 10, at: Sample.now)
        // The part belongs to the other URL.
        #expect(machine.lookedUp(.nothing, in: context).word == "ask")
        _ = machine.responded(
            Sample.response(302, redirect: .to(target)), in: context)
        _ = machine.start(position: 11, at: Sample.now)
        #expect(machine.lookedUp(.nothing, in: context).word == "ask for the rest")
        let end = machine.transferFailed(
            Sample.transferFailure(), leaving: nil, cost: Sample.cost, in: context)
        let result = machine.result(try #require(end.end))
        #expect(result.attempts == 2 && result.start == 1 && result.bytesReceived == 40)
        #expect(result.reason == .interrupted && result.exchange?.finalURL == target.text)
        #expect(result.exchange?.redirects == 1)
    }

    @Test func followsRedirectsUpToTheLimit() {
        var machine = EntryMachine(Sample.entry())
        for hop in 0...10 {
            _ = machine.start(position: 1, at: Sample.now)
            #expect(machine.lookedUp(.nothing, in: Sample.context()).word == "ask")
            let target = RequestURL(normalized: "http://h/hop\(hop)")
            let action = machine.responded(
                Sample.response(302, redirect: .to(target)),
                in: Sample.context())
            #expect(action.word == (hop < 10 ? "queue" : "redirect"))
        }
        machine = .asking()
        #expect(
            machine.responded(
                Sample.response(302, redirect: .to(Sample.url)),
                in: Sample.context()
            ).word == "redirect", "a loop")
        machine = EntryMachine(
            Sample.entry(url: RequestURL(normalized: "https://h/1")))
        _ = machine.start(position: 1, at: Sample.now)
        _ = machine.lookedUp(.nothing, in: Sample.context())
        #expect(
            machine.responded(
                Sample.response(302, redirect: .to(Sample.url)),
                in: Sample.context()
            ).word == "redirect", "a downgrade")
    }

    /// The hops of a chain, each with the cookies that it sets; the last one ends it.
    @Test(
        arguments: [
            // The second request of each URL sends another combination.
            (["a=1", "b=1", "a=1", "b=1"], 4), (["a=1", "", "a=1", ""], 3),
            (["a=1", "b=1", "a=2", "b=2", "a=1", "b=1"], 6), (["a=1;b=1", "", "b=1;a=1", ""], 3),
            (["", ""], 2),
        ] as [([String], Int)])
    func aLoopIsTheSameURLWithTheSameCookies(hops: [String], last: Int) throws {
        let context = Sample.context(keepsCookies: true)
        let kept = hopsUntilTheEnd(hops, in: context)
        #expect(kept.hops == last)
        #expect(kept.message?.hasPrefix("a redirect loop, back to ") == true)
        #expect(kept.message?.contains("--cookie-jar") == false)
        let without = hopsUntilTheEnd(hops, in: Sample.context())
        #expect(without.hops == 2)
        let isRemedy = without.message?.contains("--cookie-jar") == true
        #expect(isRemedy == hops.prefix(2).contains { !$0.isEmpty })
    }

    /// Cookies that change with each hop are no loop.
    @Test func changingCookiesEndAtTheLimit() {
        let context = Sample.context(keepsCookies: true)
        let most = context.rules.redirects.maximum
        let end = hopsUntilTheEnd((0...most + 1).map { "a=\($0)" }, in: context)
        #expect(end.hops == most + 1)
        #expect(end.message == "more redirects than --max-redirects (\(most))")
    }

    /// Sends redirects between two URLs.
    private func hopsUntilTheEnd(
        _ cookies: [String], in context: EntryContext
    ) -> (hops: Int?, message: String?) {
        var machine = EntryMachine(Sample.entry())
        for (hop, cookies) in cookies.enumerated() {
            _ = machine.start(position: 1, at: Sample.now)
            _ = machine.lookedUp(.nothing, in: context)
            let target = hop.isMultiple(of: 2) ? RequestURL(normalized: "http://h/2") : Sample.url
            let fields = cookies.split(separator: ";").map {
                HeaderField(name: "Set-Cookie", value: "\($0); Path=/")
            }
            let action = machine.responded(
                Sample.response(302, redirect: .to(target), fields: fields), in: context)
            if case .failed(let failed)? = action.end { return (hop + 1, failed.failure.message) }
        }
        return (nil, nil)
    }

    @Test func tooManyRedirectsNameTheJar() {
        var machine = EntryMachine(Sample.entry())
        let context = Sample.context()
        var message: String?
        for hop in 0...context.rules.redirects.maximum {
            _ = machine.start(position: 1, at: Sample.now)
            _ = machine.lookedUp(.nothing, in: context)
            let fields = hop == 0 ? [HeaderField(name: "Set-Cookie", value: "a=1")] : []
            let target = RequestURL(normalized: "http://h/hop\(hop)")
            let action = machine.responded(
                Sample.response(302, redirect: .to(target), fields: fields), in: context)
            if case .failed(let failed)? = action.end { message = failed.failure.message }
        }
        #expect(message?.hasPrefix("more redirects than") == true)
        #expect(message?.contains("--cookie-jar") == true)
    }

    /// The freshness of a redirect, in seconds; 0 if it is not remembered.
    static let redirectFields: [(fields: [String: String], seconds: Int64)] = [
        ([:], 86400), (["Cache-Control": "no-store"], 0), (["Cache-Control": "no-cache"], 0),
        (["Cache-Control": "max-age=0"], 0), (["Cache-Control": "max-age=30"], 30),
        (["Cache-Control": "max-age=30", "Age": "30"], 0), (["Cache-Control": "private"], 86400),
        (["Cache-Control": "max-age=604800"], 604_800), (["Expires": "0"], 0),
        (["Vary": "Accept-Encoding"], 86400), (["Vary": "Accept"], 0), (["Vary": "*"], 0),
        (["Last-Modified": "Thu, 01 Jan 1970 00:00:00 GMT"], 100),
    ]

    private func hop(
        to url: String, _ status: Int, _ fields: [String: String], _ machine: inout EntryMachine
    ) {
        let fields = fields.map { HeaderField(name: $0, value: $1) }
        let action = machine.responded(
            Sample.response(
                status, redirect: .to(RequestURL(normalized: url)), fields: fields))
        #expect(action.word == "queue")
        _ = machine.start(position: 1, at: Sample.now)
        _ = machine.lookedUp(.nothing, in: Sample.context())
    }

    /// The remembered target of an entry that now arrives.
    private func remembered(by machine: inout EntryMachine) -> PermanentTarget? {
        guard
            case .process(.body(_, _, let validation)) = machine.responded(
                Sample.response(200), gap: 0)
        else {
            Issue.record("the body arrives")
            return nil
        }
        return validation.location.permanent
    }

    @Test(arguments: [301, 302, 303, 307, 308], redirectFields)
    func remembersPermanentRedirectsWhileTheyAreFresh(
        status: Int, redirect: (fields: [String: String], seconds: Int64)
    ) {
        var machine = EntryMachine.asking()
        hop(to: "http://h/2", status, redirect.fields, &machine)
        let isKept = [301, 308].contains(status) && redirect.seconds > 0
        // The transfer's time counts as age only with explicit ages.
        let until = remembered(by: &machine)
        #expect((until?.url == "http://h/2") == isKept)
        let left = until?.until.timeSince(Sample.time) ?? .zero
        let expected = Duration.seconds(isKept ? redirect.seconds : 0)
        #expect(left <= expected && left >= expected - .milliseconds(5), "\(left)")
    }

    /// The shortest lifetime decides; another kind of redirect ends the part that is remembered.
    @Test(arguments: redirectFields, [301, 302])
    func remembersChainsByTheirShortestLifetime(
        redirect: (fields: [String: String], seconds: Int64), last: Int
    ) {
        let minute = ["Cache-Control": "max-age=60"]
        for hops in [[minute, redirect.fields], [redirect.fields, minute]] {
            var machine = EntryMachine.asking()
            for (number, fields) in hops.enumerated() {
                hop(to: "http://h/\(number + 2)", 308, fields, &machine)
            }
            hop(to: "http://h/4", last, ["Cache-Control": "max-age=50"], &machine)
            let permanent = remembered(by: &machine)
            let least = min(redirect.seconds, last == 301 ? 50 : 60)
            let left = permanent?.until.timeSince(Sample.time) ?? .zero
            #expect(left <= .seconds(least) && left >= .seconds(least) - .milliseconds(5))
            #expect(
                permanent?.url == (least == 0 ? nil : last == 301 ? "http://h/4" : "http://h/3"))
        }
    }

    @Test(arguments: [(-1, "ask"), (0, "ask"), (1, "move on"), (86400, "move on")])
    func requestsTheListedURLOnceTheRedirectIsStale(seconds: Int, expected: String) {
        let until = Sample.time.advanced(by: .seconds(seconds))
        let copy = Sample.copy(
            permanentTarget: "http://other/1", until: until, responseURL: "http://other/1")
        var machine = EntryMachine(Sample.entry(Sample.stale))
        _ = machine.start(position: 1, at: Sample.now)
        #expect(machine.lookedUp(Findings(copy: copy), in: Sample.context()).word == expected)
        guard expected == "move on" else { return }
        // A response of the target does not prolong it.
        _ = machine.start(position: 1, at: Sample.now)
        _ = machine.lookedUp(.nothing, in: Sample.context())
        #expect(
            remembered(by: &machine) == PermanentTarget(url: "http://other/1", until: until))
    }

    @Test func usesARememberedTargetUntilItFails() throws {
        let context = Sample.context()
        var machine = EntryMachine(Sample.entry(Sample.stale))
        _ = machine.start(position: 1, at: Sample.now)
        let copy = Sample.copy(
            permanentTarget: "http://other/1", responseURL: "http://other/1")
        #expect(machine.lookedUp(Findings(copy: copy), in: context).word == "move on")
        #expect(machine.target.text == "http://other/1")
        _ = machine.start(position: 2, at: Sample.now)
        let action = machine.lookedUp(.nothing, in: context)
        guard case .ask(let request) = action else {
            Issue.record("\(action)")
            return
        }
        #expect(request.isForeign && request.addressRule == .redirectedFromPublic)
        #expect(!request.conditions.isEmpty)
        // In the same attempt, and only once.
        #expect(
            machine.responded(
                Sample.response(404), kept: [true, true], in: context
            )
            .word == "queue")
        #expect(machine.target == Sample.url)
        _ = machine.start(position: 3, at: Sample.now)
        #expect(machine.lookedUp(.nothing, in: context).word == "ask")
        let end = machine.responded(
            Sample.response(404), kept: [true, true], in: context)
        let result = machine.result(try #require(end.end))
        #expect(result.attempts == 1 && result.start == 1)
        #expect(result.message?.hasSuffix("stays") == true && result.stored != nil)
    }

    @Test func writesAndReportsNewVariants() throws {
        let kept = Findings(copy: Sample.copy(kept: [true, false]))
        var machine = EntryMachine.processing(kept)
        let ends: [VariantEnd] = [.kept(Sample.image(1)), .made(Sample.image(4))]
        let action = machine.processed(.made(ends, source: Sample.source))
        guard case .write(let change) = action, case .new(let source, let validation) = change.body
        else {
            Issue.record("\(action)")
            return
        }
        #expect(source == Sample.source && validation.location.url == Sample.url.text)
        #expect(change.variants.map(\.variant) == Array(Sample.variants))
        #expect(change.variants.map(\.isKept) == [true, false])
        #expect(change.key == Sample.url.text && !change.isIncomplete)
        let end = try #require(machine.committed().end)
        #expect(end.outcome == .downloaded)
        let result = machine.result(end)
        #expect(result.stored == Sample.image(1) && result.httpStatus == 200)
        #expect(result.stages.decode == .milliseconds(1) && result.stages.queue != nil)
    }

    /// Our full disk says nothing about the origin, and must not blacklist its images.
    @Test func anAbortedEntryBlamesNoOrigin() throws {
        var machine = EntryMachine.asking(Findings(copy: Sample.copy()))
        let end = try #require(machine.abort(Failure(.disk, "full")).end)
        guard case .failed(let failed) = end else {
            Issue.record("\(end)")
            return
        }
        #expect(failed.blame == .local && failed.memory(httpStatus: 404) == .none)
        #expect(machine.result(end).message == "full; the copy of 1970-01-01T00:16:40Z stays")
    }

    /// The blame for a transfer, for a body, and for one variant of a body.
    @Test(arguments: FailureReason.allCases)
    func onlyLocalReasonsBlameNoOrigin(reason: FailureReason) throws {
        let failure = Failure(reason, "broke")
        let isLocal = reason == .disk || reason == .internal
        #expect(reason.isLocal == isLocal)
        var machine = EntryMachine.asking()
        let transfer = machine.transferFailed(
            Sample.transferFailure(reason), leaving: nil, cost: Sample.cost, in: Sample.context())
        machine = .processing()
        let body = machine.processed(.failed(failure))
        machine = .processing()
        let variant = machine.processed(
            .made([.made(Sample.image(3)), .failed(failure)], source: Sample.source))
        guard case .write(let change) = variant else {
            Issue.record("\(variant)")
            return
        }
        // The failure of an earlier run stays in any case.
        #expect(change.isIncomplete)
        for end in [transfer.end, body.end, machine.committed().end] {
            switch try #require(end) {
            case .failed(let failed):
                #expect(failed.blame == (isLocal ? .local : .origin))
                #expect((failed.memory(httpStatus: 404) == .none) == isLocal)
            case .excluded: #expect(reason.isExclusion)
            case .stored, .requested, .cancelled: Issue.record("\(String(describing: end))")
            }
        }
    }

    /// The other variants are stored.
    @Test func aFailedVariantFailsTheEntry() throws {
        var machine = EntryMachine.processing()
        let failure = Failure(.tooManyPixels, "variant web: too large")
        #expect(
            machine.processed(
                .made([.made(Sample.image(3)), .failed(failure)], source: Sample.source)
            ).word == "write body")
        let end = try #require(machine.committed().end)
        #expect(end.reason == .tooManyPixels)
        let result = machine.result(end)
        #expect(result.message == failure.message && result.stored == Sample.image(3))
    }

    @Test func identicalBytesConfirmTheCopy() throws {
        var machine = EntryMachine.processing(Findings(copy: Sample.copy()))
        #expect(machine.processed(.unchanged).word == "write validation 0")
        let result = machine.result(try #require(machine.committed().end))
        #expect(result.message == "the same bytes as before" && result.outcome == .downloaded)
    }

    @Test func writesAttributesOfAFreshEntry() throws {
        var machine = EntryMachine(Sample.entry(.unannotated(expiresAt: Sample.time)))
        let action = machine.annotate(
            resource: 7, images: [Sample.image(1), Sample.image(2)], expiresAt: Sample.time,
            in: Sample.context())
        #expect(action.word == "write 0")
        let result = machine.result(try #require(machine.committed().end))
        #expect(result.outcome == .fresh && result.start == nil && result.exchange == nil)
        #expect(result.stored == Sample.image(1) && result.expiresAt == Sample.time)
    }

    /// An offline run cannot fetch it again.
    @Test func excludesADamagedOriginalOffline() {
        let context = Sample.context(isOffline: true)
        var machine = EntryMachine(
            Sample.entry(.derivable(expiresAt: Timestamp(seconds: 7))))
        _ = machine.startDeriving(at: Sample.now)
        let copy = Sample.copy(kept: [false, false], original: true)
        _ = machine.lookedUp(Findings(copy: copy), in: context)
        #expect(
            machine.processed(.originalDamaged, in: context).word == "forget, excluded")
    }

    // MARK: Hosts that are given up

    @Test func endsEntriesOfAHostThatIsGivenUp() throws {
        let context = Sample.context(retries: 1)
        // An entry that was never requested.
        var machine = EntryMachine(Sample.entry(Sample.stale))
        #expect(machine.giveUp(.connect, "h is down", at: Sample.now).word == "look up")
        var findings = Findings(copy: Sample.copy())
        findings.wasGivenUpBefore = true
        var end = try #require(machine.lookedUp(findings, in: context).end)
        var result = machine.result(end)
        #expect(result.message?.hasPrefix("not requested: h is down; the copy of") == true)
        #expect(result.attempts == 0 && result.start == nil)
        #expect(machine.findings.wasGivenUpBefore)
        guard case .failed(let failed) = end else { return }
        #expect(failed.blame == .hostGivenUp)

        // An entry that waits for its retry.
        machine = .asking(.nothing, context)
        _ = machine.transferFailed(
            Sample.transferFailure(.connect), leaving: nil, cost: Sample.cost, in: context)
        #expect(machine.waitsForRetry)
        _ = machine.giveUp(.connect, "h is down", at: Sample.now)
        end = try #require(machine.lookedUp(.nothing, in: context).end)
        result = machine.result(end)
        #expect(result.message == "broke; not retried: h is down" && result.attempts == 1)

        // An entry that waits at the target of a permanent redirect.
        machine = EntryMachine(Sample.entry(Sample.stale))
        _ = machine.start(position: 1, at: Sample.now)
        let copy = Sample.copy(permanentTarget: "http://other/1")
        _ = machine.lookedUp(Findings(copy: copy), in: context)
        _ = machine.giveUp(.connect, "other is down", at: Sample.now)
        #expect(machine.lookedUp(.nothing, in: context).word == "queue")
        #expect(machine.target == Sample.url)
    }

    /// The seed's copy would supersede a variant that it lacks.
    @Test(arguments: [false, true])
    func seedsKeepVariantsInUse(hasOther: Bool) {
        let context = Sample.context()
        var machine = EntryMachine(Sample.entry(.seeded(expiresAt: Timestamp(seconds: 7))))
        #expect(machine.startDeriving(at: Sample.now).word == "look up")
        var findings = Findings(copy: Sample.copy(others: hasOther))
        findings.seeded = Sample.seeded
        let action = machine.lookedUp(findings, in: context)
        #expect(action.word == (hasOther ? "queue" : "take"))
        guard !hasOther else { return }
        var lost = machine
        #expect(lost.processed(.originalDamaged, in: context).word == "queue")
        #expect(machine.processed(Sample.made, in: context).word == "write body")
        #expect(machine.committed().word == "fresh")
    }
}

extension EntryMachine {
    fileprivate static func asking(
        _ findings: Findings, _ context: EntryContext
    ) -> EntryMachine {
        asking(findings, state: .missing, context)
    }
}
