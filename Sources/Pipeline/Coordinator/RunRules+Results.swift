import EntryLifecycle
import PrefetchModel

extension RunRules {
    /// Returns the report of a line with its end. Its `variants` have these positions among those
    /// of the entry.
    func result(
        of machine: EntryMachine, _ end: EntryEnd, _ variants: VariantSet, at positions: [Int]
    ) -> EntryResult {
        var result = machine.result(end, primary: positions.first ?? 0)
        guard reportsVariants(variants) else { return result }
        switch end {
        case .stored(let outcome, let stored):
            result.variants = zip(variants, stored.variants).map { VariantResult($0, $1, outcome) }
        case .failed(let failed) where !failed.stored.variants.isEmpty:
            result.variants = zip(variants, failed.stored.variants).map {
                VariantResult($0, $1, failed.blame == .ours ? .derived : .downloaded)
            }
        case .failed(let failed):
            let kept = machine.keptImages
            result.variants = zip(variants, positions).map { variant, position in
                VariantResult(
                    variant, outcome: .failed, reason: failed.failure.reason,
                    stored: position < kept.count ? kept[position] : nil)
            }
        case .excluded, .requested, .cancelled:
            result.variants = variants.map { VariantResult($0, outcome: end.outcome) }
        }
        return result
    }

    func result(
        of entry: RawEntry, _ outcome: Outcome, reason: FailureReason? = nil,
        message: String? = nil, expiresAt: Timestamp? = nil
    ) -> EntryResult {
        var result = EntryResult(
            manifest: entry.manifest, line: entry.record.line, columns: entry.extras?.columns,
            url: entry.url, key: entry.key, outcome: outcome)
        result.reason = reason
        result.message = message
        result.stored = entry.images.first ?? nil
        result.expiresAt = expiresAt
        let variants = variants(of: entry.extras)
        if reportsVariants(variants) {
            result.variants = variants.enumerated().map { position, variant in
                VariantResult(
                    variant, outcome: outcome, reason: reason,
                    stored: position < entry.images.count ? entry.images[position] : nil)
            }
        }
        return result
    }

    /// Whether the other fields of a result leave something open.
    private func reportsVariants(_ variants: VariantSet) -> Bool {
        variants.count > 1 || variants.main == nil
    }
}

extension VariantResult {
    fileprivate init(_ variant: RequestedVariant, _ end: VariantEnd, _ outcome: Outcome) {
        switch end {
        case .made(let image):
            self.init(variant, outcome: outcome == .revalidated ? .derived : outcome, stored: image)
        case .kept(let image):
            self.init(
                variant, outcome: outcome == .revalidated ? .revalidated : .fresh, stored: image)
        case .failed(let failure):
            self.init(variant, outcome: .failed, reason: failure.reason)
        }
    }
}
