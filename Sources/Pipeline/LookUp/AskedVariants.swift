import CacheStorage
import Hashing
import PrefetchModel

/// The variants that the entries of a batch ask for: mostly those of the run.
struct AskedVariants {
    private let usual: VariantSet
    private let usualFingerprints: [RecipeFingerprint]
    private var ownFingerprints: [Int: [RecipeFingerprint]] = [:]
    /// Variants by number of the record.
    private var own: [Int: VariantSet] = [:]
    /// The index of the first variant of each record; empty when all ask for the run's variants.
    private var starts: [Int] = []

    init(_ usual: VariantSet, of batch: EntryBatch, hasher: borrowing SHA256Hasher) {
        self.usual = usual
        usualFingerprints = AskedVariants.fingerprints(of: usual, hasher: hasher)
        guard !batch.extras.isEmpty else { return }
        for (number, record) in batch.records.enumerated() {
            guard let extras = batch.extras(of: record), extras.changesVariants else { continue }
            let variants = usual.applying(extras)
            own[number] = variants
            ownFingerprints[number] = AskedVariants.fingerprints(of: variants, hasher: hasher)
        }
        guard !own.isEmpty else { return }
        var start = 0
        starts.reserveCapacity(batch.records.count + 1)
        for number in batch.records.indices {
            starts.append(start)
            start += variants(of: number).count
        }
        starts.append(start)
    }

    private static func fingerprints(
        of variants: VariantSet, hasher: borrowing SHA256Hasher
    ) -> [RecipeFingerprint] {
        var fingerprints: [RecipeFingerprint] = []
        for variant in variants {
            fingerprints.append(
                RecipeFingerprint(variant.recipeText, hasher: hasher))
        }
        return fingerprints
    }

    /// Whether every record asks for the run's only variant.
    var isSingle: Bool { own.isEmpty && usualFingerprints.count == 1 }

    func variants(of number: Int) -> VariantSet {
        own.isEmpty ? usual : own[number] ?? usual
    }

    /// Whether a record asks for other variants than the run.
    func isOwn(_ number: Int) -> Bool { !own.isEmpty && own[number] != nil }

    /// Returns the indices of a record's variants among all of the batch.
    func places(of number: Int) -> Range<Int> {
        guard starts.isEmpty else { return starts[number]..<starts[number + 1] }
        return (number * usual.count)..<((number + 1) * usual.count)
    }

    /// Returns the fingerprints of every variant of every record.
    func fingerprints(of keys: [KeyFingerprint]) -> [VariantFingerprint] {
        if own.isEmpty, usualFingerprints.count == 1 {
            return keys.map { VariantFingerprint($0, usualFingerprints[0]) }
        }
        var fingerprints: [VariantFingerprint] = []
        fingerprints.reserveCapacity(starts.last ?? keys.count * usual.count)
        for (number, key) in keys.enumerated() {
            for recipe in ownFingerprints[number] ?? usualFingerprints {
                fingerprints.append(VariantFingerprint(key, recipe))
            }
        }
        return fingerprints
    }
}
