internal import PrefetchModel

/// A format that is known by its bytes and not decoded: what its container says without that.
///
/// All of it is arithmetic over the bytes: nothing is allocated by what a file says (but for ``SVGContainer``, whose
/// parser has a budget), and every loop that a file can make long looks at the interruption.
protocol ImageContainer {
    /// Whether a file begins in this way. No more than ``signatureBytes`` of it are there for sure.
    static func isAnnounced(by bytes: UnsafeRawBufferPointer) -> Bool

    /// The size of the picture, where that is said at a known place.
    static func size(in beginning: UnsafeRawBufferPointer) -> DeclaredSize

    /// Follows the structure of a whole file to its end.
    ///
    /// `memoryBytes` is what was reserved, from ``memoryBytes(ofSource:)``.
    ///
    /// - Throws: `corrupt`, truncated where the file ends early; `limitExceeded`, `cancelled`.
    static func check(
        _ source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError)

    /// What ``check(_:memoryBytes:_:)`` may allocate for a file of so many bytes.
    static func memoryBytes(ofSource bytes: Int) -> Int
}

extension ImageContainer {
    static func memoryBytes(ofSource bytes: Int) -> Int { 0 }
}

/// What the beginning of a file says of the picture's size.
enum DeclaredSize: Hashable {
    case known(width: Int, height: Int)
    /// It is said in what follows, if anywhere.
    case later
    /// It is not said at a known place.
    case unknown
}

extension ImageFormat {
    /// Of what has no codec in this build, and of formats that may have none in another.
    var container: (any ImageContainer.Type)? {
        switch self {
        case .jpeg, .png, .bmp, .icon: nil
        case .webp: WebPContainer.self
        case .gif: GIFContainer.self
        case .tiff: TIFFContainer.self
        case .avif: AVIFContainer.self
        case .heif: HEIFContainer.self
        case .jpegXL: JPEGXLContainer.self
        case .jpeg2000: JPEG2000Container.self
        case .svg: SVGContainer.self
        case .pdf: PDFContainer.self
        }
    }
}

extension CodecError {
    /// The structure of a file does not hold.
    static func broken(_ text: String) -> CodecError { .corrupt(text, isTruncated: false) }
    /// A file ends before its structure does.
    static func cut(_ text: String) -> CodecError { .corrupt(text, isTruncated: true) }
}

extension UnsafeRawBufferPointer {
    /// A number of 1…8 bytes; nil where it would pass the end, or does not fit an `Int`.
    func number(at offset: Int, bytes: Int, isLittleEndian: Bool = false) -> Int? {
        guard offset >= 0, bytes <= count, offset <= count - bytes else { return nil }
        var value: UInt64 = 0
        for index in 0..<bytes {
            let place = isLittleEndian ? offset + bytes - 1 - index : offset + index
            value = value << 8 | UInt64(self[place])
        }
        return Int(exactly: value)
    }

    /// Whether so many bytes from `offset` on are there.
    func holds(_ length: Int, at offset: Int) -> Bool {
        offset >= 0 && length >= 0 && length <= count && offset <= count - length
    }
}
