import EntryLifecycle
import EntryQueue
import PrefetchModel
import Scheduling

struct SharedOutcome {
    let reason: FailureReason?
    var stored: StoredImage?
    /// `list.txt:7`.
    let place: String

    func describe(_ result: inout EntryResult) {
        result.reason = reason
        result.message = "duplicate of \(place)"
        result.stored = stored
    }
}

struct LineEnds {
    let machine: EntryMachine
    let end: EntryEnd
    private let variants: VariantSet
    /// The number of leading variants that the end is about.
    private let count: Int
    private let rules: RunRules

    /// A line's end, and the positions of its variants.
    typealias LineEnd = (end: EntryEnd, positions: [Int])

    /// `tried`: the number of variants that the codec workers had; nil if they had none.
    init(
        _ machine: EntryMachine, _ end: EntryEnd, variants: VariantSet, tried: Int?,
        _ rules: RunRules
    ) {
        self.machine = machine
        self.end = end
        self.variants = variants
        self.rules = rules
        count =
            switch end {
            case .stored(_, let stored): stored.variants.count
            case .failed(let failed) where !failed.stored.variants.isEmpty:
                failed.stored.variants.count
            case .failed(let failed) where failed.failure.reason.dependsOnVariants:
                tried ?? variants.count
            case .failed, .excluded, .requested, .cancelled: variants.count
            }
    }

    var commonReason: FailureReason? {
        if case .failed(let failed) = end, !failed.stored.variants.isEmpty { return nil }
        return end.reason
    }

    /// Whether nothing was requested or stored, so that the lines keep their images.
    var changesNothing: Bool {
        switch end {
        case .failed(let failed): failed.stored.variants.isEmpty
        case .excluded, .requested: true
        case .stored, .cancelled: false
        }
    }

    var failed: [RequestedVariant] {
        guard case .failed(let failed) = end, !failed.stored.variants.isEmpty else {
            return Array(variants.prefix(count))
        }
        return zip(variants, failed.stored.variants).filter { $1.image == nil }.map(\.0)
    }

    /// Returns the end of a line; nil if it was too late for the entry.
    func lineEnd(_ line: VariantSet) -> LineEnd? {
        guard let positions = variants.positions(of: line, within: count) else {
            // Without a report no images were looked up.
            guard case .stored(_, let stored) = end, stored.variants.isEmpty,
                line.text == variants.text
            else { return nil }
            return (end, Array(line.indices))
        }
        let own = machine.end(end, of: positions) { failure, position in
            let index = line.count > 1 ? positions.firstIndex(of: position) : nil
            return described(failure, position, as: index.map { line[$0].name })
        }
        return (own, positions)
    }

    private func described(_ failure: Failure, _ position: Int, as name: VariantName?) -> Failure {
        let prefix = "variant \(variants[position].name): "
        guard failure.message.hasPrefix(prefix) else { return failure }
        let message = failure.message.dropFirst(prefix.count)
        return Failure(failure.reason, name.map { "variant \($0): \(message)" } ?? String(message))
    }

    func result(_ line: VariantSet, _ own: LineEnd) -> EntryResult {
        rules.result(of: machine, own.end, line, at: own.positions)
    }

    /// Returns the report of a later line. The request is the first one's.
    func result(of duplicate: Entry.Duplicate, _ line: VariantSet, _ own: LineEnd) -> EntryResult {
        let whole = result(line, own)
        var result = duplicate.result(whole.outcome, machine.entry.key)
        result.reason = whole.reason
        result.stored = whole.stored
        result.expiresAt = whole.expiresAt
        let place = "\(machine.entry.manifest):\(machine.entry.line)"
        guard duplicate.addsVariants, whole.outcome != .cancelled else {
            if result.outcome != .cancelled { result.outcome = .duplicate }
            // The end of all lines, unless this one had another.
            result.message = "duplicate of \(place)"
            return result
        }
        result.message = (whole.message.map { "\($0); " } ?? "") + "together with \(place)"
        result.variants = whole.variants
        result.warning = whole.warning
        return result
    }
}

extension FailureReason {
    var dependsOnVariants: Bool {
        FailurePolicy.settings(of: self).contains { $0 == .recipe || $0 == .method }
    }
}

extension RunRules {
    /// Returns the report of a line with its end. `positions` are the places of its `variants`
    /// among the entry's variants.
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
