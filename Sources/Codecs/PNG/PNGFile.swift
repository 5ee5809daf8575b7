internal import PrefetchModel

/// The chunks of a PNG file (PNG third edition, section 5), found without decoding.
struct PNGFile {
    let source: UnsafeRawBufferPointer
    struct Chunk {
        /// Four letters, the first in the most significant byte.
        let type: UInt32
        /// The whole chunk, from its length to its CRC.
        let range: Range<Int>
        var data: Range<Int> { range.lowerBound + 8..<range.upperBound - 4 }
    }

    static let endBytes = 12

    /// In file order, including the end chunk. Incomplete if the data ends early or
    /// ``checkPieces()`` throws.
    private(set) var chunks: [Chunk] = []
    private var hasTooManyChunks = false
    let width: Int
    let height: Int
    let bitDepth: Int
    let colorType: Int
    let isInterlaced: Bool
    private(set) var orientation = ExifOrientation.upright
    /// The first undamaged EXIF chunk, wherever it is.
    private(set) var exifChunk: Chunk?
    /// Nil for a still image and for an invalid animation.
    private(set) var animation: PNGAnimation?
    /// Whether an animation was dropped deliberately, so the source cannot be stored unchanged.
    private(set) var isWithoutAnimation = false

    /// - Throws: `unsupported` for Apple's variant, `corrupt` without a valid header chunk.
    init(_ source: UnsafeRawBufferPointer) throws(CodecError) {
        self.source = source
        guard source.count >= 33 else { throw .cutHeader }
        if source.holds("CgBI", at: 12) {
            throw .unsupported("a PNG of Apple's own variant (CgBI)")
        }
        guard source.bigEndian32(at: 8) == 13, source.holds("IHDR", at: 12) else {
            throw .broken("no header chunk")
        }
        width = source.bigEndian32(at: 16)
        height = source.bigEndian32(at: 20)
        bitDepth = Int(source[24])
        colorType = Int(source[25])
        isInterlaced = source[28] != 0
        guard (1...0x7FFF_FFFF).contains(width), (1...0x7FFF_FFFF).contains(height) else {
            throw .broken("bad width or height")
        }
        guard [1, 2, 4, 8, 16].contains(bitDepth), [0, 2, 3, 4, 6].contains(colorType) else {
            throw .broken("bad bit depth or colour type")
        }
        var offset = 8
        while source.count - offset >= 12 {
            let length = source.bigEndian32(at: offset)
            guard length <= source.count - offset - 12 else { break }
            let type = UInt32(source.bigEndian32(at: offset + 4))
            let chunk = Chunk(type: type, range: offset..<offset + 12 + length)
            guard chunks.count < CodecLimits.maximumPieces else {
                hasTooManyChunks = true
                break
            }
            chunks.append(chunk)
            offset = chunk.range.upperBound
            if type == .eXIf, exifChunk == nil, isIntact(chunk) {
                exifChunk = chunk
                orientation = ExifOrientation.value(inTIFF: data(of: chunk))
            }
            if type == .IEND { break }
        }
        animation = PNGAnimation(in: self)
    }

    /// The file reduced to its static image.
    var withoutAnimation: PNGFile {
        var file = self
        file.animation = nil
        file.isWithoutAnimation = animation != nil
        return file
    }

    /// Whether animation chunks make no animation.
    var isAnimationInvalid: Bool { animation == nil && !isWithoutAnimation }

    /// Checks the number of chunks. Called after the limits that the header chunk decides, which
    /// apply before the rest of a body has arrived.
    func checkPieces() throws(CodecError) {
        guard !hasTooManyChunks else {
            throw .limitExceeded("more than \(CodecLimits.maximumPieces) chunks")
        }
    }

    func data(of chunk: Chunk) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: source[chunk.data])
    }

    /// The image data of a still picture's last chunk, if the file ends inside the checksums at its
    /// end. All rows may be there.
    var cutImageData: Range<Int>? {
        guard let last = chunks.last, last.type != .IEND, !hasTooManyChunks,
            last.type == .IDAT || !chunks.contains(where: { $0.type == .IDAT }),
            !chunks.contains(where: { $0.type == .acTL })
        else { return nil }
        let start = last.range.upperBound + 8
        guard source.holds("IDAT", at: start - 4) else { return nil }
        let length = source.bigEndian32(at: start - 8)
        // The sums of the stream and of the chunk have four bytes each.
        return start + length + 4 - source.count <= 8
            ? start..<min(start + length, source.count) : nil
    }

    /// Whether the end chunk has a wrong checksum, which says nothing about pixels.
    var hasDamagedEnd: Bool { chunks.last.map { $0.type == .IEND && !isIntact($0) } ?? false }

    /// Whether the file ends in or behind its image data, and before or inside its end chunk, or
    /// inside one that decoders pass over. Only ``cutImageData`` may lack pixels. An announced
    /// animation has all its frames.
    var lacksEnd: Bool {
        if cutImageData != nil { return true }
        guard let last = chunks.last, last.type != .IEND, !hasTooManyChunks,
            chunks.contains(where: { $0.type == .IDAT }),
            animation != nil || !chunks.contains(where: { $0.type == .acTL })
        else { return false }
        guard source.holds(8, at: last.range.upperBound) else { return true }
        let type = UInt32(source.bigEndian32(at: last.range.upperBound + 4))
        return type == .IEND || PNGFile.isWellFormed(type) && type & 0x2000_0000 != 0
    }

    /// The chunks before the image data.
    var leadingChunks: ArraySlice<Chunk> { chunks.prefix { $0.type != .IDAT } }

    var channels: Int { [1, 1, 3, 1, 2, 2, 4][colorType] }

    func imageHeader() throws(CodecError) -> ImageHeader {
        guard width.multipliedReportingOverflow(by: height).overflow == false else {
            throw .tooManyPixels("\(width)×\(height) pixels")
        }
        var header = ImageHeader(
            format: .png, widthInPixels: width, heightInPixels: height, bitDepth: bitDepth,
            isProgressiveOrInterlaced: isInterlaced, orientation: orientation, channels: channels,
            memory: DecoderMemory(
                hasPackedProfile: chunks.contains { $0.type == .iCCP }, isIndexed: colorType == 3,
                hasTransparentColours: chunks.contains { $0.type == .tRNS }),
            sourceBytes: source.count, isAnimated: animation != nil)
        header.frames = max(animation?.count ?? 1, 1)
        return header
    }
}

extension UInt32 {
    static let IHDR: UInt32 = 0x4948_4452
    static let PLTE: UInt32 = 0x504C_5445
    static let IDAT: UInt32 = 0x4944_4154
    static let IEND: UInt32 = 0x4945_4E44
    static let eXIf: UInt32 = 0x6558_4966
    static let gAMA: UInt32 = 0x6741_4D41
    static let cHRM: UInt32 = 0x6348_524D
    static let sRGB: UInt32 = 0x7352_4742
    static let iCCP: UInt32 = 0x6943_4350
    static let sBIT: UInt32 = 0x7342_4954
    static let tRNS: UInt32 = 0x7452_4E53
    static let cICP: UInt32 = 0x6349_4350
    static let mDCV: UInt32 = 0x6D44_4356
    static let cLLI: UInt32 = 0x634C_4C49
    static let bKGD: UInt32 = 0x624B_4744
    static let hIST: UInt32 = 0x6849_5354
    static let tIME: UInt32 = 0x7449_4D45
    static let pCAL: UInt32 = 0x7043_414C
    static let sPLT: UInt32 = 0x7350_4C54
    static let iTXt: UInt32 = 0x6954_5874
    /// The manifest of C2PA.
    static let caBX: UInt32 = 0x6361_4258
}
