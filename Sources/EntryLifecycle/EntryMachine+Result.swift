package import PrefetchModel

extension EntryMachine {
    /// The report of the entry.
    package func result(_ end: EntryEnd) -> EntryResult {
        let history = history
        var result = EntryResult(
            manifest: entry.manifest, line: entry.line, url: entry.url.text, key: entry.key,
            outcome: end.outcome, httpStatus: history.httpStatus, attempts: history.attempts,
            bytesReceived: history.bytesReceived, stages: history.stages)
        if case .turn(let position) = history.beginning {
            result.start = position
            result.exchange = exchange(history)
        }
        switch end {
        case .stored(_, let stored):
            result.message = stored.remark.isEmpty ? nil : stored.remark
            result.stored = stored.variants.first?.image
            result.expiresAt = stored.expiresAt
            result.placeholder = stored.placeholder
        case .failed(let failed):
            result.reason = failed.failure.reason
            result.message = failed.failure.message
            describeWhatStays(failed, &result)
        case .excluded(let message, let reason):
            result.message = message
            result.reason = reason
            // It may have been stored under another rule.
            describeKeptCopy(&result)
        case .cancelled:
            break
        }
        return result
    }

    /// libcurl's code of the last transfer, for the row of a failure.
    package var curlCode: Int? {
        if case .failure(_, let code) = history.lastResult { code } else { nil }
    }

    /// The findings of the look-up; empty without one.
    package var findings: Findings { journey.findings }

    private func exchange(_ history: History) -> EntryResult.Exchange {
        let route = journey.route
        let target = route.target.withoutCredentials
        let contentType: String? =
            if case .response(_, let type) = history.lastResult { type } else { nil }
        return EntryResult.Exchange(
            finalURL: target == entry.url.withoutCredentials ? nil : target.text,
            contentType: contentType, redirects: route.redirects)
    }

    /// Reports the old copy, which a failed refresh keeps.
    private func describeWhatStays(_ failed: EntryEnd.Failed, _ result: inout EntryResult) {
        guard failed.stored.variants.isEmpty else {
            result.stored = failed.stored.variants.first?.image
            result.expiresAt = failed.stored.expiresAt
            result.placeholder = failed.stored.placeholder
            return
        }
        describeKeptCopy(&result)
    }

    private func describeKeptCopy(_ result: inout EntryResult) {
        guard let copy = findings.copy, let kept = copy.kept.first ?? nil else { return }
        result.message = "\(result.message ?? ""); the copy of \(copy.fetchedAt) stays"
        result.stored = kept.image
        result.expiresAt = copy.expiresAt
    }
}

extension EntryEnd {
    package var outcome: Outcome {
        switch self {
        case .stored(let outcome, _): outcome
        case .failed: .failed
        case .excluded: .excluded
        case .cancelled: .cancelled
        }
    }

    /// The reason for a failure or an exclusion; nil for other ends.
    package var reason: FailureReason? {
        switch self {
        case .failed(let failed): failed.failure.reason
        case .excluded(_, let reason): reason
        case .stored, .cancelled: nil
        }
    }
}
