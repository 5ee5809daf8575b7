package import PrefetchModel

/// Finds the failures of a run that an outage explains, and which therefore must not be
/// blacklisted.
///
/// A reason is an outage if at least 20 entries were requested and more than half of them failed
/// for it. It explains failures on hosts without a success only. Captive portals and broken proxies
/// would otherwise blacklist whole lists; issue trackers of image loaders have many such reports.
/// 404 and 410 are excluded, since a list of removed images fails in the same way. All other
/// statuses count as one reason: a broken proxy sends 400 to one request and 405 to the next.
///
/// The rule receives the outcome of each requested entry (at least one transfer began), once per
/// entry and not per attempt. Cancelled entries and entries without a request do not count. The
/// host is the scheme, host and port of the entry's own URL: a captive portal redirects all entries
/// to its own host, which says nothing about hosts that never responded.
///
/// An explained failure does not count as a failed run either. Otherwise the first real failure
/// after five daily runs behind a captive portal would be blacklisted for 30 days.
///
/// O(1) for each entry. Memory grows by about 24 bytes for each host, and for each further reason
/// of a host.
package struct OutageRule: Sendable {
    package static let minimumAsked = 20

    /// The outcomes of each host's entries, see ``Ends``.
    private var hosts = FingerprintTable<UInt32>()
    /// Failures for other reasons than the host's first one, by host and reason.
    private var otherReasons = FingerprintTable<UInt32>()
    private var names: [HostFingerprint: String] = [:]
    /// Failures that may be part of an outage, on all hosts.
    private var failures: [FailureReason: Int] = [:]
    private var asked = 0

    private static let maximumNames = 64

    /// The outcomes of one host, in 32 bits.
    private struct Ends {
        var value: UInt32

        static let success = Ends(value: 1 << 31)
        private static let countBits: UInt32 = 24
        private static let maximumFailures: UInt32 = 1 << countBits - 1

        var hasSuccess: Bool { value == Ends.success.value }
        /// The reason of the host's first failure, and the number of failures for it.
        var first: (reason: Int, count: Int) {
            (Int(value >> Ends.countBits), Int(value & Ends.maximumFailures))
        }

        static func first(reason: Int) -> Ends {
            Ends(value: UInt32(reason) << Ends.countBits | 1)
        }

        mutating func countFirst() {
            // Saturates at 16 million failures of one host; the number only appears in messages.
            if value & Ends.maximumFailures < Ends.maximumFailures { value += 1 }
        }
    }

    package init() {}

    /// Notes that a requested entry of the host succeeded: it was stored, or its stored copy
    /// validated.
    package mutating func succeeded(host: String) {
        asked += 1
        let fingerprint = HostFingerprint(host)
        hosts.set(fingerprint.bits, to: Ends.success.value)
        if !names.isEmpty { names[fingerprint] = nil }
    }

    /// Notes that a requested entry of the host failed after all its attempts. The status counts
    /// only for the reason `http-status`.
    package mutating func failed(host: String, reason: FailureReason, httpStatus: Int?) {
        asked += 1
        guard OutageRule.mayBeOutage(reason, httpStatus: httpStatus) else { return }
        failures[reason, default: 0] += 1
        let fingerprint = HostFingerprint(host)
        guard let value = hosts[bits: fingerprint.bits] else {
            hosts.set(fingerprint.bits, to: Ends.first(reason: reason.index).value)
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
        // Failures of the class `ours` are not blacklisted, and a full disk or a wrong password is
        // not an outage.
        Outage.canInclude(reason, httpStatus: httpStatus)
            && FailurePolicy.failureClass(of: reason, httpStatus: httpStatus) != .ours
    }

    /// Returns a host's fingerprint for one reason: an odd multiplier separates the reasons.
    static func place(_ host: UInt64, _ reason: FailureReason) -> UInt64 {
        host &+ UInt64(reason.index + 1) &* 0x9E37_79B9_7F4A_7C15
    }

    /// Returns how many of a host's entries failed for a reason, if none succeeded.
    private func failures(of host: UInt64, _ ends: Ends, _ reason: FailureReason) -> Int {
        guard !ends.hasSuccess else { return 0 }
        if ends.first.reason == reason.index { return ends.first.count }
        return Int(otherReasons[bits: OutageRule.place(host, reason)] ?? 0)
    }

    /// Returns the outage of the run, if any, at its end. Only one reason can account for more than
    /// half of the entries.
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
        // Every host that failed so had a success too, so all failures count.
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

    /// Whether a requested entry succeeded at a host; at any host for nil.
    package func hasSuccess(at host: String?) -> Bool {
        if let host {
            let value = hosts[bits: HostFingerprint(host).bits]
            return value.map { Ends(value: $0).hasSuccess } ?? false
        }
        var hasSuccess = false
        hosts.forEach { _, value in hasSuccess = hasSuccess || Ends(value: value).hasSuccess }
        return hasSuccess
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
