import Scheduling
import SeededRandom
import Testing

@Suite(.timeLimit(.minutes(15)))
struct HeldEntriesTests {
    /// Entries with numbers, and the hosts that respond.
    private struct HeldList {
        var held: HeldEntries<Int>
        var random: SplitMix
        var ended: [Int] = []
        var requested: [Int] = []
        var probes = 0

        init(limit: Int, seed: UInt64 = 1) {
            held = HeldEntries(limit: limit)
            random = SplitMix(seed: seed)
        }

        /// Reads an entry of a host; entries of a host that has recovered are requested.
        mutating func read(_ number: Int, of host: String, isAtFault: Bool = true) {
            if held.hasRecovered(host) == true { return requested.append(number) }
            guard
                case .waits(insteadOf: let other) = held.admission(
                    at: host, isAtFault: isAtFault, using: &random)
            else { return ended.append(number) }
            if let other { ended.append(other.value) }
            held.hold(number, number, at: host, isAtFault: isAtFault)
        }

        mutating func probe(isWell: (Int) -> String?) {
            for probe in held.takeProbes(using: &random) {
                probes += 1
                requested.append(probe)
                switch held.ended(probe, servedBy: isWell(probe)) {
                case .none: Issue.record("a probe has consequences")
                case .released(let released): requested += released
                case .ended(let all): ended += all.map(\.value)
                }
            }
        }
    }

    /// A large host that stays broken keeps no other host from its probe, whichever is read first,
    /// and whether probes can start while lists are read or not.
    @Test(arguments: [false, true], [false, true])
    func aBrokenHostHidesNoOther(isLargeFirst: Bool, readsAhead: Bool) {
        var list = HeldList(limit: 8)
        let large = (0..<40).map { ($0, "http://a") }
        let small = (40..<43).map { ($0, "http://b") }
        for (number, host) in isLargeFirst ? large + small : small + large {
            list.read(number, of: host)
            #expect(list.held.count <= 8)
            if !readsAhead, list.held.needsProbes {
                list.probe { $0 >= 40 ? "http://b" : nil }
            }
        }
        list.probe { $0 >= 40 ? "http://b" : nil }
        #expect(list.requested.filter { $0 >= 40 }.sorted() == [40, 41, 42])
        #expect(list.held.hasRecovered("http://b") == true)
        #expect(list.held.hasRecovered("http://a") == false)
        #expect(list.held.hasRecovered("http://c") == nil)
        // Every entry has one end.
        #expect(list.held.isEmpty)
        #expect((list.requested + list.ended).sorted() == Array(0..<43))
        if readsAhead { #expect(list.probes == 2) }
    }

    /// Entries beyond the limit follow in the same run, as they are read after the probe.
    @Test func allEntriesFollowASuccessfulProbe() {
        var list = HeldList(limit: 8)
        for number in 0..<100 {
            list.read(number, of: "http://a")
            if list.held.needsProbes { list.probe { _ in "http://a" } }
        }
        #expect(list.probes == 1)
        #expect(list.requested.sorted() == Array(0..<100))
    }

    @Test func oneProbeForEachHost() {
        var list = HeldList(limit: 100)
        for number in 0..<60 { list.read(number, of: "http://\(number % 3)") }
        list.probe { $0.isMultiple(of: 3) ? "http://0" : nil }
        #expect(list.probes == 3)
        #expect(list.requested.count == 20 + 2)
        list.probe { _ in nil }
        #expect(list.probes == 3)
    }

    /// The beginning of a long list does not hide the recovery of the rest.
    @Test func aLongListIsProbedAgain() {
        var list = HeldList(limit: 10)
        for number in 0..<100 {
            list.read(number, of: "http://a")
            if list.held.needsProbes { list.probe { $0 < 40 ? nil : "http://a" } }
        }
        list.probe { _ in "http://a" }
        #expect(list.held.hasRecovered("http://a") == true)
        #expect(list.probes <= 5)
        #expect(list.requested.filter { $0 >= 60 }.count == 40)
    }

    /// Each entry is as likely as any other to be the probe, within and beyond the limit.
    @Test(arguments: [8, 1000])
    func probesAreChosenAtRandom(limit: Int) {
        var first = 0
        for seed in 0..<400 as Range<UInt64> {
            var list = HeldList(limit: limit, seed: seed)
            for number in 0..<64 { list.read(number, of: "http://a") }
            list.probe { _ in nil }
            if list.requested[0] < 32 { first += 1 }
        }
        #expect((150...250).contains(first), "\(first)")
    }

    /// A mirror that delivers says nothing about the host.
    @Test func successOfAMirrorIsNoRecovery() {
        var list = HeldList(limit: 8)
        for number in 0..<5 { list.read(number, of: "http://a") }
        list.probe { _ in "http://mirror" }
        #expect(list.held.hasRecovered("http://a") == false)
        #expect(list.ended.count == 4)
    }

    /// Reading continues when the first attempt of a slow probe has failed.
    @Test func probesKeepListsFromBeingReadUntilTheirFirstAnswer() {
        var list = HeldList(limit: 8)
        for number in 0..<7 { list.read(number, of: "http://a") }
        #expect(list.held.needsProbes && !list.held.awaitsProbes)
        let probes = list.held.takeProbes(using: &list.random)
        #expect(probes.count == 1 && list.held.awaitsProbes)
        list.held.attemptFailed(probes[0])
        #expect(!list.held.awaitsProbes)
        for number in 7..<30 { list.read(number, of: "http://a") }
        #expect(list.held.count == 8)
    }

    /// A host that was down needs no probe: any success releases its entries.
    @Test func aHostThatWasDownIsReleased() {
        var list = HeldList(limit: 8)
        for number in 0..<3 { list.read(number, of: "http://a", isAtFault: false) }
        for number in 3..<5 { list.read(number, of: "http://a") }
        #expect(list.held.contains(0) && list.held.contains(4) && !list.held.contains(5))
        #expect(list.held.release(host: "http://b").isEmpty)
        #expect(list.held.release(host: "http://a") == [0, 1, 2])
        #expect(list.held.removeAll().map(\.identifier) == [3, 4])
        #expect(list.held.isEmpty)
    }
}
