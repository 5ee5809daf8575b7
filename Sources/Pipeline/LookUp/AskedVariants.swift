import CacheStorage
import Hashing
import PrefetchModel

/// The variants of a batch's entries: mostly the run's.
struct AskedVariants {
    /// A class: a value would be copied with all of its references for each entry.
    private final class Asked {
        let variants: VariantSet
        let names: [VariantName]
        let recipes: [RecipeFingerprint]

        init(_ variants: VariantSet, hasher: borrowing SHA256Hasher) {
            self.variants = variants
            names = variants.map(\.name)
            recipes = variants.map { RecipeFingerprint($0.recipeText, hasher: hasher) }
        }
    }

    private let usual: Asked
    private var own: [Int: Asked] = [:]
    /// The index of the first variant of each record; empty when all have the run's variants.
    private var starts: [Int] = []

    init(_ variants: VariantSet, of batch: EntryBatch, hasher: borrowing SHA256Hasher) {
        usual = Asked(variants, hasher: hasher)
        guard !batch.extras.isEmpty else { return }
        for (number, record) in batch.records.enumerated() {
            guard let extras = batch.extras(of: record), extras.changesVariants else { continue }
            own[number] = Asked(variants.applying(extras), hasher: hasher)
        }
        guard !own.isEmpty else { return }
        var start = 0
        starts.reserveCapacity(batch.records.count + 1)
        for number in batch.records.indices {
            starts.append(start)
            start += asked(number).recipes.count
        }
        starts.append(start)
    }

    private func asked(_ number: Int) -> Asked { own.isEmpty ? usual : own[number] ?? usual }

    func variants(of number: Int) -> VariantSet { asked(number).variants }

    func names(of number: Int) -> [VariantName] { asked(number).names }

    func isOwn(_ number: Int) -> Bool { !own.isEmpty && own[number] != nil }

    func places(of number: Int) -> Range<Int> {
        guard starts.isEmpty else { return starts[number]..<starts[number + 1] }
        return (number * usual.recipes.count)..<((number + 1) * usual.recipes.count)
    }

    func fingerprints(of keys: [KeyFingerprint]) -> [VariantFingerprint] {
        var fingerprints: [VariantFingerprint] = []
        fingerprints.reserveCapacity(starts.last ?? keys.count * usual.recipes.count)
        for (number, key) in keys.enumerated() {
            for recipe in asked(number).recipes {
                fingerprints.append(VariantFingerprint(key, recipe))
            }
        }
        return fingerprints
    }
}
