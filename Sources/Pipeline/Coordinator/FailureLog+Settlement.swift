package import CacheStorage
import EntryLifecycle
package import PrefetchModel
import Scheduling

extension FailureLog {
    /// Decides at the end of a run whether and until when a failure is blacklisted; nil when it
    /// does not count.
    static func settlement(
        of record: FailureRecord, outage: Outage?, _ ledger: Ledger, hasRecovered: Bool,
        _ settings: FailureSettings
    ) -> Settlement? {
        let isInOutage =
            outage.map {
                ledger.isExplained(
                    record.reason, httpStatus: record.httpStatus, host: record.host, by: $0)
            } ?? false
        return FailurePolicy.settlement(
            of: UnsettledFailure(record),
            at: HostVerdict(
                isInOutage: isInOutage, isAtFault: ledger.faults.isAtFault(record.host),
                hasSuccess: ledger.hasSuccess(at: record.host), hasRecovered: hasRecovered),
            blacklisting: settings.blacklistedStatuses(atHostIn: record.host)
        ).map { ($0.kind, $0.runsInARow, $0.blacklistedUntil, $0.host) }
    }
}

extension UnsettledFailure {
    fileprivate init(_ record: FailureRecord) {
        self.init(
            reason: record.reason, httpStatus: record.httpStatus, isStored: record.isStored,
            firstFailedAt: record.streak.firstFailedAt, lastFailedAt: record.streak.lastFailedAt,
            streak: (record.streak.kind, record.streak.runsInARow),
            former: record.former.map {
                FormerCause(
                    reason: $0.reason, httpStatus: $0.httpStatus, host: $0.hostMark,
                    hasSameConditions: $0.conditions == nil || $0.conditions == record.conditions)
            })
    }
}

extension CacheCatalog {
    /// The hosts that were down in the last run, as people name them: all or most of their listed
    /// images failed.
    package func downHosts(
        at now: Timestamp
    ) throws(StorageError) -> [(place: String, reason: FailureReason, since: Timestamp)] {
        OngoingOutages(text: try outages() ?? "", at: now).outages.filter { $0.extent != .part }
            .map { ($0.place, $0.reason, $0.reportedAt) }
    }
}

struct VariantsOfFailure {
    let line: VariantSet?
    /// The failed variants, if the entry makes the variants of other lines too.
    let failed: [RequestedVariant]?
}

extension FailureRecord {
    init?(
        _ machine: EntryMachine, _ reason: FailureReason, message: String,
        _ settings: FailureSettings, _ variants: VariantsOfFailure, isHarmless: Bool,
        at now: Timestamp
    ) {
        let entry = machine.entry
        let statuses = settings.blacklistedStatuses(atHostIn: entry.url.text)
        let failureClass = FailurePolicy.failureClass(
            of: reason, httpStatus: machine.httpStatus, blacklisting: statuses)
        guard isHarmless || failureClass != .ours else { return nil }
        let own = settings.at(hostIn: entry.listedURL.text)
        self.init(
            key: entry.key, url: entry.listedURL.withoutCredentials.text, host: entry.url.origin,
            reason: reason, httpStatus: machine.httpStatus, curlCode: machine.curlCode,
            message: message, attempts: machine.attempts,
            kind: failureClass == .ours ? .transient : failureClass, failedAt: now,
            conditions: FailureConditions(of: reason) { setting in
                variants.failed.flatMap { own.value(of: setting, failed: $0) }
                    ?? own.value(
                        of: setting, url: entry.listedURL, extras: entry.extras,
                        variants: variants.line)
            }.text)
    }
}

extension FailureRecord {
    /// A failure of a killed run blacklists nothing. Its end is the former failure's, and that run
    /// may have requested the URL because its host had recovered.
    package func isBlacklisted(at now: Timestamp) -> Bool {
        isSettled
            && FailurePolicy.isBlacklisted(
                blacklistedUntil: blacklistedUntil, lastFailedAt: streak.lastFailedAt, at: now)
    }

    /// Whether the failure may have been the host's, so that it ends when the host responds again.
    var isOfHost: Bool {
        isOfFault || hostMark != nil && RetryPolicy.isRetried(reason, httpStatus: httpStatus)
    }

    /// Whether most stored images of its host had such failures, so that one request in each run
    /// tells when that has ended.
    var isOfFault: Bool { hostMark == .fault && isStored }

    var unrequestedEnd: (outcome: Outcome, reason: FailureReason?) {
        reason.isExclusion ? (.excluded, reason) : (.blacklisted, nil)
    }

    var blacklistMessage: String {
        if reason.isExclusion {
            return message + (blacklistedUntil.map { "; next look after \($0)" } ?? "")
        }
        if isOfFault {
            return
                "failed with \(cause), like most stored images of \(host); a run requests one of "
                + "them, and the others when that succeeds"
        }
        let runs = streak.runsInARow > 1 ? " in \(streak.runsInARow) runs in a row" : ""
        let until = blacklistedUntil.map { "; next try after \($0)" } ?? ""
        return "failed with \(cause)\(runs)\(until)"
    }
}
