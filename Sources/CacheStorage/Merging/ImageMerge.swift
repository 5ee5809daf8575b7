import PrefetchModel
internal import SQLite

struct ImageMergeCounts {
    var all = 0
    var added = 0
    var updated = 0
    /// Files of the destination's rows that were not kept.
    var dropped: Set<NamedFile> = []
    /// Keys that stand for images of several URLs.
    var reusedKeys = ReusedKeys()
    /// Files that neither the cache of their row nor the destination has.
    var lost: Set<ContentDigest> = []
}

/// Merges the images of all sources into the new database, in the order of their keys. Keeps the
/// row of a key that was validated last, with the variants of all rows that have the same source
/// bytes. Unites attributes; the row validated later decides between two values of a name.
struct ImageMerge {
    private let sources: [MergeSource]
    private let now: Timestamp
    /// For a plan, the unavailable files: all others count as present, no file is taken over, and
    /// the destination's own images are left out. Nil for a merge.
    private let lostFiles: Set<ContentDigest>?
    private let hasAttributes: [Bool]
    private let tables: MergedImageTables
    private let adoption: FileAdoption
    private var jobs: [FileAdoption.Job] = []
    private var totals = TotalsChange()
    private(set) var counts = ImageMergeCounts()

    /// - Precondition: the target has no images, and its triggers are off.
    init(
        _ sources: [MergeSource], into target: Connection, adoption: FileAdoption,
        spool: FreshnessSpool, besides lost: Set<ContentDigest>? = nil, at now: Timestamp
    ) throws {
        self.now = now
        lostFiles = lost
        self.sources = sources
        self.adoption = adoption
        tables = try MergedImageTables(in: target, spool)
        hasAttributes = try sources.map { try $0.hasRows(in: "attribute") }
    }

    mutating func run() throws {
        let cursors = try sources.map { try ResourceCursor($0, for: tables.resources) }
        var equal: [ResourceCursor] = []
        while true {
            equal.removeAll(keepingCapacity: true)
            for cursor in cursors where cursor.hasRow {
                let order = equal.first.map(cursor.orderOfKey) ?? 0
                if order < 0 { equal.removeAll(keepingCapacity: true) }
                if order <= 0 { equal.append(cursor) }
            }
            guard let first = equal.first else { break }
            counts.all += 1
            if equal.count == 1 { try take(first) } else { try unite(equal) }
            for cursor in equal { try cursor.advance() }
        }
        try adoption.add(jobs)
        jobs = []
    }

    /// Writes the totals. Call with the index of digests.
    mutating func writeTotals(in target: Connection) throws {
        // Every row has counted its file.
        let sizes = try target.prepare("SELECT bytes FROM variant WHERE sha256 = ?")
        try target.forEach(
            """
            SELECT sha256 FROM variant INDEXED BY variant_sha256
            GROUP BY sha256 HAVING count(*) > 1
            """
        ) { row in
            let bytes = try sizes.all([row.value(0)]) { try $0.count(0) }
            for bytes in bytes.sorted().dropLast() { totals.count(files: -1, bytes: bytes) }
        }
        try totals.write(in: target)
    }

    /// Counts a variant, its file included.
    private mutating func count(_ image: StoredImage, host: String, _ use: VariantUses.VariantUse) {
        totals.count(
            variants: 1, host: host, format: image.format.rawValue, name: use.name,
            isSuperseded: use.isSuperseded ? 1 : 0, bytes: image.size.bytes)
        totals.count(files: 1, bytes: image.size.bytes)
    }

    // MARK: A key of one source

    private mutating func take(_ cursor: ResourceCursor) throws {
        let source = cursor.source
        if isLeftOut(source) { return }
        if source.number > 0 { counts.added += 1 }
        let merged = Int64(counts.all)
        source.identifiers[cursor.id] = merged
        let image = try tables.spool.image(of: cursor, as: merged)
        let host = try insert(cursor, as: merged)
        try ImageMerge.forEachVariant(of: cursor, in: tables) { variant in
            let columns = tables.variant
            let oldName = try variant.integer(columns.name)
            let name = source.names[oldName]
            // The database may have lost the name; such a variant is not current.
            let use = VariantUses.VariantUse(
                recipe: "", name: name ?? VariantNames.main,
                isSuperseded: try name == nil || variant.integer(columns.superseded) != 0)
            var values = [(columns.resource, Statement.Value.integer(merged))]
            if name != oldName {
                values.append((columns.name, .integer(use.name)))
                values.append((columns.superseded, .integer(use.isSuperseded ? 1 : 0)))
            }
            try tables.variants.append(variant, replacing: values)
            try tables.spool.add(
                image, recipe: variant.textBytes(columns.recipe), mark: use.freshnessMark)
            let stored = try tables.image(of: variant)
            count(stored, host: host, use)
            if source.number > 0 { try request(stored, from: source) }
        }
        if hasAttributes[source.number] { try addAttributes(of: cursor, to: merged) }
    }

    // MARK: A key of several sources

    /// A row of the key, and its variants with existing files.
    private struct MergeCandidate {
        let cursor: ResourceCursor
        let rank: [Statement.Value]
        let digest: ContentDigest
        let key: String
        let urls: StoredURLs
        var variants: [MergedVariant] = []
    }

    private mutating func unite(_ cursors: [ResourceCursor]) throws {
        let merged = Int64(counts.all)
        var candidates = try candidates(of: cursors, as: merged)
        // Without its files, a row must not replace one with files.
        candidates.sort { first, second in
            first.variants.isEmpty == second.variants.isEmpty
                ? second.rank.precedes(first.rank) : second.variants.isEmpty
        }
        let newest = candidates[0]
        switch (newest.cursor.source.number, cursors[0].source.number) {
        case (0, _): break
        case (_, 0): counts.updated += 1
        default: counts.added += 1
        }
        let ofSameSource = candidates.filter { $0.digest == newest.digest }.map(\.cursor)
        let host = try insert(
            newest.cursor, as: merged, replacing: tables.placeholder(of: ofSameSource))
        var united = MergedVariants()
        for candidate in candidates {
            for variant in candidate.variants {
                if candidate.digest == newest.digest {
                    united.add(variant)
                } else {
                    drop(variant)
                }
            }
            if !candidate.urls.areOfImage(at: newest.urls) {
                counts.reusedKeys.note(
                    "'\(newest.key)' of \(newest.urls.requested), and of "
                        + candidate.urls.requested)
            } else if hasAttributes[candidate.cursor.source.number] {
                try addAttributes(of: candidate.cursor, to: merged)
            }
        }
        for row in united.dropped { drop(row) }
        let image = try tables.spool.image(of: newest.cursor, as: merged)
        for row in united.settled() where !isLeftOut(row.source) {
            let use = try tables.add(row, of: image)
            count(row.image, host: host, use)
            if row.source.number > 0 { try request(row.image, from: row.source) }
        }
    }

    /// The rows of a key in all sources, with the variants that have files.
    private mutating func candidates(
        of cursors: [ResourceCursor], as merged: Int64
    ) throws -> [MergeCandidate] {
        var candidates = try cursors.map { cursor in
            try cursor.withRow { row in
                let layout = tables.resources.layout
                let url = try row.text(layout["url"])
                return MergeCandidate(
                    cursor: cursor, rank: try rank(of: row),
                    digest: try row.digest(layout["source_sha256"]),
                    key: try row.text(layout["key"]),
                    urls: StoredURLs(
                        requested: url, listed: try row.optionalText(layout["listed_url"]) ?? url))
            }
        }
        var lost: Set<ContentDigest> = []
        for index in candidates.indices {
            let source = candidates[index].cursor.source
            source.identifiers[candidates[index].cursor.id] = merged
            try ImageMerge.forEachVariant(of: candidates[index].cursor, in: tables) { variant in
                let row = try tables.row(of: variant, from: source)
                // Another row may still have its file.
                if hasFile(row.image, of: source) {
                    candidates[index].variants.append(row)
                } else {
                    lost.insert(row.image.digest)
                }
            }
        }
        if !lost.isEmpty {
            // Other caches may have them.
            let found = candidates.flatMap(\.variants).map(\.image.digest)
            counts.lost.formUnion(lost.subtracting(found))
        }
        return candidates
    }

    /// Whether this is a plan, and the source the destination.
    private func isLeftOut(_ source: MergeSource) -> Bool {
        lostFiles != nil && source.number == 0
    }

    /// Whether a source or the destination has an image's file.
    private func hasFile(_ image: StoredImage, of source: MergeSource) -> Bool {
        if sources[0].directory.hasWholeFile(image) { return true }
        guard source.number > 0 else { return false }
        return lostFiles.map { !$0.contains(image.digest) } ?? source.directory.hasWholeFile(image)
    }

    /// The values by which rows of one key are compared: first the validation, at last everything,
    /// so that the order of the sources does not matter. A validation in the future is a wrong
    /// clock's, and counts less than any other.
    private func rank(of row: borrowing Statement) throws -> [Statement.Value] {
        let layout = tables.resources.layout
        let isPast =
            try row.time(layout["validated_at"])
            <= now.advanced(by: Timestamp.toleratedClockStep)
        let first = ["validated_at", "fetched_at", "expires_at", "source_sha256"]
        let all = layout.columns.indices.map(Int32.init).filter { $0 != tables.resource.id }
        return [.integer(isPast ? 1 : 0)] + (first.map { layout[$0] } + all).map { row.value($0) }
    }

    private mutating func insert(
        _ cursor: ResourceCursor, as merged: Int64,
        replacing values: [(column: Int32, value: Statement.Value)] = []
    ) throws -> String {
        try cursor.withRow { row in
            let columns = tables.resource
            try tables.resources.append(row, replacing: [(columns.id, .integer(merged))] + values)
            totals.count(resources: 1, sourceBytes: try row.count(columns.sourceBytes))
            return try row.text(columns.host)
        }
    }

    private mutating func drop(_ row: MergedVariant) {
        guard row.source.number == 0 else { return }
        counts.dropped.insert(
            NamedFile(
                digest: row.image.digest, bytes: row.image.size.bytes, format: row.image.format))
    }

    /// Calls `body` with the valid variants of a source's current resource. Static, since `body`
    /// changes the merge: a method would first copy all of it.
    private static func forEachVariant(
        of cursor: ResourceCursor, in tables: MergedImageTables,
        _ body: (borrowing Statement) throws -> Void
    ) throws {
        try cursor.source.forEachRow(
            of: tables.variants, where: "resource_id = ?1 ORDER BY recipe", .integer(cursor.id),
            body: body)
    }

    private func addAttributes(of cursor: ResourceCursor, to merged: Int64) throws {
        let attributes = tables.attributes
        try cursor.source.forEachRow(
            of: attributes, where: "resource_id = ?1", .integer(cursor.id)
        ) { row in
            // The first value of a name stays.
            _ = try attributes.insert(
                row, replacing: [attributes.layout["resource_id"]: .integer(merged)])
        }
    }

    /// Has an image's file taken over.
    private mutating func request(_ image: StoredImage, from source: MergeSource) throws {
        guard lostFiles == nil else { return }
        jobs.append(
            FileAdoption.Job(
                image: image, source: source.number, isDoubtful: source.mayHaveTornFiles))
        guard jobs.count == FileAdoption.batchSize else { return }
        try adoption.add(jobs)
        jobs.removeAll(keepingCapacity: true)
    }
}
