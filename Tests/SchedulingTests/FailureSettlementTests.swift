import PrefetchModel
import Scheduling
import Testing

@Suite(.timeLimit(.minutes(15)))
struct FailureSettlementTests {
    private static let now = Timestamp(seconds: 1_800_000_000)
    private static let month = Duration.seconds(30 * 86400)

    private static func failure(
        _ kind: (reason: FailureReason, status: Int?), isStored: Bool = true, days: Int = 2,
        former: UnsettledFailure.FormerCause? = nil
    ) -> UnsettledFailure {
        let ofKind = FailurePolicy.failureClass(of: kind.reason, httpStatus: kind.status)
        return UnsettledFailure(
            reason: kind.reason, httpStatus: kind.status, isStored: isStored,
            firstFailedAt: now.advanced(by: .seconds(-days * 86400)), lastFailedAt: now,
            streak: (ofKind == .ours ? .transient : ofKind, 3), former: former)
    }

    private static func former(
        _ reason: FailureReason, _ status: Int? = nil, _ host: HostMark? = nil
    ) -> UnsettledFailure.FormerCause {
        UnsettledFailure.FormerCause(
            reason: reason, httpStatus: status, host: host, hasSameConditions: true)
    }

    /// The kinds whose rows are settled: refusals are never blacklisted.
    static let kinds = HostFaultRuleTests.kinds.filter {
        FailurePolicy.failureClass(of: $0.reason, httpStatus: $0.status) != .ours
    }

    /// Held for the rest of a month, then settled as usual; images that were never stored as usual
    /// at once.
    @Test(arguments: kinds)
    func aFaultOfTheHostHoldsStoredImagesForAMonth(kind: (reason: FailureReason, status: Int?)) {
        for hasSuccess in [false, true] {
            let verdict = HostVerdict(isAtFault: true, hasSuccess: hasSuccess)
            for days in [0, 1, 29] {
                let held = FailurePolicy.settlement(of: Self.failure(kind, days: days), at: verdict)
                #expect(held?.host == .fault)
                #expect(held?.runsInARow == 3)
                #expect(
                    held?.blacklistedUntil
                        == Self.now.advanced(by: Self.month - .seconds(days * 86400)))
            }
            let usual = HostVerdict(hasSuccess: hasSuccess)
            for (isStored, days) in [(true, 30), (true, 31), (false, 0), (false, 2)] {
                let failure = Self.failure(kind, isStored: isStored, days: days)
                #expect(
                    FailurePolicy.settlement(of: failure, at: verdict)
                        == FailurePolicy.settlement(of: failure, at: usual))
                #expect(FailurePolicy.settlement(of: failure, at: usual)?.host != .fault)
            }
        }
    }

    /// Whatever the probe fails with, the row stays until the host has recovered.
    @Test(arguments: kinds)
    func aFailedProbeChangesNothing(kind: (reason: FailureReason, status: Int?)) {
        let failure = Self.failure(kind, former: Self.former(.notAnImage, 200, .fault))
        for hasSuccess in [false, true] {
            let verdict = HostVerdict(hasSuccess: hasSuccess)
            #expect(FailurePolicy.settlement(of: failure, at: verdict) == nil)
        }
        let recovered = HostVerdict(hasSuccess: true, hasRecovered: true)
        #expect(FailurePolicy.settlement(of: failure, at: recovered)?.host == nil)
        #expect(FailurePolicy.settlement(of: failure, at: recovered) != nil)
    }

    /// A host that is down says nothing about a URL that fails anyway.
    @Test(arguments: [403, 401, 404, 410, 451])
    func aDownHostLeavesLastingFailures(status: Int) {
        let failure = Self.failure(
            (.httpStatus, 500), isStored: false, former: Self.former(.httpStatus, status))
        #expect(FailurePolicy.settlement(of: failure, at: HostVerdict()) == nil)
        #expect(FailurePolicy.settlement(of: failure, at: HostVerdict(hasSuccess: true)) != nil)
        // A transient failure counts on.
        let repeated = Self.failure(
            (.httpStatus, 500), isStored: false, former: Self.former(.httpStatus, 500))
        let settled = FailurePolicy.settlement(of: repeated, at: HostVerdict())
        #expect(settled?.runsInARow == 4)
        #expect(settled?.host == .down)
    }

    /// The same failure counts on, so that the blacklist applies after a month.
    @Test func aHostAtFaultLeavesOtherFailures() {
        for isStored in [false, true] {
            for (status, stays) in [(404, true), (500, true), (410, false)] {
                let failure = Self.failure(
                    (.httpStatus, 410), isStored: isStored, days: 40,
                    former: Self.former(.httpStatus, status))
                let verdict = HostVerdict(isAtFault: true)
                #expect((FailurePolicy.settlement(of: failure, at: verdict) == nil) == stays)
                let recovered = HostVerdict(hasSuccess: true, hasRecovered: true)
                #expect(FailurePolicy.settlement(of: failure, at: recovered) != nil)
            }
        }
    }

    @Test func anOutageLeavesAFormerFailureAndMarksANewOne() {
        let outage = HostVerdict(isInOutage: true)
        let known = Self.failure((.notAnImage, 200), isStored: false, former: Self.former(.dns))
        #expect(FailurePolicy.settlement(of: known, at: outage) == nil)
        let new = FailurePolicy.settlement(
            of: Self.failure((.notAnImage, 200), isStored: false), at: outage)
        #expect(new?.blacklistedUntil == nil)
        #expect(new?.host == .fault)
    }

    // MARK: Known failures

    private static func knowledge(
        _ failure: (reason: FailureReason, httpStatus: Int?), after former: FormerFailure?,
        isExplained: Bool = false, hasSuccess: Bool = false
    ) -> FailureKnowledge {
        FailurePolicy.knowledge(
            of: failure, former: former, isSameURL: true, isExplained: isExplained,
            hasSuccess: hasSuccess)
    }

    @Test func aURLThatFailsAnywayIsNoNewsWhileItsHostIsDown() {
        for status in [403, 404, 410] {
            let former: FormerFailure = ("u", .httpStatus, status, nil)
            #expect(Self.knowledge((.httpStatus, status), after: former) == .ofURL)
            #expect(Self.knowledge((.httpStatus, 500), after: former) == .ofHost)
            #expect(Self.knowledge((.connect, nil), after: former) == .ofHost)
            #expect(Self.knowledge((.httpStatus, 500), after: former, hasSuccess: true) == .new)
            #expect(Self.knowledge((.notAnImage, 200), after: former) == .new)
        }
        // A transient failure of its own that changes is news.
        #expect(Self.knowledge((.dns, nil), after: ("u", .httpStatus, 500, nil)) == .new)
    }

    @Test func whatTheHostCausedIsNotTheURLsOwn() {
        for mark in [HostMark.down, .fault] {
            let former: FormerFailure = ("u", .httpStatus, 500, mark)
            #expect(
                Self.knowledge((.httpStatus, 500), after: former)
                    == (mark == .fault ? .ofHost : .ofURL))
            #expect(Self.knowledge((.httpStatus, 502), after: former) == .ofHost)
            #expect(Self.knowledge((.httpStatus, 502), after: former, hasSuccess: true) == .new)
        }
        #expect(Self.knowledge((.dns, nil), after: nil) == .new)
        #expect(Self.knowledge((.dns, nil), after: nil, isExplained: true) == .ofHost)
    }
}
