internal import PrefetchModel

/// JPEG 2000 (ISO/IEC 15444-1): boxes that fill the file, with a header and a codestream (annex I),
/// or a bare codestream from SOC to EOC (annex A).
enum JPEG2000Container: ImageContainer {
    static func size(in beginning: UnsafeRawBufferPointer) -> DeclaredSize {
        if isBare(beginning) { return sizeOfCodestream(beginning) }
        return (try? statedSize(in: beginning)) ?? .later
    }

    private static func statedSize(
        in beginning: UnsafeRawBufferPointer
    ) throws(CodecError) -> DeclaredSize {
        var walk = BoxWalk(beginning)
        while let box = try walk.box() {
            guard box.isA("jp2h") else { continue }
            var children = BoxWalk(beginning, in: box.payload)
            guard let header = try children.box(), header.isA("ihdr") else { return .unknown }
            let start = header.payload.lowerBound
            guard header.payload.count >= 8,
                let height = beginning.number(at: start, bytes: 4),
                let width = beginning.number(at: start + 4, bytes: 4), width > 0, height > 0
            else { return .unknown }
            return .known(width: width, height: height)
        }
        return .later
    }

    static func check(
        _ source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) -> ImageWarning? {
        guard !isBare(source) else {
            guard source.suffix(2).elementsEqual([0xFF, 0xD9]) else {
                throw .cut("the codestream has no end")
            }
            return nil
        }
        var walk = BoxWalk(source)
        var (hasHeader, hasCodestream) = (false, false)
        while let box = try walk.box() {
            try interruption.check(after: 1024)
            hasHeader = hasHeader || box.isA("jp2h")
            if box.isA("jp2c") {
                hasCodestream = true
                guard source[box.payload].suffix(2).elementsEqual([0xFF, 0xD9]) else {
                    throw .cut("the codestream has no end")
                }
            }
        }
        guard hasHeader else { throw .cut("no box jp2h") }
        guard hasCodestream else { throw .cut("no box jp2c") }
        return nil
    }

    static let startOfCodestream: [UInt8] = [0xFF, 0x4F, 0xFF, 0x51]

    private static func isBare(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.starts(with: startOfCodestream)
    }

    /// The size in the SIZ segment (A.5.1): the reference grid without the offset of the picture.
    private static func sizeOfCodestream(_ bytes: UnsafeRawBufferPointer) -> DeclaredSize {
        guard let right = bytes.number(at: 8, bytes: 4),
            let bottom = bytes.number(at: 12, bytes: 4),
            let left = bytes.number(at: 16, bytes: 4), let top = bytes.number(at: 20, bytes: 4)
        else { return .later }
        guard right > left, bottom > top else { return .unknown }
        return .known(width: right - left, height: bottom - top)
    }
}
