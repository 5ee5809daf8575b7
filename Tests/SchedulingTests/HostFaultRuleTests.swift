import PrefetchModel
import Testing

@testable import Scheduling

@Suite(.timeLimit(.minutes(15)))
struct HostFaultRuleTests {
    private static let host = "https://a"

    /// Failures of every kind that an origin can cause.
    static let kinds: [(reason: FailureReason, status: Int?)] = [
        (.dns, nil), (.connect, nil), (.tls, nil), (.timeout, nil), (.stalled, nil),
        (.interrupted, nil), (.redirect, 301), (.httpStatus, 404), (.httpStatus, 410),
        (.httpStatus, 400), (.httpStatus, 403), (.httpStatus, 500), (.httpStatus, 503),
        (.tooLarge, 200), (.notAnImage, 200), (.corruptImage, 200), (.tooManyPixels, 200),
        (.unsupportedImage, 200), (.uncacheable, 200),
    ]

    private static func rule(
        failed: Int, good: Int, _ kind: (reason: FailureReason, status: Int?), isStored: Bool = true
    ) -> HostFaultRule {
        var rule = HostFaultRule()
        for _ in 0..<failed {
            rule.failed(
                host: host, reason: kind.reason, httpStatus: kind.status, isStored: isStored)
        }
        for _ in 0..<good { rule.succeeded(host: host, isStored: isStored) }
        return rule
    }

    @Test(arguments: kinds)
    func mostStoredImagesOfAHostAreWitnesses(kind: (reason: FailureReason, status: Int?)) {
        let shares: [(failed: Int, good: Int, isAtFault: Bool)] = [
            (5, 0, true), (4, 0, false), (3, 2, true), (2, 3, false), (3, 3, false), (4, 3, true),
            (4, 1, true), (500, 499, true), (500, 500, false), (3, 1, false),
        ]
        for (failed, good, isAtFault) in shares {
            let rule = Self.rule(failed: failed, good: good, kind)
            #expect(
                rule.isAtFault(Self.host) == isAtFault, "\(failed) of \(good)")
            #expect(rule.faults.map(\.host) == (isAtFault ? [Self.host] : []))
            #expect(!rule.isAtFault("https://b"))
            let unknown = Self.rule(failed: failed, good: good, kind, isStored: false)
            #expect(!unknown.isAtFault(Self.host))
        }
    }

    /// Faults of this machine and of the user's settings are no host's.
    @Test(arguments: [
        FailureReason.disk, .internal, .bodyFilter, .refusedAddress, .invalidEntry, .notSelected,
    ])
    func ownFaultsBlameNoHost(reason: FailureReason) {
        #expect(Self.rule(failed: 50, good: 0, (reason, nil)).faults.isEmpty)
    }

    /// 404s of one server, 503s of the next one, and a page are one fault, named by the most
    /// frequent reason.
    @Test func mixedKindsAreOneFault() {
        var rule = HostFaultRule()
        let kinds: [(FailureReason, Int?)] = [
            (.notAnImage, 200), (.httpStatus, 404), (.timeout, nil), (.httpStatus, 503),
            (.tls, nil),
        ]
        for (reason, status) in kinds {
            rule.failed(host: Self.host, reason: reason, httpStatus: status, isStored: true)
        }
        #expect(rule.faults.map(\.host) == [Self.host])
        #expect(rule.faults.map(\.reason) == [.httpStatus])
        for _ in kinds { rule.succeeded(host: Self.host, isStored: true) }
        #expect(rule.faults.isEmpty)
    }

    /// Images that are gone stay no fault of a host that serves the others.
    @Test(
        arguments: [
            (10, 20, nil, true), (10, 20, false, true), (20, 10, nil, true), (20, 10, false, false),
            (20, 10, true, true), (3, 1, false, false), (2, 3, false, true),
        ] as [(Int, Int, Bool?, Bool)])
    func aFaultEndsByItsProbeOrByHalfOfTheImages(
        failed: Int, good: Int, isProbed: Bool?, hasRecovered: Bool
    ) {
        let rule = Self.rule(failed: failed, good: good, (.httpStatus, 404))
        #expect(
            rule.hasRecovered(Self.host, isProbed: isProbed, hasSuccess: good > 0) == hasRecovered)
    }

    /// It may have recovered.
    @Test(arguments: [false, true])
    func aHostWithoutARequestIsNotReported(isRequested: Bool) {
        var rule = HostFaultRule()
        for number in 0..<30 {
            rule.failed(
                host: Self.host, reason: .httpStatus, httpStatus: 404, isStored: true,
                isRequested: isRequested && number == 29)
        }
        #expect(rule.isAtFault(Self.host))
        let report = OutageReport(
            after: OngoingOutages(), OutageRule(), rule, failing: [:], explained: [String](),
            at: Timestamp(seconds: 1_800_000_000)
        ) { _, _ in 30 }
        #expect((report.outage?.hosts == [Self.host]) == isRequested)
        #expect((report.outage == nil) == !isRequested)
    }

    /// The other images are fresh, or were requested with success.
    @Test func shareCountsAllListedEntries() {
        for (failed, good, stored, share) in [
            (40, 0, 40, 40), (21, 0, 40, 40), (20, 0, 40, nil), (5, 0, 1000, nil),
            (21, 19, 40, 40), (20, 20, 40, nil), (1, 0, 1, 1), (1, 0, 2, nil),
        ] {
            let rule = Self.rule(failed: failed, good: good, (.httpStatus, 500))
            let found = rule.share(of: Self.host) { _, limit in min(stored, limit + 1) }
            #expect(found?.failures == share.map { _ in failed }, "\(failed) of \(stored)")
            #expect(found?.listed == share, "\(failed) of \(stored)")
        }
        // Images that were never stored count as listed.
        var rule = Self.rule(failed: 6, good: 0, (.httpStatus, 404))
        for _ in 0..<6 { rule.succeeded(host: Self.host, isStored: false) }
        #expect(rule.share(of: Self.host) { _, _ in 6 } == nil)
    }
}
