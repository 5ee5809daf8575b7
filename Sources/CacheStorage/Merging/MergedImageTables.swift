import PrefetchModel
internal import SQLite

/// The tables of images in a merge's new database; positions of columns are found once.
struct MergedImageTables {
    let resources: RowInsertion
    let variants: RowInsertion
    let attributes: RowInsertion
    let spool: FreshnessSpool
    let resource: (id: Int32, host: Int32, sourceBytes: Int32)
    /// The columns of `variant` that a merge changes, and the recipe.
    let variant: (resource: Int32, name: Int32, superseded: Int32, accessed: Int32, recipe: Int32)
    private let image: (digest: Int32, decoded: Int32)

    init(in target: Connection, _ spool: FreshnessSpool) throws {
        self.spool = spool
        resources = try RowInsertion(.resource, into: target)
        variants = try RowInsertion(.variant, into: target)
        attributes = try RowInsertion(.attribute, into: target)
        var layout = resources.layout
        resource = (layout["id"], layout["host"], layout["source_bytes"])
        layout = variants.layout
        variant = (
            layout["resource_id"], layout["name"], layout["superseded"], layout["last_access_at"],
            layout["recipe"]
        )
        image = (layout["sha256"], layout["decoded"])
    }

    func image(of row: borrowing Statement) throws -> StoredImage {
        guard let image = try row.storedImage(from: image.digest, details: image.decoded) else {
            preconditionFailure("a valid row has a format")
        }
        return image
    }

    func row(of row: borrowing Statement, from source: MergeSource) throws -> MergedVariant {
        let layout = variants.layout
        let all = layout.columns.indices.map(Int32.init)
        let changing = [variant.resource, variant.name, variant.superseded, variant.accessed]
        let name = source.names[try row.integer(variant.name)]
        return MergedVariant(
            source: source, values: all.map { row.value($0) },
            identity: all.filter { !changing.contains($0) }.map { row.value($0) },
            recipe: try row.text(variant.recipe), image: try image(of: row),
            createdAt: try row.integer(layout["created_at"]),
            lastAccessAt: try row.integer(variant.accessed),
            name: name ?? VariantNames.main,
            isSuperseded: try name == nil || row.integer(variant.superseded) != 0)
    }

    func add(_ row: MergedVariant, of image: SpooledImage) throws -> VariantUses.VariantUse {
        var values = row.values
        values[Int(variant.resource)] = .integer(image.resource)
        values[Int(variant.accessed)] = .integer(row.lastAccessAt)
        values[Int(variant.name)] = .integer(row.name)
        values[Int(variant.superseded)] = .integer(row.isSuperseded ? 1 : 0)
        try variants.append(values)
        var recipe = row.recipe
        let use = VariantUses.VariantUse(
            recipe: recipe, name: row.name, isSuperseded: row.isSuperseded)
        try recipe.withUTF8 {
            try spool.add(image, recipe: UnsafeRawBufferPointer($0), mark: use.freshnessMark)
        }
        return use
    }

    /// The first placeholder of several rows that show the same picture; none without one.
    func placeholder(of cursors: [ResourceCursor]) -> [(column: Int32, value: Statement.Value)] {
        let (hash, colour) = (resources.layout["thumbhash"], resources.layout["color"])
        for cursor in cursors {
            let values = cursor.withRow { (hash: $0.value(hash), colour: $0.value(colour)) }
            if case .null = values.hash { continue }
            return [(hash, values.hash), (colour, values.colour)]
        }
        return []
    }
}

/// A row of `variant`, with the name's merged identifier.
struct MergedVariant {
    let source: MergeSource
    /// All columns, in the table's order.
    let values: [Statement.Value]
    /// The columns that a variant keeps from its creation on.
    let identity: [Statement.Value]
    let recipe: String
    let image: StoredImage
    let createdAt: Int64
    var lastAccessAt: Int64
    var name: Int64
    var isSuperseded: Bool
}

/// The variants of one image from several caches, made from the same source. Keeps the later
/// variant of each recipe; of two that are current under one name, the later one stays current.
struct MergedVariants {
    /// By recipe.
    private(set) var rows: [String: MergedVariant] = [:]
    /// The files of rows that were not kept.
    private(set) var dropped: [MergedVariant] = []

    mutating func add(_ row: MergedVariant) {
        guard let known = rows[row.recipe] else {
            rows[row.recipe] = row
            return
        }
        var (kept, other) = MergedVariants.isLater(row, known) ? (row, known) : (known, row)
        kept.lastAccessAt = max(kept.lastAccessAt, other.lastAccessAt)
        // A superseded `main` and a current thumbnail do not make a current `main`.
        if other.name == kept.name {
            kept.isSuperseded = kept.isSuperseded && other.isSuperseded
        } else if other.name < kept.name {
            (kept.name, kept.isSuperseded) = (other.name, other.isSuperseded)
        }
        rows[row.recipe] = kept
        if other.image.digest != kept.image.digest { dropped.append(other) }
    }

    /// The rows to store, in the order of their recipes.
    func settled() -> [MergedVariant] {
        var current: [Int64: MergedVariant] = [:]
        for row in rows.values where !row.isSuperseded {
            if let known = current[row.name], !MergedVariants.isLater(row, known) { continue }
            current[row.name] = row
        }
        return rows.values.sorted { $0.recipe.utf8.lexicographicallyPrecedes($1.recipe.utf8) }
            .map { row in
                var row = row
                row.isSuperseded = current[row.name]?.recipe != row.recipe
                return row
            }
    }

    /// A total order of rows, independent of their sources.
    private static func isLater(_ row: MergedVariant, _ other: MergedVariant) -> Bool {
        row.createdAt != other.createdAt
            ? row.createdAt > other.createdAt : other.identity.precedes(row.identity)
    }
}
