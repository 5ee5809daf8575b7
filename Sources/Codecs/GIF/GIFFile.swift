#if GIF
    internal import PrefetchModel

    /// The blocks of a GIF (GIF87a, GIF89a), found without decoding, little-endian:
    ///
    /// - 13 bytes: signature, screen size, flags, background, aspect; then the palette if the flags
    ///   announce one;
    /// - extensions: 0x21, a label, then sub-blocks;
    /// - frames: 0x2C, position and size, flags, palette, minimum code size, then sub-blocks;
    /// - 0x3B, the end.
    ///
    /// Extensions and frames appear in any number. A sub-block is a length of 1 to 255 and that
    /// many bytes; a 0 ends the list.
    ///
    /// A screen smaller than its first frame is enlarged to it, as in browsers.
    struct GIFFile {
        let source: UnsafeRawBufferPointer
        enum BlockKind {
            case frame(width: Int, height: Int)
            /// The control block of the next frame: duration, transparency, disposal.
            case control
            /// The loop count of an animation.
            case loop
            /// Comments, text, and private data of programs.
            case other
        }

        struct DataBlock {
            let kind: BlockKind
            let range: Range<Int>
        }

        private static let headerBytes = 13
        fileprivate static let descriptionBytes = 10

        let width: Int
        let height: Int
        /// Whether pixels of the first frame, or of the canvas around it, may be transparent.
        let hasAlpha: Bool
        let isInterlaced: Bool
        /// The largest minimum code size of a frame, in bits.
        private(set) var mostCodeBits = 0
        /// In file order; incomplete if the data ends early.
        private(set) var blocks: [DataBlock] = []
        private(set) var frames = 0
        /// The offset after signature, screen and palette.
        private let start: Int
        /// The offset after the byte that ends the file; nil if it is missing.
        private(set) var end: Int?
        /// Whether the trailer is all that is missing: the data ends behind a block that announces
        /// no other.
        private(set) var lacksTrailer = false
        private var hasTooManyBlocks = false

        /// Reads the available blocks.
        ///
        /// - Throws: `corrupt` if the data ends before the description of the first frame, or has
        ///   no frame; `limitExceeded`.
        init(_ source: UnsafeRawBufferPointer) throws(CodecError) {
            self.source = source
            guard source.count >= GIFFile.headerBytes else { throw .cutHeader }
            let palette = GIFFile.paletteBytes(source[10])
            start = GIFFile.headerBytes + palette
            var screen = (width: source.littleEndian16(at: 6), height: source.littleEndian16(at: 8))
            var (offset, isTransparent) = (start, false)
            var first: (isCovering: Bool, isInterlaced: Bool)?
            while offset < source.count, blocks.count < CodecLimits.maximumPieces {
                switch source[offset] {
                case 0x3B: end = offset + 1
                case 0x21 where source.count - offset >= 3:
                    let kind = GIFFile.kind(ofExtension: source, at: offset)
                    if case .control = kind, first == nil, source.count - offset >= 8,
                        source[offset + 2] == 4
                    {
                        isTransparent = source[offset + 3] & 1 != 0
                    }
                    guard let next = GIFFile.end(ofParts: source, from: offset + 2) else { break }
                    blocks.append(DataBlock(kind: kind, range: offset..<next))
                    offset = next
                    continue
                case 0x2C where source.count - offset >= GIFFile.descriptionBytes:
                    let frame = FrameDescription(source, at: offset)
                    if first == nil {
                        screen.width = max(screen.width, frame.x + frame.width)
                        screen.height = max(screen.height, frame.y + frame.height)
                        first = (frame.covers(screen.width, screen.height), frame.isInterlaced)
                    }
                    if frame.data <= source.count {
                        mostCodeBits = max(mostCodeBits, Int(source[frame.data - 1]))
                    }
                    guard let next = GIFFile.end(ofParts: source, from: frame.data) else { break }
                    blocks.append(DataBlock(kind: frame.kind, range: offset..<next))
                    frames += 1
                    offset = next
                    continue
                case 0x21, 0x2C: break
                default:
                    guard first != nil else { throw .broken("a block of an unknown kind") }
                }
                break
            }
            hasTooManyBlocks = blocks.count >= CodecLimits.maximumPieces
            let isAnnounced = if case .control? = blocks.last?.kind { true } else { false }
            lacksTrailer = offset == source.count && frames > 0 && !isAnnounced
            guard let first else {
                if end != nil { throw .broken("no frames") }
                if hasTooManyBlocks { throw .limitExceeded(GIFFile.tooMany) }
                throw .cutHeader
            }
            guard screen.width > 0, screen.height > 0 else {
                throw .broken("an image without pixels")
            }
            (width, height) = screen
            hasAlpha = isTransparent || !first.isCovering
            isInterlaced = first.isInterlaced
        }

        private static let tooMany = "more than \(CodecLimits.maximumPieces) blocks"

        func checkPieces() throws(CodecError) {
            guard !hasTooManyBlocks else { throw .limitExceeded(GIFFile.tooMany) }
        }

        fileprivate static func paletteBytes(_ flags: UInt8) -> Int {
            flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1)
        }

        /// Returns the offset after the sub-blocks; nil if the data ends first.
        private static func end(ofParts source: UnsafeRawBufferPointer, from begin: Int) -> Int? {
            var offset = begin
            while offset < source.count {
                let length = Int(source[offset])
                offset += 1 + length
                if length == 0 { return offset }
            }
            return nil
        }

        private static func kind(
            ofExtension source: UnsafeRawBufferPointer, at offset: Int
        ) -> BlockKind {
            switch source[offset + 1] {
            case 0xF9: .control
            case 0xFF
            where source.holds("\u{0B}NETSCAPE2.0", at: offset + 2)
                || source.holds("\u{0B}ANIMEXTS1.0", at: offset + 2):
                .loop
            default: .other
            }
        }

        /// The bytes of the first extension of this program, behind its name.
        private func data(of program: StaticString) -> Range<Int>? {
            let block = blocks.first {
                source[$0.range.lowerBound + 1] == 0xFF
                    && source.holds(program, at: $0.range.lowerBound + 2)
            }
            return block.map { $0.range.dropFirst(GIFFile.bytesOfName) }
        }

        /// Introducer, label, and the name with its length.
        private static let bytesOfName = 14

        /// Whether there is a manifest of C2PA.
        var hasManifest: Bool { data(of: "\u{0B}C2PA_GIF") != nil }

        /// The end of XMP, which leads a reader of sub-blocks from any byte to the last zero (XMP
        /// Specification, part 3: GIF).
        private static let endOfXMP: [UInt8] = [1] + (0...255).reversed() + [0]

        /// The packet of XMP. Some programs write it in sub-blocks.
        var xmp: [UInt8]? {
            guard let data = data(of: "\u{0B}XMP DataXMP") else { return nil }
            let end = GIFFile.endOfXMP
            if source[data].suffix(end.count).elementsEqual(end) {
                return [UInt8](source[data.dropLast(end.count)])
            }
            var (packet, offset) = ([UInt8](), data.lowerBound)
            while offset < data.upperBound {
                let next = offset + 1 + Int(source[offset])
                packet += source[offset + 1..<min(next, data.upperBound)]
                offset = next
            }
            return packet
        }

        /// Returns a file that has no XMP, with a packet before its trailer.
        static func file(_ made: ImageBytes, with packet: [UInt8]) throws(CodecError) -> ImageBytes
        {
            let extended = [0x21, 0xFF, 0x0B] + Array("XMP DataXMP".utf8)
            var pieces: [ImagePiece] = [
                .source(0..<made.count - 1), .made(extended + packet + endOfXMP),
            ]
            pieces.append(source: made.count - 1..<made.count)
            return try made.withUnsafeBytes { (made) throws(CodecError) in
                try ImageBytes(joining: pieces, of: made)
            }
        }

        /// The extensions with a first part of another length than its kind's, in order: plain text
        /// and programs' own (GIF89a, sections 25 and 26).
        var malformedBlocks: [DataBlock] {
            blocks.filter { block in
                guard case .other = block.kind else { return false }
                let length = source[block.range.lowerBound + 2]
                return switch source[block.range.lowerBound + 1] {
                case 0x01: length != 12
                case 0xFF: length != 11
                default: false
                }
            }
        }

        /// Returns the file's own frames without blocks that do not affect them, and without bytes
        /// after the end; or everything but `malformed` blocks. A missing trailer is added.
        func stripped(
            _ stripping: Recipe.Stripping, without malformed: [DataBlock]
        ) -> [ImagePiece] {
            let trailer = ImagePiece.made([0x3B])
            guard stripping != .none else {
                return Array(source: 0..<source.count, without: malformed.map(\.range))
                    + (lacksTrailer ? [trailer] : [])
            }
            var pieces: [ImagePiece] = []
            pieces.append(source: 0..<start)
            for block in blocks {
                switch block.kind {
                case .frame, .control, .loop: pieces.append(source: block.range)
                case .other: break
                }
            }
            if let end {
                pieces.append(source: end - 1..<end)
            } else {
                pieces.append(trailer)
            }
            return pieces
        }
    }

    /// The image descriptor (GIF89a, section 20).
    private struct FrameDescription {
        let x: Int
        let y: Int
        let width: Int
        let height: Int
        let isInterlaced: Bool
        /// The offset of the sub-blocks. The minimum code size precedes them, behind the palette.
        let data: Int

        init(_ source: UnsafeRawBufferPointer, at offset: Int) {
            x = source.littleEndian16(at: offset + 1)
            y = source.littleEndian16(at: offset + 3)
            width = source.littleEndian16(at: offset + 5)
            height = source.littleEndian16(at: offset + 7)
            let flags = source[offset + 9]
            isInterlaced = flags & 0x40 != 0
            data = offset + GIFFile.descriptionBytes + GIFFile.paletteBytes(flags) + 1
        }

        var kind: GIFFile.BlockKind { .frame(width: width, height: height) }

        func covers(_ width: Int, _ height: Int) -> Bool {
            x == 0 && y == 0 && self.width == width && self.height == height
        }
    }
#endif
