internal import PrefetchModel

/// JPEG XL: a bare codestream (ISO/IEC 18181-1), or boxes that fill the file (ISO/IEC 18181-2).
///
/// A bare codestream does not state its length, so only signature and header are checked. Boxes
/// hold a codestream in one piece, or in parts up to the last one.
enum JPEGXLContainer: ImageContainer {
    static func size(in beginning: UnsafeRawBufferPointer) -> DeclaredSize {
        codestream(in: beginning).map { Header($0).size } ?? .later
    }

    static func orientation(in beginning: UnsafeRawBufferPointer) -> Int {
        codestream(in: beginning).map { Header($0).orientation } ?? ExifOrientation.upright
    }

    /// Returns the codestream or its first part; nil if it begins later.
    private static func codestream(
        in beginning: UnsafeRawBufferPointer
    ) -> UnsafeRawBufferPointer? {
        if isBare(beginning) { return beginning }
        var offset = 0
        // The box of the codestream may be incomplete.
        while let length = beginning.number(at: offset, bytes: 4), beginning.holds(8, at: offset) {
            let isWide = length == 1
            let head = offset + (isWide ? 16 : 8)
            guard beginning.count > head else { return nil }
            let isWhole = beginning.holds("jxlc", at: offset + 4)
            if isWhole || beginning.holds("jxlp", at: offset + 4) {
                let start = head + (isWhole ? 0 : 4)
                guard beginning.count > start else { return nil }
                return UnsafeRawBufferPointer(rebasing: beginning[start...])
            }
            let total = isWide ? beginning.number(at: offset + 8, bytes: 8) ?? 0 : length
            guard total >= 8, beginning.holds(total, at: offset) else { return nil }
            offset += total
        }
        return nil
    }

    static func check(
        _ source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) -> ImageWarning? {
        guard !isBare(source) else {
            if case .later = Header(source).size {
                throw .cut("the codestream ends in its header")
            }
            return nil
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
        return nil
    }

    /// Half of a bare codestream looks whole.
    static func statesItsEnd(_ source: UnsafeRawBufferPointer) -> Bool {
        var walk = BoxWalk(source)
        return !isBare(source) && !walk.reachesOpenEnd()
    }

    static func isBare(_ bytes: UnsafeRawBufferPointer) -> Bool { bytes.first == 0xFF }

    /// The beginning of a codestream, read from the lowest bit on.
    private struct Header {
        private(set) var size = DeclaredSize.later
        private(set) var orientation = ExifOrientation.upright
        private let bytes: UnsafeRawBufferPointer
        /// In bits.
        private var position = 16

        init(_ bytes: UnsafeRawBufferPointer) {
            self.bytes = bytes
            guard bytes.count >= 2 else { return }
            guard bytes[0] == 0xFF, bytes[1] == 0x0A else {
                size = .unknown
                return
            }
            size = readSize()
            if case .known = size { orientation = readOrientation() }
        }

        private mutating func next(_ count: Int) -> Int? {
            guard position + count <= 8 * bytes.count else { return nil }
            defer { position += count }
            return (0..<count).reduce(0) { value, index in
                let place = position + index
                return value | Int(bytes[place / 8] >> UInt8(place % 8) & 1) << index
            }
        }

        private mutating func extent(isSmall: Bool) -> Int? {
            if isSmall { return next(5).map { ($0 + 1) * 8 } }
            guard let width = next(2) else { return nil }
            return next([9, 13, 18, 30][width]).map { $0 + 1 }
        }

        /// The SizeHeader after the signature (ISO/IEC 18181-1, D.2).
        private mutating func readSize() -> DeclaredSize {
            guard let small = next(1), let height = extent(isSmall: small == 1),
                let ratio = next(3)
            else { return .later }
            // Width : height.
            let ratios = [(1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1)]
            guard ratio == 0 else {
                let (over, under) = ratios[ratio - 1]
                return .known(width: height * over / under, height: height)
            }
            guard let width = extent(isSmall: small == 1) else { return .later }
            return .known(width: width, height: height)
        }

        /// The first fields of the ImageMetadata (D.3): all defaults, extra fields, orientation.
        private mutating func readOrientation() -> Int {
            guard next(1) == 0, next(1) == 1, let value = next(3) else {
                return ExifOrientation.upright
            }
            return value + 1
        }
    }
}
