internal import CZlib

/// A set of resources as it is kept in the database, in the table `listing`.
///
/// All pages that have any identifier, one after the other, as one zlib stream (RFC 1950): each is its
/// number in 4 bytes and its 2¹⁵ bits in 4096, all little-endian, the lowest identifier in the lowest bit.
/// Before the stream stands the number of pages, in 4 bytes. A million identifiers without gaps take some
/// hundred bytes, any other million of them 125 KB for each million rows.
extension ResourceSet {
    private static let pageBytes = 4 + 8 * pageWords
    private static let headerBytes = 4
    /// The largest identifier of a set that is read, unless there are larger ones: 2²⁸, which is 32 MiB.
    static let largestKept: Int64 = 1 << 28

    /// What cannot be kept is left out: identifiers of 2³⁵ and more.
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
        // It has room and a valid level; what is left is no memory, which ends Swift, too.
        precondition(code == Z_OK, "zlib cannot compress in memory")
        let header = withUnsafeBytes(of: count.littleEndian) { Array($0) }
        return header + compressed.prefix(Int(size))
    }

    /// Nil of bytes that are no set, or one of more pages than `largestResource` asks for.
    init?(compressed bytes: [UInt8], largestResource: Int64) {
        guard bytes.count > ResourceSet.headerBytes else { return nil }
        let count = bytes.withUnsafeBytes {
            UInt32(littleEndian: $0.loadUnaligned(as: UInt32.self))
        }
        let mostPages = (max(0, largestResource) >> ResourceSet.pageBits) + 1
        // Deflate makes 1032 bytes of one at most.
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
