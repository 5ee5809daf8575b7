internal import CZlib

/// The stored form of a set of resources, in the table `listing`. The number of pages in 4 bytes,
/// then all pages with any identifier as one zlib stream (RFC 1950). Each page is its number in 4
/// bytes and its 2¹⁵ bits in 4096, all little-endian, the lowest identifier in the lowest bit. A
/// million identifiers without gaps take some hundred bytes; any other million take at most 125 KB
/// for each million rows.
extension ResourceSet {
    private static let pageBytes = 4 + 8 * pageWords
    private static let headerBytes = 4
    /// The largest identifier of a set, unless the cache has larger ones; it takes 32 MiB.
    static let largestKept: Int64 = 1 << 28

    /// The stored form, without identifiers of 2³⁵ and more, which it cannot hold.
    var compressed: [UInt8] {
        var plain: [UInt8] = []
        var count: UInt32 = 0
        for (number, page) in pages.enumerated() where !page.isEmpty {
            count += 1
            withUnsafeBytes(of: UInt32(number).littleEndian) { plain.append(contentsOf: $0) }
            for word in page {
                withUnsafeBytes(of: word.littleEndian) { plain.append(contentsOf: $0) }
            }
        }
        var size = compressBound(UInt(plain.count))
        var compressed = [UInt8](repeating: 0, count: Int(size))
        let code = compress2(&compressed, &size, plain, UInt(plain.count), Z_BEST_SPEED)
        // Buffer and level are valid. Only memory may be lacking, which ends Swift, too.
        precondition(code == Z_OK, "zlib cannot compress in memory")
        let header = withUnsafeBytes(of: count.littleEndian) { Array($0) }
        return header + compressed.prefix(Int(size))
    }

    /// Reads the stored form; nil for an invalid one, or more pages than `largestResource` has.
    init?(compressed bytes: [UInt8], largestResource: Int64) {
        guard bytes.count > ResourceSet.headerBytes else { return nil }
        let count = bytes.withUnsafeBytes {
            UInt32(littleEndian: $0.loadUnaligned(as: UInt32.self))
        }
        let mostPages = (max(0, largestResource) >> ResourceSet.pageBits) + 1
        // Deflate expands one byte to at most 1032.
        guard count <= min(mostPages, ResourceSet.largestPage),
            Int(count) * ResourceSet.pageBytes <= 1032 * bytes.count
        else { return nil }
        var size = UInt(Int(count) * ResourceSet.pageBytes)
        let wanted = size
        var plain = [UInt8](repeating: 0, count: max(1, Int(size)))
        let stream = Array(bytes.dropFirst(ResourceSet.headerBytes))
        let code = uncompress(&plain, &size, stream, UInt(stream.count))
        guard code == Z_OK, size == wanted else { return nil }
        self.init()
        for start in stride(from: 0, to: Int(size), by: ResourceSet.pageBytes) {
            let isPage = plain.withUnsafeBytes { plain in
                let number = UInt32(
                    littleEndian: plain.loadUnaligned(fromByteOffset: start, as: UInt32.self))
                guard Int64(number) < mostPages, Int(number) >= pages.count else { return false }
                while pages.count < number { pages.append([]) }
                pages.append(
                    (0..<ResourceSet.pageWords).map { word in
                        UInt64(
                            littleEndian: plain.loadUnaligned(
                                fromByteOffset: start + 4 + 8 * word, as: UInt64.self))
                    })
                return true
            }
            guard isPage else { return nil }
        }
    }
}
