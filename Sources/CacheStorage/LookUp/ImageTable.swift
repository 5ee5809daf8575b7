import PrefetchModel

/// A piece of the table `variant` in memory, for one recipe: 48 bytes per resource, with or without
/// an image.
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
