package import PrefetchModel

/// Finds the hosts that are at fault for the failures of their images.
///
/// A stored image is a witness: its URL was right. A host is at fault if at least
/// ``minimumStored`` of its stored images were requested or are blacklisted, and more than half of
/// these fail, in any way: a page of one server, 404s of the next one and time-outs are one fault.
/// So a maintenance page with status 200, or 404s after a broken deployment, blacklist nothing that
/// is stored.
///
/// The rule receives each requested entry once, at its end, and each entry that ends blacklisted.
/// O(1) for each entry; memory grows by about 24 bytes for each host, and twice that for a failing
/// one.
package struct HostFaultRule: Sendable {
    package static let minimumStored = 5
    /// Longer failures of an image are its own: the usual blacklist applies.
    package static let longestFault = FailurePolicy.maximumBlacklistDuration

    /// Entries of one host, and the part with stored images.
    struct EntryCounts: Hashable, Sendable {
        private(set) var all: UInt32 = 0
        private(set) var stored: UInt32 = 0
        private(set) var hasRequest = false

        mutating func count(isStored: Bool, isRequested: Bool = true) {
            hasRequest = hasRequest || isRequested
            // Saturates; no list has four billion lines.
            if all < .max { all += 1 }
            if isStored, stored < .max { stored += 1 }
        }
    }

    private var succeeded = FingerprintTable<EntryCounts>()
    private var failed = FingerprintTable<EntryCounts>()
    /// Failures of stored images.
    private var failedByReason = FingerprintTable<UInt32>()
    /// Hosts that may be at fault.
    private var suspects: Set<String> = []

    /// The most hosts that are reported; the verdict about a host has no limit.
    private static let maximumSuspects = 4096

    package init() {}

    package mutating func succeeded(host: String, isStored: Bool) {
        let place = HostFingerprint(host).bits
        let number = succeeded.insert(place, EntryCounts())
        succeeded[number].count(isStored: isStored)
    }

    /// Notes a requested entry that failed, or one that an earlier run's failure blacklists.
    package mutating func failed(
        host: String, reason: FailureReason, httpStatus: Int?, isStored: Bool,
        isRequested: Bool = true
    ) {
        // Faults of this machine or of the user's settings say nothing about the host.
        guard
            FailurePolicy.failureClass(of: reason, httpStatus: httpStatus) != .ours
                || FailurePolicy.isKnown(of: reason, httpStatus: httpStatus)
        else { return }
        let place = HostFingerprint(host).bits
        let number = failed.insert(place, EntryCounts())
        failed[number].count(isStored: isStored, isRequested: isRequested)
        guard isStored else { return }
        let ofReason = failedByReason.insert(OutageRule.place(place, reason), 0)
        if failedByReason[ofReason] < .max { failedByReason[ofReason] += 1 }
        if failed[number].stored > HostFaultRule.minimumStored / 2,
            suspects.count < HostFaultRule.maximumSuspects
        {
            suspects.insert(host)
        }
    }

    private func counts(of host: String) -> (failed: EntryCounts, succeeded: EntryCounts) {
        let place = HostFingerprint(host).bits
        return (failed[bits: place] ?? EntryCounts(), succeeded[bits: place] ?? EntryCounts())
    }

    /// Whether the failures of a host's stored images are its own.
    package func isAtFault(_ host: String) -> Bool {
        let (failed, succeeded) = counts(of: host)
        let asked = failed.stored + succeeded.stored
        return asked >= HostFaultRule.minimumStored && failed.stored > asked - failed.stored
    }

    /// Whether the fault that an earlier run found has ended: a probe has succeeded, or enough
    /// stored images were requested without it, and at least half of them are well. `isProbed` is
    /// nil for a host without held entries.
    package func hasRecovered(_ host: String, isProbed: Bool?, hasSuccess: Bool) -> Bool {
        let (failed, succeeded) = counts(of: host)
        let isWell =
            failed.stored + succeeded.stored >= HostFaultRule.minimumStored
            && !isAtFault(host)
        return isWell || isProbed ?? hasSuccess
    }

    /// Whether any entry of a host at fault was requested. Others may have recovered.
    package func hasRequest(_ host: String) -> Bool {
        let (failed, succeeded) = counts(of: host)
        return failed.hasRequest || succeeded.hasRequest
    }

    /// The hosts at fault with the most frequent reason, by name.
    package var faults: [(host: String, reason: FailureReason)] {
        suspects.filter(isAtFault).sorted().compactMap { host in
            let place = HostFingerprint(host).bits
            return FailureReason.allCases.lazy
                .compactMap { reason in
                    failedByReason[bits: OutageRule.place(place, reason)].map { ($0, reason) }
                }
                .max { $0.0 < $1.0 }.map { (host, $0.1) }
        }
    }

    /// Returns how many of a host's listed entries failed, and how many are listed; nil if at most
    /// half failed.
    ///
    /// Fresh entries are listed, too. `storedListed` returns the number of stored images of a host
    /// that the lists name, or any number above `limit`.
    package func share(
        of host: String, storedListed: (_ host: String, _ limit: Int) throws -> Int
    ) rethrows -> (failures: Int, listed: Int)? {
        let (failed, succeeded) = counts(of: host)
        let failures = Int(failed.all)
        let asked = failures + Int(succeeded.all)
        guard failures > asked - failures else { return nil }
        let storedAsked = Int(failed.stored) + Int(succeeded.stored)
        let stored = try storedListed(host, storedAsked + failures)
        let listed = asked + max(0, stored - storedAsked)
        return failures > listed - failures ? (failures, listed) : nil
    }
}
