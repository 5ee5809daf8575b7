/// Decides which blacklisted entries wait for their host, which of them are requested as probes,
/// and when the others follow. They are in no queue: if their host responds in this run, they are
/// requested after all.
///
/// A host that was down has returned with any success. A host at fault may serve some images, so
/// one of the failing ones is requested as a probe in each run, chosen at random: while at least
/// half of them are well, k runs miss the recovery with a probability of 2⁻ᵏ, wherever in the list
/// the others are. After a failed probe as many further entries end as may wait, before one more
/// probe is taken of the next ones.
///
/// At most ``limit`` entries wait. Each host has its share of them, and a random part of its
/// entries beyond it waits, so that a large host hides no small one. The others end; if their host
/// recovers, they are requested in the next run.
package struct HeldEntries<Value> {
    package struct Ended {
        package let identifier: Int
        package let host: String
        package let value: Value
    }

    package enum Admission {
        /// It waits, and the other entry ends.
        case waits(insteadOf: Ended?)
        case ends
    }

    /// The consequences of an entry's end.
    package enum Consequence {
        case none
        /// The host has recovered: these are requested.
        case released([Int])
        /// The probe has failed: these end.
        case ended([Ended])
    }

    private struct Group: Hashable {
        let host: String
        let isAtFault: Bool
    }

    private enum ProbeState {
        case none, running, failed, succeeded
    }

    private struct HeldHost {
        var waiting: [Int] = []
        /// The entries that were to wait, since the last probe.
        var seen = 0
        var probe = ProbeState.none
    }

    private let limit: Int
    private var entries: [Int: (group: Group, place: Int, value: Value)] = [:]
    private var hosts: [Group: HeldHost] = [:]
    /// The running probes, and whether the first attempt is still unanswered.
    private var probes: [Int: (group: Group, isUnanswered: Bool)] = [:]
    private var mayNeedProbe = false

    package init(limit: Int = 10_000) {
        self.limit = limit
    }

    package var isEmpty: Bool { entries.isEmpty }
    package var count: Int { entries.count }
    private var isFull: Bool { count >= limit }
    /// Whether probes are requested before all lists have been read.
    package var needsProbes: Bool { count >= limit / 2 }
    /// Whether further entries might end before the probes have been answered.
    package var awaitsProbes: Bool { needsProbes && probes.contains { $0.value.isUnanswered } }

    package func contains(_ identifier: Int) -> Bool { entries[identifier] != nil }

    /// Whether a host at fault has recovered; nil for a host without held entries.
    package func hasRecovered(_ host: String) -> Bool? {
        hosts[Group(host: host, isAtFault: true)].map { $0.probe == .succeeded }
    }

    // MARK: Waiting

    /// Decides on the next entry of a host; one that waits must be passed to
    /// ``hold(_:_:at:isAtFault:)``.
    package mutating func admission(
        at host: String, isAtFault: Bool, using random: inout some RandomNumberGenerator
    ) -> Admission {
        let group = Group(host: host, isAtFault: isAtFault)
        hosts[group, default: HeldHost()].seen += 1
        // A long list is not judged by its beginning: a further probe follows.
        if hosts[group]?.probe == .failed, hosts[group]?.seen == limit { hosts[group] = HeldHost() }
        guard let own = hosts[group], own.probe != .failed else { return .ends }
        if !isFull { return .waits(insteadOf: nil) }
        let groups = hosts.count { !$0.value.waiting.isEmpty } + (own.waiting.isEmpty ? 1 : 0)
        if own.waiting.count < limit / groups {
            let largest = hosts.max { $0.value.waiting.count < $1.value.waiting.count }
            return .waits(
                insteadOf: largest?.value.waiting.randomElement(using: &random)
                    .flatMap { remove($0) })
        }
        // Any entry of the host is as likely as any other to wait.
        let place = Int.random(in: 0..<own.seen, using: &random)
        guard place < own.waiting.count else { return .ends }
        return .waits(insteadOf: remove(own.waiting[place]))
    }

    package mutating func hold(
        _ identifier: Int, _ value: Value, at host: String, isAtFault: Bool
    ) {
        let group = Group(host: host, isAtFault: isAtFault)
        let place = hosts[group]?.waiting.count ?? 0
        hosts[group, default: HeldHost()].waiting.append(identifier)
        entries[identifier] = (group, place, value)
        if isAtFault { mayNeedProbe = true }
    }

    private mutating func remove(_ identifier: Int) -> Ended? {
        guard let (group, place, value) = entries.removeValue(forKey: identifier),
            let last = hosts[group]?.waiting.popLast()
        else { return nil }
        if last != identifier {
            hosts[group]?.waiting[place] = last
            entries[last]?.place = place
        }
        return Ended(identifier: identifier, host: group.host, value: value)
    }

    private mutating func removeAll(of group: Group) -> [Ended] {
        let waiting = hosts[group]?.waiting.sorted() ?? []
        hosts[group]?.waiting = []
        return waiting.compactMap { identifier in
            entries.removeValue(forKey: identifier).map {
                Ended(identifier: identifier, host: group.host, value: $0.value)
            }
        }
    }

    // MARK: Probes

    /// Removes one entry of each host at fault that waits for a probe.
    package mutating func takeProbes(using random: inout some RandomNumberGenerator) -> [Int] {
        guard mayNeedProbe else { return [] }
        mayNeedProbe = false
        var taken: [Int] = []
        for (group, host) in hosts.sorted(by: { $0.key.host < $1.key.host })
        where group.isAtFault && host.probe == .none {
            guard let probe = host.waiting.randomElement(using: &random), remove(probe) != nil
            else { continue }
            hosts[group]?.probe = .running
            probes[probe] = (group, isUnanswered: true)
            taken.append(probe)
        }
        return taken
    }

    /// Notes that an attempt of an entry has failed, and that another one follows later.
    package mutating func attemptFailed(_ identifier: Int) {
        probes[identifier]?.isUnanswered = false
    }

    /// Notes the end of an entry. `host` is that which served it; nil for a failure. The success of
    /// a mirror says nothing about the host of a probe.
    package mutating func ended(_ identifier: Int, servedBy host: String?) -> Consequence {
        guard let (group, _) = probes.removeValue(forKey: identifier) else { return .none }
        let isSuccess = group.host == host
        hosts[group]?.probe = isSuccess ? .succeeded : .failed
        hosts[group]?.seen = 0
        let all = removeAll(of: group)
        return isSuccess ? .released(all.map(\.identifier)) : .ended(all)
    }

    /// Removes the entries of a host that was down and has responded.
    package mutating func release(host: String) -> [Int] {
        removeAll(of: Group(host: host, isAtFault: false)).map(\.identifier)
    }

    /// Removes all entries in their order; the verdicts about hosts at fault stay.
    package mutating func removeAll() -> [Ended] {
        hosts.keys.flatMap { removeAll(of: $0) }.sorted { $0.identifier < $1.identifier }
    }
}
