package import PrefetchModel
internal import SQLite

/// Looks up the images of a run's fresh entries, by single look-ups in the table `variant` or by
/// reading it into memory, as ``FreshnessIndex`` does.
///
/// A look-up costs 2 µs, since the rows are wide and each is on another page; a scanned row costs
/// 0.3 µs (measured with a million rows).
package final class ImageIndex: Sendable {
    private let scan: SharedScan<ImageTable>
    private let recipe: Recipe
    /// Divided into ``ImageTable/pieces`` pieces.
    private let resources: ClosedRange<Int64>
    /// The number of identifiers in a piece.
    private let size: Int64

    /// Creates the index; `expectedLookups` is an estimate, 0 if unknown.
    ///
    /// - Throws: When the database cannot be read.
    package init(
        _ source: CacheCatalog, recipe: Recipe, expectedLookups: Int = 0
    ) throws(StorageError) {
        let last = try source.database.read("reading the images") { database in
            try database.first("SELECT max(id) FROM resource") {
                max(1, try $0.optionalInteger(0) ?? 1)
            } ?? 1
        }
        self.recipe = recipe
        resources = 1...last
        size = (last - 1) / Int64(ImageTable.pieces) + 1
        scan = SharedScan(
            pieces: ImageTable.pieces, rows: Int(clamping: last),
            mostRows: ImageTable.largestCount, expectedLookups: expectedLookups)
    }

    /// The images of `resources`, in their order; nil without one.
    ///
    /// - Throws: when the database cannot be read.
    package func images(
        of resources: [Int64], with reader: CacheReader
    ) throws(StorageError) -> [StoredImage?] {
        while true {
            switch scan.nextStep(lookups: resources.count) {
            case .look:
                return try reader.images(of: resources, recipe: recipe)
            case .readPiece(let piece):
                scan.keep(
                    try reader.imageTable(of: identifiers(ofPiece: piece), recipe: recipe), piece)
            case .use(let tables):
                return try images(of: resources, in: tables, with: reader)
            }
        }
    }

    /// The identifiers of a piece.
    private func identifiers(ofPiece piece: Int) -> Range<Int64> {
        let first = 1 + Int64(piece) * size
        return first..<max(first, min(first + size, resources.upperBound + 1))
    }

    private func images(
        of resources: [Int64], in tables: [ImageTable], with reader: CacheReader
    ) throws(StorageError) -> [StoredImage?] {
        var images = tables.withUnsafeBufferPointer { tables in
            resources.map { resource -> StoredImage? in
                guard self.resources.contains(resource) else { return nil }
                return tables[Int((resource - 1) / size)][resource]
            }
        }
        // Images stored during this run, and rows that the table could not hold.
        let missing = images.indices.filter { images[$0] == nil }
        guard !missing.isEmpty else { return images }
        let found = try reader.images(of: missing.map { resources[$0] }, recipe: recipe)
        for (index, image) in zip(missing, found) { images[index] = image }
        return images
    }
}
