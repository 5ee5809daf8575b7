import CacheStorage
import EntryLifecycle
import PrefetchModel

extension MetadataChange {
    /// Converts an entry's change into rows. The entry requests `variants`; `others` were made of
    /// the same body. `keepsFailure`: whether the failure of its key concerns another line.
    init(
        _ change: EntryChange, of machine: EntryMachine, _ variants: VariantSet,
        _ others: [OtherVariant], keepsFailure: Bool, at now: Timestamp
    ) {
        let entry = machine.entry
        let attributes = entry.extras?.attributes ?? []
        let isIncomplete = machine.isCommittingFailure || keepsFailure
        func rows(_ changes: [VariantChange]) -> [VariantRow] {
            changes.map { VariantRow(variants[$0.position], image: $0.image, createdAt: now) }
        }
        switch change {
        case .body(let validation, source: let source, let changes):
            self = .image(
                ImageRow(
                    key: entry.key, validation: validation, source: source,
                    variants: rows(changes)
                        + others.compactMap { other in
                            other.image.map {
                                VariantRow(other.variant, image: $0, createdAt: now)
                            }
                        }, attributes: attributes, isIncomplete: isIncomplete))
        case .resource(let resource, let validation, let changes):
            self = .resource(
                ResourceChange(
                    resourceID: resource, key: entry.key, used: Array(variants),
                    validation: validation, variants: rows(changes), attributes: attributes,
                    isIncomplete: isIncomplete))
        }
    }
}
