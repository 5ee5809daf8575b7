import CacheStorage
import PrefetchModel
import Scheduling

extension RunCoordinator {
    /// Remembers how an entry failed that was asked for, and says what stays of it.
    func remember(_ entry: PendingEntry, _ reason: FailureReason, _ result: inout EntryResult) {
        guard let progress = entry.progress else { return }
        if let copy = progress.copy, let image = progress.kept {
            let text = "the copy of \(copy.fetchedAt) stays"
            result.message = result.message.map { "\($0); \(text)" } ?? text
            result.stored = image
            result.expiresAt = copy.expiresAt
        }
        guard progress.start != nil else { return }
        let host = entry.url.origin
        guard !progress.hasFailedToDerive else {
            // The origin has confirmed the original; what came then is ours.
            outageRule.succeeded(host: host)
            return
        }
        outageRule.failed(host: host, reason: reason, httpStatus: progress.httpStatus)
        let failureClass = FailurePolicy.failureClass(
            of: reason, httpStatus: progress.httpStatus)
        guard let kind = FailureRecord.Kind(rawValue: failureClass.rawValue), fatal == nil,
            let stages = runningStages()
        else { return }
        let record = FailureRecord(
            key: entry.key, url: entry.url.withoutCredentials.text,
            host: host, reason: reason, httpStatus: progress.httpStatus,
            curlCode: progress.curlCode, message: result.message ?? "",
            attempts: result.attempts, kind: kind, failedAt: wallClock(),
            conditions: FailureConditions(of: reason) {
                facts.value(of: $0, url: entry.url, extras: entry.extras)
            }.text)
        // Before the row says what this run has found.
        result.isKnown = isKnown(record)
        stages.writer.enqueue(.failure(record), token: nil)
    }

    /// Decides at the end of a run which of its failures block, and until when.
    func settleFailures(of run: Int64, outage: Outage?) throws(StorageError) {
        guard stages != nil else { return }
        try cache.failures.settle(run: run) { record in
            let isExplained =
                outage.map {
                    outageRule.explains(
                        record.reason, httpStatus: record.httpStatus, host: record.host, by: $0)
                } ?? false
            let failureClass = FailurePolicy.failureClass(
                of: record.reason, httpStatus: record.httpStatus)
            guard !isExplained, let kind = FailureRecord.Kind(rawValue: failureClass.rawValue)
            else { return nil }
            // What fails for good fails in a row when it is for the same cause.
            let isSame =
                failureClass != .permanent
                || record.former.map {
                    $0.reason == record.reason
                        && ($0.conditions == nil || $0.conditions == record.conditions)
                } ?? false
            let runs = FailurePolicy.nextRunsInARow(
                previous: FailureClass(rawValue: record.kind.rawValue).flatMap {
                    isSame ? ($0, record.runsInARow) : nil
                }, now: failureClass)
            let duration = FailurePolicy.blockDuration(
                confirmations: FailurePolicy.confirmations(
                    failureClass, reason: record.reason, runsInARow: runs))
            return FailureLog.Settlement(
                kind: kind, runsInARow: runs,
                blockedUntil: duration.map { record.lastFailedAt.advanced(by: $0) })
        }
    }
}
