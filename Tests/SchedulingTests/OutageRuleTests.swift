import PrefetchModel
import Scheduling
import SeededRandom
import Testing

@Suite(.timeLimit(.minutes(15)))
struct OutageRuleTests {
    /// The ends of `count` entries of one host; a nil reason is a success.
    private struct Ends: Sendable, CustomTestStringConvertible {
        let count: Int
        let host: String
        let reason: FailureReason?
        let status: Int?

        init(_ count: Int, _ host: String, _ reason: FailureReason?, _ status: Int? = nil) {
            self.count = count
            self.host = host
            self.reason = reason
            self.status = status
        }

        var testDescription: String {
            "\(count) × \(host) \(reason?.rawValue ?? "success") \(status ?? 0)"
        }
    }

    /// The expected outage without its reason.
    private struct Expected: Hashable, Sendable {
        let failures: Int
        let heldBack: Int
        let asked: Int
        let hosts: [String]
    }

    private struct Found: Hashable, Sendable {
        let reason: FailureReason
        let extent: Expected

        init(reason: FailureReason, _ extent: Expected) {
            self.reason = reason
            self.extent = extent
        }

        init(_ outage: Outage) {
            self.init(
                reason: outage.reason,
                Expected(
                    failures: outage.failures, heldBack: outage.heldBack, asked: outage.asked,
                    hosts: outage.hosts))
        }
    }

    private static func outages(_ ends: [Ends]) -> [Outage] { rule(ends).outages() }

    private static func rule(_ ends: [Ends]) -> OutageRule {
        var rule = OutageRule()
        for end in ends {
            for _ in 0..<end.count {
                if let reason = end.reason {
                    rule.failed(host: end.host, reason: reason, httpStatus: end.status)
                } else {
                    rule.succeeded(host: end.host)
                }
            }
        }
        return rule
    }

    @Test func findsNoOutageInAnEmptyRun() {
        #expect(OutageRule().outages().isEmpty)
    }

    private static let runsWithoutOutage: [[Ends]] = [
        // At least 20 requested entries.
        [Ends(19, "a", .notAnImage)],
        [Ends(18, "a", .notAnImage), Ends(1, "b", nil)],
        // Exactly half is not more than half.
        [Ends(10, "a", .notAnImage), Ends(10, "b", nil)],
        [Ends(10, "a", .notAnImage), Ends(11, "b", nil)],
        [Ends(105, "a", .dns), Ends(105, "b", .connect)],
        // Removed images are no outage, however many.
        [Ends(500, "a", .httpStatus, 404)], [Ends(500, "a", .httpStatus, 410)],
        [Ends(250, "a", .httpStatus, 404), Ends(250, "a", .httpStatus, 410)],
        // Nor are images beyond the limits of the run.
        [Ends(50, "a", .tooLarge)], [Ends(50, "a", .tooManyPixels)],
        // Nor do they push others over the half: 20 of 50, and exactly half of 40.
        [Ends(30, "a", .httpStatus, 404), Ends(20, "a", .httpStatus, 503)],
        [Ends(20, "a", .httpStatus, 503), Ends(20, "b", .httpStatus, 410)],
        // Nor do failures of the class `ours` for the same reason.
        [Ends(20, "a", .httpStatus, 503), Ends(20, "a", .httpStatus, 403)],
        // One success, first or last, shows that the host works.
        [Ends(1, "a", nil), Ends(500, "a", .notAnImage)],
        [Ends(500, "a", .notAnImage), Ends(1, "a", nil)],
        [Ends(250, "a", .notAnImage), Ends(1, "a", nil), Ends(250, "a", .notAnImage)],
        // These are never recorded.
        [Ends(50, "a", .disk)], [Ends(50, "a", .internal)], [Ends(50, "a", .refusedAddress)],
        [Ends(50, "a", .httpStatus, 401)], [Ends(50, "a", .httpStatus, 403)],
        [Ends(50, "a", .httpStatus, 407)], [Ends(50, "a", .httpStatus, nil)],
    ]

    @Test(arguments: runsWithoutOutage)
    private func findsNoOutage(ends: [Ends]) {
        #expect(OutageRuleTests.outages(ends).isEmpty)
    }

    private static let runsWithOutage: [([Ends], Expected)] = [
        (
            [Ends(20, "a", .notAnImage)],
            Expected(failures: 20, heldBack: 20, asked: 20, hosts: ["a"])
        ),
        (
            [Ends(11, "a", .dns), Ends(9, "b", nil)],
            Expected(failures: 11, heldBack: 11, asked: 20, hosts: ["a"])
        ),
        (
            [Ends(11, "a", .dns), Ends(10, "b", nil)],
            Expected(failures: 11, heldBack: 11, asked: 21, hosts: ["a"])
        ),
        (
            [Ends(106, "a", .connect), Ends(104, "a", .dns)],
            Expected(failures: 106, heldBack: 106, asked: 210, hosts: ["a"])
        ),
        // Failures of the class `ours` and with 404 are requested entries too.
        (
            [Ends(11, "a", .timeout), Ends(5, "a", .disk), Ends(4, "a", .httpStatus, 404)],
            Expected(failures: 11, heldBack: 11, asked: 20, hosts: ["a"])
        ),
        (
            [Ends(30, "a", .httpStatus, 503)],
            Expected(failures: 30, heldBack: 30, asked: 30, hosts: ["a"])
        ),
        (
            [Ends(30, "a", .httpStatus, 400)],
            Expected(failures: 30, heldBack: 30, asked: 30, hosts: ["a"])
        ),
        // All statuses are one reason: a broken proxy answers with any of them.
        (
            [
                Ends(40, "a", .httpStatus, 400), Ends(35, "b", .httpStatus, 405),
                Ends(25, "c", nil),
            ],
            Expected(failures: 75, heldBack: 75, asked: 100, hosts: ["a", "b"])
        ),
        (
            [Ends(20, "a", .httpStatus, 500), Ends(20, "a", .httpStatus, 503)],
            Expected(failures: 40, heldBack: 40, asked: 40, hosts: ["a"])
        ),
        // Removed images and failures of the class `ours` are only requested; their host has no
        // part in it.
        (
            [
                Ends(21, "a", .httpStatus, 502), Ends(15, "b", .httpStatus, 404),
                Ends(5, "c", .httpStatus, 403),
            ],
            Expected(failures: 21, heldBack: 21, asked: 41, hosts: ["a"])
        ),
        // 404 is excluded only as the reason.
        (
            [Ends(10, "a", .notAnImage, 200), Ends(10, "a", .notAnImage, 404)],
            Expected(failures: 20, heldBack: 20, asked: 20, hosts: ["a"])
        ),
        // Failures on all hosts make the half; those of hosts with a success are still
        // blacklisted.
        (
            [
                Ends(3, "c", .redirect), Ends(4, "a", .redirect), Ends(9, "b", .redirect),
                Ends(1, "b", nil), Ends(3, "d", .tls),
            ],
            Expected(failures: 16, heldBack: 7, asked: 20, hosts: ["a", "c"])
        ),
    ]

    @Test(arguments: runsWithOutage)
    private func findsTheOutage(ends: [Ends], expected: Expected) throws {
        let reason = try #require(ends.first?.reason)
        #expect(
            OutageRuleTests.outages(ends).map(Found.init) == [Found(reason: reason, expected)])
    }

    @Test func explainsExactlyTheCountedFailures() throws {
        let rule = OutageRuleTests.rule([
            Ends(12, "a", .httpStatus, 400), Ends(12, "b", .httpStatus, 405),
            Ends(1, "b", .httpStatus, 404), Ends(5, "c", .httpStatus, 400), Ends(1, "c", nil),
            Ends(1, "a", .dns), Ends(1, "d", .dns),
        ])
        let outage = try #require(rule.outages().first)
        func explains(_ reason: FailureReason, _ status: Int?, _ host: String) -> Bool {
            rule.explains(reason, httpStatus: status, host: host, by: outage)
        }
        #expect(outage.heldBack == 24)
        for host in ["a", "b"] {
            for status in [400, 405, 503] {
                #expect(explains(.httpStatus, status, host))
            }
            for status in [404, 410] {
                #expect(!explains(.httpStatus, status, host))
            }
            #expect(!explains(.dns, nil, host))
        }
        for host in ["c", "d", "e"] {
            #expect(!explains(.httpStatus, 400, host))
        }
    }

    @Test func explainsFailuresOfOtherReasonsWhateverTheirStatus() throws {
        let rule = OutageRuleTests.rule([Ends(20, "a", .notAnImage)])
        let outage = try #require(rule.outages().first)
        for status in [nil, 200, 404, 410] {
            #expect(rule.explains(.notAnImage, httpStatus: status, host: "a", by: outage))
        }
    }

    /// A search through a list would take 2 × 10¹⁰ comparisons of texts, far beyond the suite's
    /// limit.
    @Test func explainsManyFailuresAtManyHosts() throws {
        let hosts = (0..<200_000).map { "https://h\($0).example.org:443" }
        let rule = OutageRuleTests.rule(hosts.map { Ends(1, $0, .dns) })
        let outage = try #require(rule.outages().first)
        #expect(outage.heldBack == hosts.count)
        #expect(outage.hostCount == hosts.count)
        let explained = hosts.count {
            rule.explains(.dns, httpStatus: nil, host: $0, by: outage)
        }
        #expect(explained == hosts.count)
    }

    /// Names are stored for the first hosts only; successful hosts free their place.
    @Test func namesFewFailedHostsAmongManyGoodOnes() throws {
        var ends = (0..<5000).flatMap { [Ends(1, "h\($0)", .dns), Ends(1, "h\($0)", nil)] }
        ends.append(Ends(20_000, "down", .dns))
        let outage = try #require(OutageRuleTests.outages(ends).first)
        #expect(outage.hosts == ["down"])
        #expect(outage.heldBack == 20_000)
        // Too many hosts failed to store their names, and then all but one succeeded.
        let others = (0..<5000).map { "h\($0)" }
        let unnamed = try #require(
            OutageRuleTests.outages(
                others.map { Ends(1, $0, .dns) } + [Ends(40_000, "down", .dns)]
                    + others.map { Ends(1, $0, nil) }
            ).first)
        #expect(unnamed.hostCount == 1)
        #expect(unnamed.hosts.isEmpty)
        #expect(
            unnamed.text()
                == "outage at 1 host: 45000 of 50000 requests failed (dns); "
                + "the 40000 URLs of this host will be retried next time")
    }

    @Test func countsReasonsOfEachHostSeparately() throws {
        let reasons: [FailureReason] = [.dns, .connect, .timeout, .tls]
        var ends: [Ends] = []
        for host in 0..<3000 {
            for (number, reason) in reasons.enumerated() {
                ends.append(Ends(number == host % 4 ? 1 : 2, "h\(host)", reason))
            }
        }
        ends.append(Ends(20_000, "h0", .timeout))
        let rule = OutageRuleTests.rule(ends)
        let outage = try #require(rule.outages().first)
        #expect(outage.reason == .timeout)
        #expect(outage.failures == 20_000 + 2 * 3000 - 750)
        #expect(outage.heldBack == outage.failures)
        #expect(outage.hostCount == 3000)
    }

    @Test func continuesAfterAQuery() {
        var rule = OutageRule()
        for _ in 0..<20 { rule.failed(host: "a", reason: .dns, httpStatus: nil) }
        #expect(rule.outages().map(\.failures) == [20])
        rule.succeeded(host: "a")
        #expect(rule.outages().isEmpty)
    }

    // MARK: The line for people

    private static let lines: [([Ends], String)] = [
        (
            [Ends(200, "http://a", .notAnImage), Ends(10, "http://b", nil)],
            "outage at http://a: 200 of 210 requests failed (not-an-image); "
                + "these URLs will be retried next time"
        ),
        (
            (0..<3).map { Ends(10, "http://\($0)", .httpStatus, 500 + $0) },
            "outage at http://0, http://1, http://2: all 30 requests failed (http-status); "
                + "these URLs will be retried next time"
        ),
        (
            (0..<200).map { Ends(1, "http://\($0)", .notAnImage) } + [Ends(10, "http://b", nil)],
            "outage at 200 hosts: 200 of 210 requests failed (not-an-image); "
                + "these URLs will be retried next time"
        ),
        (
            (0..<200).map { Ends(1, "http://\($0)", .httpStatus, 400 + $0 % 2 * 5) }
                + [Ends(10, "http://b", nil)],
            "outage at 200 hosts: 200 of 210 requests failed (http-status); "
                + "these URLs will be retried next time"
        ),
        (
            [
                Ends(20, "http://a", .tls), Ends(5, "http://b", .tls), Ends(1, "http://b", nil),
            ],
            "outage at http://a: 25 of 26 requests failed (tls); "
                + "the 20 URLs of this host will be retried next time"
        ),
        (
            (0..<4).map { Ends(5, "http://\($0)", .tls) } + [
                Ends(5, "http://b", .tls), Ends(1, "http://b", nil),
            ],
            "outage at 4 hosts: 25 of 26 requests failed (tls); "
                + "the 20 URLs of these hosts will be retried next time"
        ),
    ]

    @Test(arguments: lines)
    private func describesFailuresThatAreNotBlacklisted(ends: [Ends], line: String) {
        #expect(OutageRuleTests.outages(ends).map { $0.text() } == [line])
    }

    // MARK: Against a model

    /// One requested entry; the model keeps all of them.
    private struct Asked {
        let host: String
        let reason: FailureReason?
        let status: Int?

        /// The reason of a failure that the rule covers.
        var countedReason: FailureReason? {
            guard let reason,
                FailurePolicy.failureClass(of: reason, httpStatus: status) != .ours
            else { return nil }
            if reason == .httpStatus, let status, [404, 410].contains(status) { return nil }
            return reason
        }
    }

    /// The rule as documented, over the list of all entries.
    private static func model(_ entries: [Asked]) -> Set<Found> {
        guard entries.count >= 20 else { return [] }
        var found: Set<Found> = []
        for entry in entries {
            guard let reason = entry.countedReason else { continue }
            let alike = entries.filter { $0.countedReason == reason }
            guard Double(alike.count) > Double(entries.count) / 2 else { continue }
            let working = Set(entries.filter { $0.reason == nil }.map(\.host))
            let held = alike.filter { !working.contains($0.host) }
            guard !held.isEmpty else { continue }
            let extent = Expected(
                failures: alike.count, heldBack: held.count, asked: entries.count,
                hosts: Set(held.map(\.host)).sorted())
            found.insert(Found(reason: reason, extent))
        }
        return found
    }

    @Test func agreesWithASimpleModel() {
        let kinds: [(FailureReason, Int?)] = [
            (.httpStatus, 404), (.httpStatus, 410), (.httpStatus, 503), (.httpStatus, 500),
            (.httpStatus, 403), (.notAnImage, 200), (.notAnImage, 404), (.dns, nil), (.disk, nil),
        ]
        var found = 0
        var partlyHeldBack = 0
        let seeds: ClosedRange<UInt64> = 1...2000
        for seed in seeds {
            var random = SplitMix(seed: seed)
            // One reason prevails more or less, around the half; hosts fail permanently or
            // sometimes.
            let prevailing = kinds[Int.random(in: 0..<kinds.count, using: &random)]
            let share = Double.random(in: 0.3...1, using: &random)
            let hostCount = Int.random(in: 1...6, using: &random)
            let working = Int.random(in: 0...hostCount, using: &random)
            var entries: [Asked] = []
            var rule = OutageRule()
            for _ in 0..<Int.random(in: 0...60, using: &random) {
                let index = Int.random(in: 0..<hostCount, using: &random)
                let host = "https://h\(index):443"
                if index < working, Int.random(in: 0..<4, using: &random) == 0 {
                    entries.append(Asked(host: host, reason: nil, status: nil))
                    rule.succeeded(host: host)
                    continue
                }
                let isPrevailing = Double.random(in: 0..<1, using: &random) < share
                let (reason, status) =
                    isPrevailing
                    ? prevailing : kinds[Int.random(in: 0..<kinds.count, using: &random)]
                entries.append(Asked(host: host, reason: reason, status: status))
                rule.failed(host: host, reason: reason, httpStatus: status)
            }
            let expected = OutageRuleTests.model(entries)
            #expect(rule.outages().map(Found.init) == Array(expected), "seed \(seed)")
            found += expected.count
            partlyHeldBack += expected.count {
                $0.extent.heldBack < $0.extent.failures
            }
        }
        // The comparison is useful only when both results were common.
        #expect((200...1800).contains(found))
        #expect(partlyHeldBack >= 50)
    }
}
