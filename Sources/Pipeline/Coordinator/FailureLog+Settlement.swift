package import CacheStorage
import EntryLifecycle
package import PrefetchModel
import Scheduling

extension FailureLog {
    /// Decides at the end of a run whether and until when a failure is blacklisted; nil when it
    /// does not count.
    static func settlement(
        of record: FailureRecord, outage: Outage?, _ ledger: Ledger, _ settings: FailureSettings
    ) -> Settlement? {
        let isExplained =
            outage.map {
                ledger.isExplained(
                    record.reason, httpStatus: record.httpStatus, host: record.host, by: $0)
            } ?? false
        let failureClass = FailurePolicy.failureClass(
            of: record.reason, httpStatus: record.httpStatus,
            blacklisting: settings.blacklistedStatuses(atHostIn: record.host))
        guard !isExplained, failureClass != .ours else { return nil }
        // Permanent failures are consecutive only for the same cause.
        let isSame =
            failureClass != .permanent
            || record.former.map {
                $0.reason == record.reason
                    && ($0.conditions == nil || $0.conditions == record.conditions)
            } ?? false
        let runs = FailurePolicy.nextRunsInARow(
            previous: isSame ? (record.streak.kind, record.streak.runsInARow) : nil,
            now: failureClass)
        let duration = FailurePolicy.blacklistDuration(
            confirmations: FailurePolicy.confirmations(
                failureClass, reason: record.reason, runsInARow: runs))
        let isHostDown =
            failureClass == .transient && !ledger.hasSuccess(at: record.host)
            && RetryPolicy.isRetried(record.reason, httpStatus: record.httpStatus)
        let end = duration.map {
            record.streak.lastFailedAt.advanced(
                by: isHostDown ? min($0, FailurePolicy.maximumDurationOfDownHost) : $0)
        }
        return (failureClass, runs, end, isHostDown)
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
        _ settings: FailureSettings, _ variants: VariantsOfFailure, at now: Timestamp
    ) {
        let entry = machine.entry
        let statuses = settings.blacklistedStatuses(atHostIn: entry.url.text)
        let failureClass = FailurePolicy.failureClass(
            of: reason, httpStatus: machine.httpStatus, blacklisting: statuses)
        let isHarmless = FailurePolicy.isKnown(
            of: reason, httpStatus: machine.httpStatus, blacklisting: statuses)
        guard isHarmless || failureClass != .ours else { return nil }
        let own = settings.at(hostIn: entry.listedURL.text)
        self.init(
            key: entry.key, url: entry.listedURL.withoutCredentials.text, host: entry.url.origin,
            reason: reason, httpStatus: machine.httpStatus, curlCode: machine.curlCode,
            message: message, attempts: machine.attempts,
            kind: isHarmless ? .transient : failureClass, failedAt: now,
            conditions: FailureConditions(of: reason) { setting in
                variants.failed.flatMap { own.value(of: setting, failed: $0) }
                    ?? own.value(
                        of: setting, url: entry.listedURL, extras: entry.extras,
                        variants: variants.line)
            }.text)
    }
}

extension FailureRecord {
    package func isBlacklisted(at now: Timestamp) -> Bool {
        FailurePolicy.isBlacklisted(
            blacklistedUntil: blacklistedUntil, lastFailedAt: streak.lastFailedAt, at: now)
    }

    /// Whether the failure may have been the host's, so that it ends with the host's next success.
    var isOfHost: Bool {
        hostWasDown && RetryPolicy.isRetried(reason, httpStatus: httpStatus)
    }

    var unrequestedEnd: (outcome: Outcome, reason: FailureReason?) {
        reason.isExclusion ? (.excluded, reason) : (.blacklisted, nil)
    }

    var blacklistMessage: String {
        if reason.isExclusion {
            return message + (blacklistedUntil.map { "; next look after \($0)" } ?? "")
        }
        let runs = streak.runsInARow > 1 ? " in \(streak.runsInARow) runs in a row" : ""
        let until = blacklistedUntil.map { "; next try after \($0)" } ?? ""
        return "failed with \(cause)\(runs)\(until)"
    }
}
