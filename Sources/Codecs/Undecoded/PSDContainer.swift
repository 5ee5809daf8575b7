internal import PrefetchModel

/// Photoshop's PSD and its large form PSB (Adobe Photoshop File Formats Specification, 2019): a
/// header, three sections after their lengths, and the merged picture.
enum PSDContainer: ImageContainer {
    private static let headerBytes = 26

    static func size(in beginning: UnsafeRawBufferPointer) -> DeclaredSize {
        guard let height = beginning.number(at: 14, bytes: 4),
            let width = beginning.number(at: 18, bytes: 4)
        else { return .later }
        return width > 0 && height > 0 ? .known(width: width, height: height) : .unknown
    }

    static func check(
        _ source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) -> ImageWarning? {
        let picture = try start(in: source)
        guard let channels = source.number(at: 12, bytes: 2),
            let height = source.number(at: 14, bytes: 4),
            let width = source.number(at: 18, bytes: 4),
            let depth = source.number(at: 22, bytes: 2),
            let compression = source.number(at: picture, bytes: 2)
        else { throw .cut("the file ends before its picture") }
        let rows = ByteEstimate(channels) * ByteEstimate(height)
        guard rows.count > 0, width > 0, [1, 8, 16, 32].contains(depth) else {
            throw .broken("bad header")
        }
        let data = picture + 2
        switch compression {
        case 0:
            let row = (ByteEstimate(width) * ByteEstimate(depth) + 7) / 8
            guard source.holds((rows * row).count, at: data) else { throw .cutImage }
        case 1: try checkRows(rows, at: data, of: source, interruption)
        case 2, 3:
            // The length of a zlib stream is known only to a decoder.
            guard data < source.count else { throw .cutImage }
        default: throw .broken("an unknown compression")
        }
        return nil
    }

    /// Returns the offset of the merged picture, behind palette, resources and layers.
    private static func start(in source: UnsafeRawBufferPointer) throws(CodecError) -> Int {
        var offset = headerBytes
        for bytes in [4, 4, isLarge(source) ? 8 : 4] {
            guard let length = source.number(at: offset, bytes: bytes),
                source.holds(length, at: offset + bytes)
            else { throw .cut("a section passes the end of the file") }
            offset += bytes + length
        }
        return offset
    }

    private static func isLarge(_ source: UnsafeRawBufferPointer) -> Bool {
        source.number(at: 4, bytes: 2) == 2
    }

    /// Checks run-length encoded rows: the lengths of all, then their data.
    private static func checkRows(
        _ rows: ByteEstimate, at start: Int, of source: UnsafeRawBufferPointer,
        _ interruption: Interruption
    ) throws(CodecError) {
        let bytes = isLarge(source) ? 4 : 2
        let table = (rows * ByteEstimate(bytes)).count
        guard source.holds(table, at: start) else { throw .cutImage }
        var end = start + table
        for place in stride(from: start, to: start + table, by: bytes) {
            try interruption.check(after: bytes)
            guard let length = source.number(at: place, bytes: bytes),
                source.holds(length, at: end)
            else { throw .cutImage }
            end += length
        }
    }

    static func statesItsEnd(_ source: UnsafeRawBufferPointer) -> Bool {
        guard let picture = try? start(in: source) else { return true }
        return ![2, 3].contains(source.number(at: picture, bytes: 2))
    }
}
