package import PrefetchModel

/// Finds the failures of a run that must not block, since an outage explains them.
///
/// "When in one run more than half of at least 20 asked entries fail for one reason other than 404
/// or 410 and no entry of that host succeeds, nothing of it is recorded as blocking." App-side
/// loaders are full of reports where a captive portal or a broken proxy blocked everything for
/// good; 404 and 410 are left out, since a list of removed images gives just that. The other
/// statuses are one reason: a broken proxy answers 400 to one request and 405 to the next.
///
/// A value type that hears how each entry of the run ended which was asked (at least one transfer
/// was begun), once per entry and not per attempt; entries that were cancelled, or needed no
/// request, are not told of. The host is scheme, host and port of the entry's own URL, as one
/// text: through a captive portal all entries end up at the portal's host, and a redirect's target
/// must not speak for the hosts that never answered.
///
/// What is held back is no evidence against a URL. Besides not blocking, such a failure should not
/// be counted as a run in a row either: five daily runs behind a captive portal would else have the
/// first true failure after them block for 30 days.
///
/// Each entry costs O(1). Memory grows with hosts, by some 24 bytes each, and with their reasons.
package struct OutageRule: Sendable {
    /// In runs with fewer asked entries nothing counts as an outage.
    package static let minimumAsked = 20

    /// How the entries of each host ended, see ``Ends``.
    private var hosts = FingerprintTable<UInt32>()
    /// How many failed for other reasons than the host's first one, by host and reason.
    private var otherReasons = FingerprintTable<UInt32>()
    /// Hosts that failed, to name them, as long as there are few.
    private var names: [HostFingerprint: String] = [:]
    /// Failures that may be part of an outage, on all hosts.
    private var failures: [FailureReason: Int] = [:]
    private var asked = 0

    private static let maximumNames = 64

    /// What is known of a host, in 32 bits.
    private struct Ends {
        var value: UInt32

        static let success = Ends(value: 1 << 31)
        private static let countBits: UInt32 = 24
        private static let maximumFailures: UInt32 = 1 << countBits - 1

        var hasSuccess: Bool { value == Ends.success.value }
        /// The reason of the host's first failure, and how often it failed so.
        var first: (reason: Int, count: Int) {
            (Int(value >> Ends.countBits), Int(value & Ends.maximumFailures))
        }

        init(value: UInt32) {
            self.value = value
        }

        init(reason: Int) {
            value = UInt32(reason) << Ends.countBits | 1
        }

        mutating func countFirst() {
            // Beyond 16 million failures of one host their number is a matter of words.
            if value & Ends.maximumFailures < Ends.maximumFailures { value += 1 }
        }
    }

    package init() {}

    /// An asked entry of the host ended well: it was stored, or its stored copy confirmed.
    package mutating func succeeded(host: String) {
        asked += 1
        let fingerprint = HostFingerprint(host)
        hosts.set(fingerprint.bits, to: Ends.success.value)
        if !names.isEmpty { names[fingerprint] = nil }
    }

    /// An asked entry of the host ended in `failed`, after all its attempts. The status counts
    /// only for the reason `http-status`.
    package mutating func failed(host: String, reason: FailureReason, httpStatus: Int?) {
        asked += 1
        guard OutageRule.mayBeOutage(reason, httpStatus: httpStatus) else { return }
        failures[reason, default: 0] += 1
        let fingerprint = HostFingerprint(host)
        guard let value = hosts[bits: fingerprint.bits] else {
            hosts.set(fingerprint.bits, to: Ends(reason: reason.index).value)
            if names.count < OutageRule.maximumNames { names[fingerprint] = host }
            return
        }
        var ends = Ends(value: value)
        // Such a host has no part in an outage.
        guard !ends.hasSuccess else { return }
        if ends.first.reason == reason.index {
            ends.countFirst()
            hosts.set(fingerprint.bits, to: ends.value)
        } else {
            let place = OutageRule.place(fingerprint.bits, reason)
            let count = otherReasons[bits: place] ?? 0
            otherReasons.set(place, to: count == .max ? count : count + 1)
        }
    }

    private static func mayBeOutage(_ reason: FailureReason, httpStatus: Int?) -> Bool {
        // Failures that are ours block nothing, so there is nothing to hold back, and a full disk or a
        // wrong password is not to be told as an outage.
        Outage.canInclude(reason, httpStatus: httpStatus)
            && FailurePolicy.failureClass(of: reason, httpStatus: httpStatus) != .ours
    }

    /// A host's place in ``otherReasons``: an odd multiplier tells the reasons apart.
    private static func place(_ host: UInt64, _ reason: FailureReason) -> UInt64 {
        host &+ UInt64(reason.index + 1) &* 0x9E37_79B9_7F4A_7C15
    }

    /// How many of a host's entries failed so, if none succeeded.
    private func failures(of host: UInt64, _ ends: Ends, _ reason: FailureReason) -> Int {
        guard !ends.hasSuccess else { return 0 }
        if ends.first.reason == reason.index { return ends.first.count }
        return Int(otherReasons[bits: OutageRule.place(host, reason)] ?? 0)
    }

    /// What the run's failures amount to, asked for at its end: one outage or none, since only
    /// one reason can make up more than half of the entries.
    ///
    /// O(h) in the hosts.
    package func outages() -> [Outage] {
        guard asked >= OutageRule.minimumAsked,
            let (reason, count) = failures.first(where: { $0.value > asked - $0.value })
        else { return [] }
        var heldBack = 0
        var hostCount = 0
        hosts.forEach { host, value in
            let failures = failures(of: host, Ends(value: value), reason)
            guard failures > 0 else { return }
            heldBack += failures
            hostCount += 1
        }
        // Where every host that failed so had a success too, all of them block.
        guard hostCount > 0 else { return [] }
        var known: [String] = []
        for (fingerprint, name) in names {
            guard let value = hosts[bits: fingerprint.bits] else { continue }
            if failures(of: fingerprint.bits, Ends(value: value), reason) > 0 {
                known.append(name)
            }
        }
        return [
            Outage(
                reason: reason, failures: count, heldBack: heldBack, asked: asked,
                hostCount: hostCount, hosts: known.count == hostCount ? known.sorted() : [])
        ]
    }

    /// Whether a failure at `host` is part of the outage that was found. O(1).
    package func explains(
        _ reason: FailureReason, httpStatus: Int?, host: String, by outage: Outage
    ) -> Bool {
        guard reason == outage.reason, Outage.canInclude(reason, httpStatus: httpStatus) else {
            return false
        }
        let host = HostFingerprint(host).bits
        return hosts[bits: host].map { failures(of: host, Ends(value: $0), reason) > 0 } ?? false
    }
}
