internal import PrefetchModel

/// A box of a file or of another box (ISO/IEC 14496-12, 4.2; also ISO/IEC 15444-1, I.4, and ISO/IEC
/// 18181-2).
///
/// It begins with a 32-bit length and a type. Length 1 announces a 64-bit length after the type;
/// length 0 extends the box to the end of the file.
struct Box {
    let type: UInt32
    let start: Int
    /// Whether the box ends where the file does, wherever that is.
    let isOpenEnded: Bool
    /// The box without its length and type.
    let payload: Range<Int>

    /// Whether the box has this four-character type, such as `"ftyp"`.
    func isA(_ type: StaticString) -> Bool { self.type == Box.code(type) }

    static func code(_ type: StaticString) -> UInt32 {
        (0..<4).reduce(0) { $0 << 8 | UInt32(type.utf8Start[$1]) }
    }

    /// The codes of types with spaces between them.
    static func codes(_ types: String) -> Set<UInt32> {
        Set(types.split(separator: " ").map { $0.utf8.reduce(0) { $0 << 8 | UInt32($1) } })
    }

    /// Returns the first box of a type; nil without one.
    ///
    /// - Throws: As ``BoxWalk/box()``, for the boxes before it.
    static func first(
        _ type: StaticString, of source: UnsafeRawBufferPointer, in payload: Range<Int>? = nil,
        allowsOpenEnds: Bool = false
    ) throws(CodecError) -> Box? {
        var walk = BoxWalk(source, in: payload, allowsOpenEnds: allowsOpenEnds)
        while let box = try walk.box() {
            if box.isA(type) { return box }
        }
        return nil
    }
}

/// Iterates over consecutive boxes that fill a range.
struct BoxWalk {
    private let source: UnsafeRawBufferPointer
    private let isWholeFile: Bool
    private let allowsOpenEnds: Bool
    private var next: Int
    private let end: Int

    /// Iterates over the boxes of a whole file, or of the box with this payload. With
    /// `allowsOpenEnds` a box of length 0 may also extend to the end of another.
    init(
        _ source: UnsafeRawBufferPointer, in payload: Range<Int>? = nil,
        allowsOpenEnds: Bool = false
    ) {
        self.source = source
        isWholeFile = payload == nil
        self.allowsOpenEnds = isWholeFile || allowsOpenEnds
        next = payload?.lowerBound ?? 0
        end = payload?.upperBound ?? source.count
    }

    /// Returns the next box; nil at the end.
    ///
    /// - Throws: `corrupt`; truncated if a top-level box extends beyond the end of the file.
    mutating func box() throws(CodecError) -> Box? {
        guard next < end else { return nil }
        guard end - next >= 8, let length = source.number(at: next, bytes: 4) else { throw past() }
        let type = UInt32(truncatingIfNeeded: source.bigEndian32(at: next + 4))
        var head = 8
        var total = length
        switch length {
        case 0:
            guard allowsOpenEnds else { throw .broken("a box within another has no length") }
            total = end - next
        case 1:
            head = 16
            guard end - next >= 16 else { throw past() }
            guard let long = source.number(at: next + 8, bytes: 8) else {
                throw .broken("a box has an impossible length")
            }
            total = long
        default: break
        }
        guard total >= head else { throw .broken("a box is shorter than its head") }
        guard total <= end - next else { throw past() }
        defer { next += total }
        return Box(
            type: type, start: next, isOpenEnded: length == 0,
            payload: (next + head)..<(next + total))
    }

    /// Whether one of the remaining boxes, then the last, is open-ended. Half of such a file looks
    /// whole, if only its boxes are checked.
    mutating func reachesOpenEnd() -> Bool {
        while let box = try? box() {
            if box.isOpenEnded { return true }
        }
        return false
    }

    /// The boxes of a file, up to the first damaged one.
    static func boxes(of source: UnsafeRawBufferPointer) -> [Box] {
        var walk = BoxWalk(source)
        var boxes: [Box] = []
        while boxes.count < CodecLimits.maximumPieces, let box = try? walk.box() {
            boxes.append(box)
        }
        return boxes
    }

    private func past() -> CodecError {
        isWholeFile ? .cut("a box passes the end of the file") : .broken("a box passes its end")
    }
}

extension [ImagePiece] {
    /// A file of boxes, without some of them.
    init(_ source: UnsafeRawBufferPointer, where isKept: (Box) -> Bool) {
        self = []
        var walk = BoxWalk(source)
        while let box = try? walk.box() {
            if isKept(box) { append(source: box.start..<box.payload.upperBound) }
        }
    }
}
