package import PrefetchModel
internal import SQLite

/// Looks up the images of a run's fresh entries, by single look-ups in the table `variant` or by
/// reading it into memory, as ``FreshnessIndex`` does. A look-up costs 2 µs, since the rows are
/// wide and each is on another page; a scanned row costs 0.3 µs (measured with a million rows).
package final class ImageIndex: Sendable {
    private let scan: SharedScan<ImageTable>
    private let recipe: Recipe
    /// Divided into ``ImageTable/pieces`` pieces.
    private let resources: ClosedRange<Int64>
    private let size: Int64

    /// Creates the index; `expectedLookups` is an estimate, 0 if unknown.
    package init(
        _ source: CacheCatalog, recipe: Recipe, expectedLookups: Int = 0
    ) throws(StorageError) {
        let last = try source.database.read("reading the images") { database in
            max(1, try ListingLog.largestResource(in: database))
        }
        self.recipe = recipe
        resources = 1...last
        size = (last - 1) / Int64(ImageTable.pieces) + 1
        scan = SharedScan(
            pieces: ImageTable.pieces, rows: Int(clamping: last),
            mostRows: ImageTable.largestCount, expectedLookups: expectedLookups)
    }

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

/// The images of one recipe in a piece of the table `variant`: 48 bytes for each resource.
struct ImageTable: Sendable {
    private struct PackedImage {
        var digest: ContentDigest
        /// Larger images are left to look-ups.
        var sizeInBytes: UInt32
        var widthInPixels: UInt32
        var heightInPixels: UInt32
        /// Zero for no image, else an index into ``formats`` plus one.
        var format: UInt8
        var isDecoded: Bool
        var orientation: UInt8
    }

    private var rows: [PackedImage] = []
    private let first: Int64

    private static let formats = ImageFormat.allCases

    static let pieces = 4
    /// The largest number of resources for which the table is held, which takes some 200 MB.
    static let largestCount = 4_000_000

    init(of resources: Range<Int64>) {
        first = resources.lowerBound
        rows.reserveCapacity(resources.count)
    }

    /// Adds the image of the next resource; skips images that do not fit a row.
    mutating func append(_ image: StoredImage, of resource: Int64) {
        guard let format = ImageTable.formats.firstIndex(of: image.format),
            let size = UInt32(exactly: image.size.bytes),
            let width = UInt32(exactly: image.widthInPixels),
            let height = UInt32(exactly: image.heightInPixels)
        else { return }
        let row = PackedImage(
            digest: image.digest, sizeInBytes: size, widthInPixels: width, heightInPixels: height,
            format: UInt8(format + 1), isDecoded: image.isDecoded,
            orientation: UInt8(clamping: image.orientation))
        // Rows are out of order only in a damaged table.
        guard rows.count <= resource - first else { return }
        // The other fields of rows without an image are never read.
        var empty = row
        empty.format = 0
        while rows.count < resource - first { rows.append(empty) }
        rows.append(row)
    }

    subscript(resource: Int64) -> StoredImage? {
        let index = Int(resource - first)
        guard rows.indices.contains(index), rows[index].format > 0 else { return nil }
        let row = rows[index]
        return StoredImage(
            digest: row.digest, format: ImageTable.formats[Int(row.format) - 1],
            isDecoded: row.isDecoded, widthInPixels: Int(row.widthInPixels),
            heightInPixels: Int(row.heightInPixels), orientation: Int(row.orientation),
            size: ByteCount(Int(row.sizeInBytes)))
    }
}
