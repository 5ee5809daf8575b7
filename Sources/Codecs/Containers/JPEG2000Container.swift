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
            return try checkCodestream(source, 0..<source.count, interruption)
        }
        var walk = BoxWalk(source)
        var (hasHeader, hasCodestream) = (false, false)
        var warning: ImageWarning?
        while let box = try walk.box() {
            try interruption.check(after: 1024)
            hasHeader = hasHeader || box.isA("jp2h")
            if box.isA("jp2c") {
                hasCodestream = true
                let found = try checkCodestream(source, box.payload, interruption)
                warning = warning ?? found
            }
        }
        guard hasHeader else { throw .cut("no box jp2h") }
        guard hasCodestream else { throw .cut("no box jp2c") }
        return warning
    }

    /// Checks that a codestream has its end marker: as the last bytes, or where the lengths of its
    /// tile-parts lead (A.4.2).
    private static func checkCodestream(
        _ source: UnsafeRawBufferPointer, _ range: Range<Int>, _ interruption: Interruption
    ) throws(CodecError) -> ImageWarning? {
        let end: [UInt8] = [0xFF, 0xD9]
        if source[range].suffix(2).elementsEqual(end) { return nil }
        let cut = CodecError.cut("the codestream has no end")
        var offset = range.lowerBound + 2
        while offset <= range.upperBound - 4 {
            try interruption.check(after: 16)
            if source[offset...].starts(with: end) {
                return ImageWarning(text: "bytes stand behind the end of the codestream")
            }
            guard source[offset...].starts(with: [0xFF, 0x90]) else {
                offset += 2 + source.bigEndian16(at: offset + 2)
                continue
            }
            guard let length = source.number(at: offset + 6, bytes: 4) else { throw cut }
            if length > 0 {
                offset += max(length, 12)
                continue
            }
            // The last tile-part ends with the codestream. No coded data has the end marker.
            while offset < range.upperBound, !source[offset...].starts(with: end) {
                try interruption.check(after: 1)
                offset += 1
            }
        }
        // Not more than a byte behind it.
        guard source.dropFirst(offset).prefix(2).elementsEqual(end) else { throw cut }
        return ImageWarning(text: "bytes stand behind the end of the codestream")
    }

    static let startOfCodestream: [UInt8] = [0xFF, 0x4F, 0xFF, 0x51]

    static func isBare(_ bytes: UnsafeRawBufferPointer) -> Bool {
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
