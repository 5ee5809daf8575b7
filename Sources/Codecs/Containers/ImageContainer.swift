internal import PrefetchModel

/// A format that is recognised but not decoded: its size and a check of its structure.
///
/// No allocation depends on a length in the file, except in ``SVGContainer``: its parser has a
/// memory budget. Every loop of a length from the file checks the interruption.
protocol ImageContainer {
    /// The size of the picture if it is stored at a known place, before ``orientation(in:)``.
    static func size(in beginning: UnsafeRawBufferPointer) -> DeclaredSize

    /// The orientation that readers apply, as an EXIF value, 1…8; 1 while it is not known.
    static func orientation(in beginning: UnsafeRawBufferPointer) -> Int

    /// Follows the structure of a whole file to its end.
    ///
    /// `memoryBytes` is the reserved amount, see ``memoryBytes(ofSource:)``.
    ///
    /// - Returns: A fault that is accepted; nil for none.
    /// - Throws: `corrupt`, truncated if the file ends early; `limitExceeded`, `cancelled`.
    static func check(
        _ source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) -> ImageWarning?

    /// Whether the file's own bytes tell where it ends.
    static func statesItsEnd(_ source: UnsafeRawBufferPointer) -> Bool

    /// Returns the bytes that ``check(_:memoryBytes:_:)`` may allocate for a source of this length.
    static func memoryBytes(ofSource bytes: Int) -> Int
}

extension ImageContainer {
    static func memoryBytes(ofSource bytes: Int) -> Int { 0 }

    static func orientation(in beginning: UnsafeRawBufferPointer) -> Int { ExifOrientation.upright }

    static func statesItsEnd(_ source: UnsafeRawBufferPointer) -> Bool { true }
}

/// The picture's size as far as the beginning of a file states it.
enum DeclaredSize: Hashable {
    case known(width: Int, height: Int)
    /// If the file states its size, it does so after the available bytes.
    case later
    /// The size is not at a known place.
    case unknown
}

extension ImageFormat {
    /// The container parser of a format that this build, or another one, cannot decode.
    var container: (any ImageContainer.Type)? {
        switch self {
        case .webp: WebPContainer.self
        case .gif: GIFContainer.self
        case .tiff: TIFFContainer.self
        case .avif, .heif: HEIFContainer.self
        case .jpegXL: JPEGXLContainer.self
        case .jpeg2000: JPEG2000Container.self
        case .svg: SVGContainer.self
        case .pdf: PDFContainer.self
        case .psd: PSDContainer.self
        case .dds: DDSContainer.self
        case .qoi: QOIContainer.self
        case .pnm: PNMContainer.self
        case .icns: ICNSContainer.self
        case .exr: EXRContainer.self
        default: nil
        }
    }
}

extension UnsafeRawBufferPointer {
    /// Returns a number of 1…8 bytes; nil if it extends beyond the end or does not fit an `Int`.
    func number(at offset: Int, bytes: Int, isLittleEndian: Bool = false) -> Int? {
        guard offset >= 0, bytes <= count, offset <= count - bytes else { return nil }
        var value: UInt64 = 0
        for index in 0..<bytes {
            let place = isLittleEndian ? offset + bytes - 1 - index : offset + index
            value = value << 8 | UInt64(self[place])
        }
        return Int(exactly: value)
    }

    /// Whether `length` bytes are present from `offset` on.
    func holds(_ length: Int, at offset: Int) -> Bool {
        offset >= 0 && length >= 0 && length <= count && offset <= count - length
    }
}
