internal import PrefetchModel

/// JPEG XL: a bare codestream (ISO/IEC 18181-1), or boxes that fill the file (ISO/IEC 18181-2).
///
/// A bare codestream does not state its length, so only signature and header are checked. Boxes
/// hold a codestream in one piece, or in parts up to the last one.
enum JPEGXLContainer: ImageContainer {
    static func recognition(of bytes: UnsafeRawBufferPointer) -> Recognition {
        Recognition(of: bytes, by: [0xFF, 0x0A], boxed("JXL "))
    }

    static func size(in beginning: UnsafeRawBufferPointer) -> DeclaredSize {
        if isBare(beginning) { return size(ofCodestream: beginning) }
        var offset = 0
        // The box of the codestream may be incomplete.
        while let length = beginning.number(at: offset, bytes: 4), beginning.holds(8, at: offset) {
            let isWide = length == 1
            let head = offset + (isWide ? 16 : 8)
            guard beginning.count > head else { return .later }
            let isWhole = beginning.holds("jxlc", at: offset + 4)
            if isWhole || beginning.holds("jxlp", at: offset + 4) {
                let start = head + (isWhole ? 0 : 4)
                guard beginning.count > start else { return .later }
                return size(ofCodestream: UnsafeRawBufferPointer(rebasing: beginning[start...]))
            }
            let total = isWide ? beginning.number(at: offset + 8, bytes: 8) ?? 0 : length
            guard total >= 8, beginning.holds(total, at: offset) else { return .later }
            offset += total
        }
        return .later
    }

    static func check(
        _ source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) {
        guard !isBare(source) else {
            if case .later = size(ofCodestream: source) {
                throw .cut("the codestream ends in its header")
            }
            return
        }
        var walk = BoxWalk(source)
        var (hasType, isComplete) = (false, false)
        while let box = try walk.box() {
            try interruption.check(after: 1024)
            hasType = hasType || box.isA("ftyp")
            isComplete = isComplete || box.isA("jxlc")
            // The highest bit of a part's number marks the last part.
            if box.isA("jxlp"), !box.payload.isEmpty, source[box.payload.lowerBound] & 0x80 != 0 {
                isComplete = true
            }
        }
        guard hasType else { throw .cut("no box ftyp") }
        guard isComplete else { throw .cut("no whole codestream") }
    }

    private static func isBare(_ bytes: UnsafeRawBufferPointer) -> Bool { bytes.first == 0xFF }

    /// The SizeHeader after the signature (ISO/IEC 18181-1, D.2), read from the lowest bit on.
    private static func size(ofCodestream bytes: UnsafeRawBufferPointer) -> DeclaredSize {
        guard bytes.count >= 2 else { return .later }
        guard bytes[0] == 0xFF, bytes[1] == 0x0A else { return .unknown }
        var position = 16
        func bits(_ count: Int) -> Int? {
            guard position + count <= 8 * bytes.count else { return nil }
            defer { position += count }
            return (0..<count).reduce(0) { value, index in
                let place = position + index
                return value | Int(bytes[place / 8] >> UInt8(place % 8) & 1) << index
            }
        }
        func extent(_ isSmall: Bool) -> Int? {
            if isSmall { return bits(5).map { ($0 + 1) * 8 } }
            return bits(2).flatMap { bits([9, 13, 18, 30][$0]) }.map { $0 + 1 }
        }
        guard let small = bits(1), let height = extent(small == 1), let ratio = bits(3) else {
            return .later
        }
        // Width : height.
        let ratios = [(1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1)]
        guard ratio == 0 else {
            let (over, under) = ratios[ratio - 1]
            return .known(width: height * over / under, height: height)
        }
        guard let width = extent(small == 1) else { return .later }
        return .known(width: width, height: height)
    }
}
