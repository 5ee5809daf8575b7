import CacheStorage
import PrefetchModel
import Reporting

extension VariantSelector {
    /// What `--variant` means: a name that runs have used, else a recipe. Nil without any.
    ///
    /// - Throws: for what is neither, as wrong usage.
    init?(_ variant: String?, in catalog: CacheCatalog) throws {
        guard let variant else { return nil }
        let noted: [NotedVariant]
        let isRecipe: Bool
        do throws(StorageError) {
            noted = try catalog.variantNames()
            isRecipe = try catalog.hasVariant(ofRecipe: variant)
        } catch {
            throw CommandFailure(error)
        }
        if noted.contains(where: { $0.name == variant }) {
            self = .name(variant)
            return
        }
        // A recipe of which nothing is left is none that is misspelt.
        guard isRecipe || variant.contains(";") else {
            throw VariantChoice.unknown(variant, noted)
        }
        self = .recipe(variant)
    }
}

extension RemovalTotals {
    /// `3 images (5 variants), 4 files (1.2 MiB), 1 failure`
    var text: String {
        func count(_ number: Int, _ noun: String) -> String {
            "\(number) \(noun)\(number == 1 ? "" : "s")"
        }
        var parts = [
            "\(count(images, "image")) (\(count(variants, "variant")))",
            "\(count(files, "file")) (\(ByteCount(bytes)))",
        ]
        for (number, noun) in [
            (failures, "failure"), (hosts, "host"), (runs, "run"), (self.parts, "partial download"),
        ] where number > 0 {
            parts.append(count(number, noun))
        }
        return parts.joined(separator: ", ")
    }
}
