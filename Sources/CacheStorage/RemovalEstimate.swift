import PrefetchModel
internal import SQLite

/// What a removal would come to; nothing is changed, and nobody is kept from anything.
package final class RemovalEstimate: ImageRemoving {
    package let database: CacheDatabase
    private let variant: VariantSelector?
    /// How many variants that would go name a file, and its size.
    private var files: [ContentDigest: (variants: Int, bytes: Int)] = [:]
    package private(set) var totals = RemovalTotals()

    /// `variant` would go; nil for the whole of each image.
    package init(_ catalog: CacheCatalog, variant: VariantSelector?) {
        database = catalog.database
        self.variant = variant
    }

    package func removeFailure(key: String) throws(StorageError) -> Bool {
        guard variant == nil else { return false }
        let isThere = try database.read("looking up") { database in
            try Statement(database, sql: "SELECT 1 FROM failure WHERE key = ?")
                .first(.text(key)) { _ in true } ?? false
        }
        if isThere { totals.failures += 1 }
        return isThere
    }

    package func removeFailures(
        where isWanted: (FailureRecord) -> Bool
    ) throws(StorageError) {
        guard variant == nil else { return }
        totals.failures += try database.read("counting failures") { database in
            // Those of images would have gone with them.
            let rows = try Statement(
                database,
                sql: """
                    SELECT \(FailureRecord.columns) FROM failure
                    WHERE NOT EXISTS (SELECT 1 FROM resource WHERE resource.key = failure.key)
                    """)
            var count = 0
            while try rows.step() {
                if let record = try FailureRecord(rows), isWanted(record) { count += 1 }
            }
            return count
        }
    }

    package func remove(_ batch: [RemovalCandidate]) throws(StorageError) -> [Bool] {
        try database.read("counting variants") { database in
            try batch.map { candidate in
                let variants = try VariantSelector.variants(
                    variant, of: candidate.id, in: database)
                totals.variants += variants.count
                let isWhole =
                    try variant == nil
                    || !variants.isEmpty
                        && VariantSelector.variants(nil, of: candidate.id, in: database).count
                            == variants.count
                if isWhole { totals.images += 1 }
                for image in variants.compactMap(\.image) {
                    files[image.digest, default: (0, image.size.bytes)].variants += 1
                }
                return isWhole || !variants.isEmpty
            }
        }
    }

    package func finish() throws(StorageError) {
        try database.read("counting files") { database in
            for (digest, file) in files {
                let all = try Statement(
                    database, sql: "SELECT count(*) FROM variant WHERE sha256 = ?"
                ).first(.digest(digest)) { try $0.count(0) }
                guard all == file.variants else { continue }
                totals.files += 1
                totals.bytes += file.bytes
            }
        }
        files = [:]
    }
}
