import PrefetchModel
internal import SQLite

/// What went of a batch of images.
struct RemovedRows {
    /// Files that rows named and none names any more, each once, in the order of their folders.
    var files: [StoredImage] = []
    var variants = 0
    /// Images of which nothing is left.
    var wholeImages = 0
    /// For each image of the batch whether anything of it went.
    var hasGone: [Bool] = []
}

extension MetadataStatements {
    /// Removes whole images, with all that is known of them.
    ///
    /// A statement for each table, and not for each image: so each table and index is gone through once, in the order of
    /// its pages as far as SQLite sorts them. Triggers and foreign keys would go through them for each image.
    mutating func remove(
        _ batch: [RemovalCandidate], in database: Connection
    ) throws -> RemovedRows {
        var removed = RemovedRows()
        let gone = try database.withoutTriggers {
            try MetadataStatements.remove(batch, noting: &removed, in: database)
        }
        for candidate in batch where gone.contains(candidate.id) {
            try removeFailure(key: candidate.key, in: database)
        }
        removed.wholeImages = gone.count
        removed.hasGone = batch.map { gone.contains($0.id) }
        return removed
    }

    /// Does so with the triggers off.
    ///
    /// - Returns: the identifiers of those that were there.
    private static func remove(
        _ batch: [RemovalCandidate], noting removed: inout RemovedRows, in database: Connection
    ) throws -> Set<Int64> {
        let numbers = "[" + batch.map { String($0.id) }.joined(separator: ",") + "]"
        let listed = "(SELECT value FROM json_each(?1))"
        try Statement(
            database,
            sql: """
                DELETE FROM freshness WHERE fingerprint IN
                    (SELECT fingerprint FROM freshness WHERE resource_id IN \(listed))
                """
        ).execute(.text(numbers))
        try Statement(database, sql: "DELETE FROM attribute WHERE resource_id IN \(listed)")
            .execute(.text(numbers))

        var totals = TotalsChange()
        var hosts: [Int64: String] = [:]
        let resources = try Statement(
            database,
            sql: "DELETE FROM resource WHERE id IN \(listed) RETURNING id, host, source_bytes")
        try resources.bind(.text(numbers), at: 1)
        while try resources.step() {
            hosts[try resources.integer(0)] = try resources.text(1)
            totals.count(resources: -1, sourceBytes: Int(try resources.integer(2)))
        }

        var files: [UnnamedFiles.File] = []
        let variants = try Statement(
            database,
            sql: """
                DELETE FROM variant WHERE resource_id IN \(listed)
                RETURNING sha256, format, width, height, bytes, resource_id, name, superseded
                """)
        try variants.bind(.text(numbers), at: 1)
        while try variants.step() {
            let bytes = Int(try variants.integer(4))
            totals.count(
                variants: -1, host: hosts[try variants.integer(5)] ?? "",
                format: try variants.text(1),
                name: try variants.integer(6), isSuperseded: try variants.integer(7), bytes: bytes)
            files.append(
                UnnamedFiles.File(
                    digest: try variants.digest(0), bytes: bytes,
                    image: try variants.storedImage(from: 0)))
            removed.variants += 1
        }
        let unnamed = try UnnamedFiles(among: files, in: database)
        unnamed.count(in: &totals)
        removed.files = unnamed.images

        try totals.write(in: database)
        return Set(hosts.keys)
    }

    /// Removes the variants that are meant, and images that have lost their last one.
    mutating func remove(
        _ batch: [RemovalCandidate], _ selector: VariantSelector, in database: Connection
    ) throws -> RemovedRows {
        var removed = RemovedRows()
        var files: [UnnamedFiles.File] = []
        for candidate in batch {
            let variants = try VariantSelector.variants(selector, of: candidate.id, in: database)
            removed.hasGone.append(!variants.isEmpty)
            guard !variants.isEmpty else { continue }
            for variant in variants {
                try Statement(
                    database, sql: "DELETE FROM variant WHERE resource_id = ? AND recipe = ?"
                ).execute(.integer(candidate.id), .text(variant.recipe))
                try removeFreshness(key: candidate.key, recipe: variant.recipe, in: database)
            }
            removed.variants += variants.count
            files += variants.compactMap(\.image).map { image in
                UnnamedFiles.File(digest: image.digest, bytes: image.size.bytes, image: image)
            }
            let hasOthers =
                try Statement(
                    database, sql: "SELECT 1 FROM variant WHERE resource_id = ? LIMIT 1"
                ).first(.integer(candidate.id)) { _ in true } ?? false
            guard !hasOthers else { continue }
            // Its other rows go by the trigger.
            try Statement(database, sql: "DELETE FROM resource WHERE id = ?")
                .execute(.integer(candidate.id))
            removed.wholeImages += database.changes > 0 ? 1 : 0
        }
        removed.files = try UnnamedFiles(among: files, in: database).images
        return removed
    }
}

/// The files among those of removed variants that no variant names any more.
struct UnnamedFiles {
    struct File {
        let digest: ContentDigest
        /// As the row said.
        let bytes: Int
        /// Nil of a format that is not known, whose name nobody can tell.
        let image: StoredImage?
    }

    /// One after another with each digest, ascending.
    private let files: [File]

    /// Asks in the order of the index.
    init(among files: [File], in database: Connection) throws {
        var last: (digest: ContentDigest, isNamed: Bool)?
        self.files = try files.sorted { $0.digest.leadingWords < $1.digest.leadingWords }.filter {
            file in
            if let last, last.digest == file.digest { return !last.isNamed }
            let isNamed = try MetadataStatements.isNamed(file.digest, in: database)
            last = (file.digest, isNamed)
            return !isNamed
        }
    }

    func count(in totals: inout TotalsChange) {
        var last: ContentDigest?
        for file in files where file.digest != last {
            totals.count(files: -1, bytes: file.bytes)
            last = file.digest
        }
    }

    /// Each file once.
    var images: [StoredImage] {
        var images: [StoredImage] = []
        for image in files.lazy.compactMap(\.image) {
            // With one digest there may be several formats.
            let isKnown = images.reversed().prefix { $0.digest == image.digest }
                .contains { $0.format == image.format }
            if !isKnown { images.append(image) }
        }
        return images
    }
}
