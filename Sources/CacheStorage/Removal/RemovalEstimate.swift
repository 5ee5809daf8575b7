package import PrefetchModel
internal import SQLite

/// Counts the images, variants and files of a removal. A dry run: takes no lock.
package final class RemovalEstimate: ImageRemoving {
    package let database: CacheDatabase
    package let variant: VariantSelector?
    /// The number of variants that name a content file, and of those counted as removed.
    private var files: [ContentDigest: (all: Int, gone: Int)] = [:]
    /// Images and variants counted so far: several rules may pick the same ones.
    private var gone = (images: ResourceSet(), variants: [Int64: Set<String>]())
    private var freed = DiskUsage(files: 0, blocks: 0)
    private let report: (Removal) -> Void
    package private(set) var totals = RemovalTotals()

    /// An image, or some of its variants.
    package struct Removal: Sendable {
        package let key: String
        package let isWhole: Bool
        package let recipes: [String]
        /// The size of their files, shared ones included.
        package let bytes: Int
    }

    /// Estimates the removal of a variant of each image; nil for whole images. Calls `report` for
    /// each image; an image that several rules pick in parts is reported with each part.
    package init(
        _ catalog: CacheCatalog, variant: VariantSelector?,
        _ report: @escaping (Removal) -> Void = { _ in }
    ) {
        database = catalog.database
        self.variant = variant
        self.report = report
    }

    package var usage: DiskUsage {
        get throws(StorageError) {
            var usage = try database.usage()
            usage.files -= freed.files
            usage.blocks -= freed.blocks
            return usage
        }
    }

    package func removeHistory(before time: Timestamp, at now: Timestamp) throws(StorageError) {
        totals.add(try HistoryRows.count(before: time, at: now, in: database, without: gone.images))
    }

    package func removeFailure(key: String) throws(StorageError) -> Bool {
        guard variant == nil else { return false }
        let isThere = try database.read("looking up") { database in
            try database.hasRow("SELECT 1 FROM failure WHERE key = ?", .text(key))
        }
        if isThere { count(failureOf: key) }
        return isThere
    }

    package func removeFailures(where isWanted: (FailureRecord) -> Bool) throws(StorageError) {
        guard variant == nil else { return }
        try database.read("counting failures") { database in
            // Failures of images are counted with the images.
            try database.forEach(
                """
                SELECT \(FailureRecord.columns) FROM failure
                WHERE NOT EXISTS (SELECT 1 FROM resource WHERE resource.key = failure.key)
                """
            ) { row in
                if let record = try FailureRecord(row), isWanted(record) {
                    count(failureOf: record.key)
                }
            }
        }
    }

    private func count(failureOf key: String) {
        totals.failures += 1
        report(Removal(key: key, isWhole: true, recipes: [], bytes: 0))
    }

    package func remove(
        _ batch: [RemovalCandidate], only selector: VariantSelector?
    ) throws(StorageError) -> [Bool] {
        try database.read("counting variants") { database in
            try batch.map { try countRemoval(of: $0, only: selector, in: database) }
        }
    }

    package func remove(images ids: [Int64], only selector: VariantSelector?) throws(StorageError) {
        _ = try remove(RemovalCandidate.find(ids: ids, in: database), only: selector)
    }

    private func countRemoval(
        of candidate: RemovalCandidate, only selector: VariantSelector?, in database: Connection
    ) throws -> Bool {
        guard !gone.images.contains(candidate.id) else { return false }
        func left(_ selector: VariantSelector?) throws -> [(image: StoredImage?, recipe: String)] {
            let before = gone.variants[candidate.id] ?? []
            // Superseded variants are removed only with a current one there, which may be counted
            // as removed by now.
            if selector == .superseded, !before.isEmpty {
                let used = try database.all(
                    "SELECT recipe FROM variant WHERE resource_id = ? AND superseded = 0",
                    .integer(candidate.id)
                ) { try $0.text(0) }
                if before.isSuperset(of: used) { return [] }
            }
            return try VariantSelector.variants(selector, of: candidate.id, in: database)
                .filter { !before.contains($0.recipe) }
        }
        let variants = try left(selector)
        let isWhole =
            try selector == nil || !variants.isEmpty && left(nil).count == variants.count
        totals.variants += variants.count
        if isWhole {
            totals.images += 1
            gone.images.insert(candidate.id)
            gone.variants[candidate.id] = nil
        } else if !variants.isEmpty {
            gone.variants[candidate.id, default: []].formUnion(variants.map(\.recipe))
        }
        for image in variants.compactMap(\.image) { try countRemoval(of: image, in: database) }
        guard isWhole || !variants.isEmpty else { return false }
        report(
            Removal(
                key: candidate.key, isWhole: isWhole, recipes: variants.map(\.recipe),
                bytes: variants.reduce(0) { $0 &+ ($1.image?.size.bytes ?? 0) }))
        return true
    }

    /// Counts one variant less for a file.
    private func countRemoval(of image: StoredImage, in database: Connection) throws {
        var file =
            try files[image.digest]
            ?? (
                database.first(
                    "SELECT count(*) FROM variant WHERE sha256 = ?", .digest(image.digest)
                ) { try $0.count(0) } ?? 0, 0
            )
        file.gone += 1
        // The entry of a file with one variant is complete.
        files[image.digest] = file.all == 1 ? nil : file
        guard file.gone == file.all else { return }
        totals.files += 1
        // Damaged rows may hold any number.
        totals.bytes &+= image.size.bytes
        freed.files += 1
        freed.blocks += DiskUsage.blocks(of: image.size)
    }

    package func finish() {}
}
