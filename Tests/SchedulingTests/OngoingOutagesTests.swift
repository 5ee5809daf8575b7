import PrefetchModel
import Testing

@testable import Scheduling

@Suite(.timeLimit(.minutes(15)))
struct OngoingOutagesTests {
    private static let now = Timestamp(seconds: 1_800_000_000)

    private static func known(
        _ hosts: [String], _ reason: FailureReason = .httpStatus
    ) -> OngoingOutage {
        OngoingOutage(reason: reason, hosts: hosts, reportedAt: now)
    }

    private static func outage(
        _ hosts: [String], _ reason: FailureReason = .httpStatus
    ) -> Outage {
        Outage(
            reason: reason, failures: 20, heldBack: 20, asked: 20,
            hostCount: hosts.isEmpty ? 99 : hosts.count, hosts: hosts)
    }

    private static func outages(_ all: Outage...) -> OngoingOutages {
        var outages = OngoingOutages()
        for outage in all { outages.add(outage, at: now) }
        return outages
    }

    @Test func explainsFailuresOfTheSameReasonAtItsHosts() {
        let outages = Self.outages(Self.outage(["http://a", "http://b"]))
        #expect(outages.explain(.httpStatus, httpStatus: 500, host: "http://a"))
        #expect(outages.explain(.httpStatus, httpStatus: 502, host: "http://b"))
        #expect(!outages.explain(.httpStatus, httpStatus: 404, host: "http://a"))
        #expect(!outages.explain(.httpStatus, httpStatus: 500, host: "http://c"))
        #expect(!outages.explain(.dns, httpStatus: nil, host: "http://a"))
        #expect(
            Self.outages(Self.outage([], .dns)).explain(.dns, httpStatus: nil, host: "http://z"))
    }

    @Test func anOutageAtAnotherHostIsNew() {
        let outages = Self.outages(Self.outage(["http://a", "http://b"]))
        #expect(outages.include(Self.outage(["http://b"])))
        #expect(!outages.include(Self.outage(["http://b", "http://c"])))
        #expect(!outages.include(Self.outage([])))
        #expect(!outages.include(Self.outage(["http://a"], .timeout)))
    }

    /// Lists with other hosts say nothing about an outage.
    @Test func endsHostByHost() {
        var outages = Self.outages(Self.outage(["http://a", "http://b"]))
        #expect(outages.end { $0 == nil || $0 == "http://c" }.isEmpty)
        let first = [Self.known(["http://a"])]
        #expect(outages.end { $0 != "http://b" } == first)
        #expect(outages.outages == [Self.known(["http://b"])])
        #expect(outages.end { _ in true } == [Self.known(["http://b"])])
        #expect(outages.text == nil)
    }

    @Test func anOutageWithoutNamesEndsWithAnySuccess() {
        var outages = Self.outages(Self.outage([], .dns))
        #expect(outages.end { _ in false }.isEmpty)
        #expect(outages.outages.count == 1)
        #expect(outages.end { $0 == nil } == [Self.known([], .dns)])
        #expect(outages.outages.isEmpty)
    }

    @Test func outagesOfSeveralListsGoOnBesideEachOther() {
        var outages = Self.outages(
            Self.outage(["http://a"]), Self.outage(["http://b"]), Self.outage(["http://a"], .dns))
        #expect(outages.outages.count == 3)
        outages.add(Self.outage(["http://b", "http://c"]), at: Self.now)
        #expect(outages.outages.count == 3)
        #expect(outages.explain(.httpStatus, httpStatus: 503, host: "http://c"))
        for number in 0..<OngoingOutages.maximumCount {
            outages.add(Self.outage(["http://\(number)"]), at: Self.now)
        }
        #expect(outages.outages.count == OngoingOutages.maximumCount)
        #expect(!outages.explain(.httpStatus, httpStatus: 503, host: "http://a"))
    }

    @Test func textReadsBack() {
        let outages = Self.outages(
            Self.outage(["http://a", "https://b:8443"]), Self.outage([], .stalled))
        #expect(
            outages.text
                == "http-status 1800000000000 http://a https://b:8443\nstalled 1800000000000")
        #expect(OngoingOutages(text: outages.text ?? "", at: Self.now) == outages)
        let text = "\n  \nno-such-reason 1 http://a\ndns http://a\n"
        #expect(OngoingOutages(text: text, at: Self.now).outages.isEmpty)
    }

    /// Failures below the size of an outage are known, but their end is not reported.
    @Test func smallOutagesEndSilently() {
        var outages = OngoingOutages()
        outages.add(failing: "http://a", .httpStatus, .part, at: Self.now)
        for host in ["http://b", "http://c"] {
            outages.add(failing: host, .dns, .most, at: Self.now)
        }
        #expect(outages.explain(.dns, httpStatus: nil, host: "http://c"))
        #expect(OngoingOutages(text: outages.text ?? "", at: Self.now) == outages)
        #expect(outages.end { $0 == nil || $0 == "http://b" }.isEmpty)
        #expect(!outages.explain(.dns, httpStatus: nil, host: "http://b"))
        // As part of a larger one it is reported at its end.
        outages.add(Self.outage(["http://a", "http://d"]), at: Self.now)
        outages.add(failing: "http://a", .httpStatus, .part, at: Self.now)
        outages.add(failing: "http://c", .dns, .most, at: Self.now)
        #expect(outages.end { $0 == nil || $0 == "http://a" } == [Self.known(["http://a"])])
        #expect(outages.outages.count == 2)
    }

    /// A trouble that was not reported as an outage makes none known.
    @Test(arguments: [OngoingOutage.ReportedExtent.part, .most])
    func aTroubleIsNoOutage(extent: OngoingOutage.ReportedExtent) {
        var outages = OngoingOutages()
        outages.add(failing: "http://a", .httpStatus, extent, at: Self.now)
        #expect(!outages.include(Self.outage(["http://a"])))
        #expect(outages.explain(.httpStatus, httpStatus: 500, host: "http://a"))
        #expect(
            !outages.explain(.httpStatus, httpStatus: 500, host: "http://a", failedBefore: true))
        #expect(OngoingOutages(text: outages.text ?? "", at: Self.now) == outages)
        // A host has one trouble, and then an outage.
        outages.add(failing: "http://a", .httpStatus, .most, at: Self.now)
        #expect(outages.outages.map(\.extent) == [.most])
        outages.add(Self.outage(["http://a"]), at: Self.now)
        #expect(outages.outages.map(\.extent) == [.outage])
    }

    /// At a host at fault, stored images may fail in any way, and each run may name another reason.
    @Test func aFaultExplainsStoredImages() {
        var outage = Self.outage(["http://a"])
        outage.isOfListed = true
        var outages = Self.outages(outage)
        #expect(OngoingOutages(text: outages.text ?? "", at: Self.now) == outages)
        #expect(outages.explain(.httpStatus, httpStatus: 404, host: "http://a", isStored: true))
        #expect(outages.explain(.notAnImage, httpStatus: 200, host: "http://a", isStored: true))
        #expect(!outages.explain(.notAnImage, httpStatus: 200, host: "http://a"))
        #expect(!outages.explain(.notAnImage, httpStatus: 200, host: "http://b", isStored: true))
        #expect(!outages.explain(.httpStatus, httpStatus: 404, host: "http://a"))
        #expect(outages.explain(.httpStatus, httpStatus: 500, host: "http://a"))
        var other = Self.outage(["http://a"], .notAnImage)
        other.isOfListed = true
        #expect(outages.include(other))
        outages.add(other, at: Self.now)
        #expect(outages.outages.count == 1)
        #expect(outages.end { _ in true }.count == 1)
    }

    /// Other hosts fail in each run.
    @Test func rememberedHostsAreLimited() {
        var outages = OngoingOutages()
        for run in 0..<9 {
            for host in 0..<60 {
                outages.add(failing: "http://\(run).\(host)", .dns, .most, at: Self.now)
            }
            outages.add(Self.outage(["http://\(run)"], .connect), at: Self.now)
        }
        #expect(outages.outages.allSatisfy { $0.hosts.count <= OngoingOutages.maximumHosts })
    }

    /// A host that has left all lists never answers.
    @Test func isForgottenAfterAMonth() {
        var outages = Self.outages(Self.outage(["http://a"]))
        outages.add(Self.outage(["http://a"]), at: Self.now.advanced(by: .seconds(20 * 86400)))
        for (days, count) in [(29, 1), (31, 0)] {
            let later = Self.now.advanced(by: .seconds(days * 86400))
            #expect(OngoingOutages(text: outages.text ?? "", at: later).outages.count == count)
        }
    }
}
