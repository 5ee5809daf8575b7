package import PrefetchModel

extension EntryMachine {
    /// The end of the entry for a line with the variants at these positions.
    ///
    /// `described` adapts the failure of a position.
    package func end(
        _ end: EntryEnd, of positions: [Int], described: (Failure, Int) -> Failure
    ) -> EntryEnd {
        func own(_ stored: EntryEnd.Stored) -> EntryEnd.Stored {
            var own = stored
            own.variants = positions.map { position in
                guard case .failed(let failure) = stored.variants[position] else {
                    return stored.variants[position]
                }
                return .failed(described(failure, position))
            }
            return own
        }
        switch end {
        case .stored(let outcome, let stored) where !stored.variants.isEmpty:
            return .stored(outcome, own(stored))
        case .failed(let failed) where !failed.stored.variants.isEmpty:
            let stored = own(failed.stored)
            for case .failed(let failure) in stored.variants {
                return .failed(
                    EntryEnd.Failed(failure: failure, blame: failed.blame, stored: stored))
            }
            let outcome: Outcome =
                failed.blame != .ours ? .downloaded : httpStatus == 304 ? .revalidated : .derived
            return .stored(outcome, stored)
        case .stored, .failed, .excluded, .requested, .cancelled:
            return end
        }
    }

    /// The report of the entry; `primary` is the position of its line's first variant.
    package func result(_ end: EntryEnd, primary: Int = 0) -> EntryResult {
        let history = history
        var result = EntryResult(
            manifest: entry.manifest, line: entry.line, columns: entry.extras?.columns,
            url: entry.listedURL.text, key: entry.key, outcome: end.outcome)
        result.httpStatus = history.httpStatus
        result.attempts = history.attempts
        result.bytesReceived = history.bytesReceived
        result.stages = history.stages
        if let start = history.start {
            result.start = start
            result.exchange = exchange
        }
        switch end {
        case .stored(_, let stored):
            result.message = stored.remark.isEmpty ? nil : stored.remark
            result.stored = stored.variants.first?.image
            result.expiresAt = stored.expiresAt
            result.placeholder = stored.placeholder
            result.warning = stored.warning
            if result.outcome == .downloaded {
                result.replaced = replaced(by: result.stored, at: primary)
            }
        case .failed(let failed):
            result.reason = failed.failure.reason
            result.message = failed.failure.message
            describeWhatStays(failed, primary, &result)
        case .excluded(let message, let reason):
            result.message = message
            result.reason = reason
            // It may have been stored under another rule.
            describeKeptCopy(primary, &result)
        case .requested, .cancelled:
            break
        }
        return result
    }

    /// libcurl's code of the last transfer, for the row of a failure.
    package var curlCode: Int? {
        if case .failure(_, let code) = history.lastResult { code } else { nil }
    }

    package var findings: Findings { journey.findings }

    /// The stored copy of a variant, if the new image has other bytes.
    private func replaced(by image: StoredImage?, at position: Int) -> ReplacedImage? {
        guard let image, let copy = findings.copy, copy.kept.indices.contains(position),
            let old = copy.kept[position]?.image, old.digest != image.digest
        else { return nil }
        return ReplacedImage(fetchedAt: copy.fetchedAt, image: old, thumbHash: copy.thumbHash)
    }

    private var exchange: EntryResult.Exchange {
        let (history, route) = (history, journey.route)
        let target = route.target.withoutCredentials
        var exchange = EntryResult.Exchange()
        if target != entry.listedURL.withoutCredentials { exchange.finalURL = target.text }
        if case .response(_, let type) = history.lastResult { exchange.contentType = type }
        exchange.redirects = route.redirects
        exchange.connection = history.connection
        exchange.cacheStatus = history.cacheStatus
        return exchange
    }

    private func describeWhatStays(
        _ failed: EntryEnd.Failed, _ primary: Int, _ result: inout EntryResult
    ) {
        guard failed.stored.variants.isEmpty else {
            result.stored = failed.stored.variants.first?.image
            result.expiresAt = failed.stored.expiresAt
            result.placeholder = failed.stored.placeholder
            result.warning = failed.stored.warning
            return
        }
        describeKeptCopy(primary, &result)
    }

    private func describeKeptCopy(_ primary: Int, _ result: inout EntryResult) {
        guard let copy = findings.copy, copy.kept.indices.contains(primary),
            let kept = copy.kept[primary]
        else { return }
        result.message = "\(result.message ?? ""); the copy of \(copy.fetchedAt) stays"
        result.stored = kept.image
        result.expiresAt = copy.validation.expiresAt
    }
}

extension EntryEnd {
    package var outcome: Outcome {
        switch self {
        case .stored(let outcome, _): outcome
        case .failed: .failed
        case .excluded: .excluded
        case .requested: .requested
        case .cancelled: .cancelled
        }
    }

    package var reason: FailureReason? {
        switch self {
        case .failed(let failed): failed.failure.reason
        case .excluded(_, let reason): reason
        case .stored, .requested, .cancelled: nil
        }
    }
}
