internal import PrefetchModel

/// DirectDraw surfaces (DDS, Microsoft's programming guide): a header, and textures with their
/// mipmaps. Of a kind of pixels that is not listed here, the length is unknown.
enum DDSContainer: ImageContainer {
    static let headerBytes = 124

    static func size(in beginning: UnsafeRawBufferPointer) -> DeclaredSize {
        guard let height = number(12, beginning), let width = number(16, beginning) else {
            return .later
        }
        return width > 0 && height > 0 ? .known(width: width, height: height) : .unknown
    }

    static func check(
        _ source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) -> ImageWarning? {
        let layout = try SurfaceLayout(source)
        let bytes = layout.bytes?.count ?? 1
        guard source.holds(bytes, at: layout.dataOffset) else { throw .cutImage }
        return nil
    }

    static func statesItsEnd(_ source: UnsafeRawBufferPointer) -> Bool {
        guard let layout = try? SurfaceLayout(source) else { return true }
        return layout.bytes != nil
    }

    private static func number(_ offset: Int, _ source: UnsafeRawBufferPointer) -> Int? {
        source.number(at: offset, bytes: 4, isLittleEndian: true)
    }

    private struct SurfaceLayout {
        let dataOffset: Int
        /// The length of all textures; nil for an unknown kind of pixels.
        let bytes: ByteEstimate?

        init(_ source: UnsafeRawBufferPointer) throws(CodecError) {
            let isExtended = source.holds("DX10", at: 84)
            dataOffset = 4 + headerBytes + (isExtended ? 20 : 0)
            guard source.count >= dataOffset else { throw .cutHeader }
            func field(_ offset: Int) -> Int { source.littleEndian32(at: offset) }
            guard case .known(let width, let height) = size(in: source) else {
                throw .broken("an image without pixels")
            }
            let isVolume = field(112) & 0x20_0000 != 0
            let hasMipmaps = field(8) & 0x2_0000 != 0
            let faces = field(112) & 0x200 == 0 ? 1 : (field(112) & 0xFC00).nonzeroBitCount
            let textures = isExtended ? field(140) * (field(136) & 4 == 0 ? 1 : 6) : faces
            guard isExtended || field(80) & 4 != 0 || field(88) > 0 else {
                throw .broken("pixels of no bits")
            }
            guard let pixels = isExtended ? Pixels(dxgi: field(128)) : Pixels(source) else {
                bytes = nil
                return
            }
            var sides = (width: width, height: height, depth: isVolume ? max(field(24), 1) : 1)
            var texture = ByteEstimate(0)
            // No side has more than 32 bits.
            for _ in 0..<min(max(hasMipmaps ? field(28) : 1, 1), 32) {
                texture =
                    texture + pixels.bytes(sides.width, sides.height) * ByteEstimate(sides.depth)
                sides = (max(sides.width / 2, 1), max(sides.height / 2, 1), max(sides.depth / 2, 1))
            }
            bytes = texture * ByteEstimate(max(textures, 1))
        }
    }

    /// How pixels are stored.
    private enum Pixels {
        case bits(Int)
        /// Bytes of a block of four by four.
        case blocks(Int)

        func bytes(_ width: Int, _ height: Int) -> ByteEstimate {
            switch self {
            case .bits(let bits):
                (ByteEstimate(width) * ByteEstimate(bits) + 7) / 8 * ByteEstimate(height)
            case .blocks(let bytes):
                ByteEstimate((width + 3) / 4) * ByteEstimate((height + 3) / 4) * ByteEstimate(bytes)
            }
        }

        /// By the pixel format of the header (`DDS_PIXELFORMAT`).
        init?(_ source: UnsafeRawBufferPointer) {
            let isByCode = source.littleEndian32(at: 80) & 4 != 0
            guard isByCode else {
                self = .bits(source.littleEndian32(at: 88))
                return
            }
            if ["DXT1", "ATI1", "BC4U", "BC4S"].contains(where: { source.holds($0, at: 84) }) {
                self = .blocks(8)
                return
            }
            let large: [StaticString] = [
                "DXT2", "DXT3", "DXT4", "DXT5", "ATI2", "BC5U", "BC5S",
            ]
            if large.contains(where: { source.holds($0, at: 84) }) {
                self = .blocks(16)
                return
            }
            // Numbers of D3DFORMAT.
            switch source.littleEndian32(at: 84) {
            case 36, 110, 113, 115: self = .bits(64)
            case 111: self = .bits(16)
            case 112, 114: self = .bits(32)
            case 116: self = .bits(128)
            default: return nil
            }
        }

        /// By `DXGI_FORMAT`.
        init?(dxgi: Int) {
            switch dxgi {
            case 1...4: self = .bits(128)
            case 5...8: self = .bits(96)
            case 9...22: self = .bits(64)
            case 23...47, 67, 87...93: self = .bits(32)
            case 48...59, 85, 86, 115: self = .bits(16)
            case 60...65: self = .bits(8)
            case 70...72, 79...81: self = .blocks(8)
            case 73...78, 82...84, 94...99: self = .blocks(16)
            default: return nil
            }
        }
    }
}
