internal import CPNG
internal import PrefetchModel

/// The frames of an animated PNG (PNG third edition, sections 4.9 and 11.3.6), found without
/// decoding.
///
/// An animation is valid with:
///
/// - one `acTL` with valid values before the image data,
/// - the announced number of frames,
/// - consecutive sequence numbers,
/// - every frame inside the canvas.
///
/// Browsers do not play an invalid one as intended, and the standard prescribes the static image
/// instead (section 13). The file is then a still image, and its animation chunks are dropped.
/// Damaged chunks are handled separately (``PNGFile/damagedAnimationChunk(in:)``).
struct PNGAnimation {
    /// A frame with its own data. The static image is never one of these, even if it is the first
    /// frame.
    struct PNGFrame {
        let control: FrameControl
        var width: Int { control.width }
        var height: Int { control.height }
        /// The parts of its zlib stream: the data of `fdAT` after the sequence number.
        fileprivate(set) var data: [Range<Int>] = []
    }

    private(set) var frames: [PNGFrame] = []
    /// The static image's, if that is the first frame.
    private(set) var staticControl: FrameControl?
    /// The number of plays; 0 for no end.
    let plays: Int

    /// All that are shown.
    var count: Int { frames.count + (staticControl == nil ? 0 : 1) }

    /// Returns nil without a valid animation.
    init?(in file: PNGFile) {
        let source = file.source
        guard let announced = file.announcedFrames,
            let data = file.chunks.first(where: { $0.type == .acTL })?.data
        else { return nil }
        plays = source.bigEndian32(at: data.lowerBound + 4)
        var reader = Reader(source: source, canvasWidth: file.width, canvasHeight: file.height)
        for chunk in file.chunks {
            guard reader.takes(chunk) else { return nil }
        }
        guard reader.closesFrame(), reader.count == announced else { return nil }
        frames = reader.frames
        staticControl = reader.staticControl
    }

    /// Processes the chunks in file order.
    private struct Reader {
        let source: UnsafeRawBufferPointer
        let canvasWidth: Int
        let canvasHeight: Int
        /// Frames started, including the static image if it is one.
        var count = 0
        var frames: [PNGFrame] = []
        var staticControl: FrameControl?
        var open: PNGFrame?
        var sequenceNumber = 0
        var isBehindImageData = false

        /// - Returns: false if the animation is invalid.
        mutating func takes(_ chunk: PNGFile.Chunk) -> Bool {
            switch chunk.type {
            case .IDAT:
                isBehindImageData = true
                return true
            case .acTL: return !isBehindImageData
            case .fcTL: return hasNextNumber(chunk) && closesFrame() && opensFrame(chunk.data)
            case .fdAT:
                guard hasNextNumber(chunk) else { return false }
                open?.data.append(chunk.data.dropFirst(4))
                return open != nil
            default: return true
            }
        }

        mutating func closesFrame() -> Bool {
            guard let frame = open else { return true }
            open = nil
            frames.append(frame)
            return !frame.data.isEmpty
        }

        private mutating func hasNextNumber(_ chunk: PNGFile.Chunk) -> Bool {
            guard chunk.data.count >= 4,
                source.bigEndian32(at: chunk.data.lowerBound) == sequenceNumber
            else { return false }
            sequenceNumber += 1
            return true
        }

        /// Reads `fcTL`: sequence number, width, height, x, y, delay as a fraction, disposal,
        /// blending.
        private mutating func opensFrame(_ data: Range<Int>) -> Bool {
            guard data.count == 26 else { return false }
            let start = data.lowerBound
            let width = source.bigEndian32(at: start + 4)
            let height = source.bigEndian32(at: start + 8)
            let x = source.bigEndian32(at: start + 12)
            let y = source.bigEndian32(at: start + 16)
            // All have 32 bits, so no sum overflows an `Int`.
            guard width > 0, height > 0, x + width <= canvasWidth, y + height <= canvasHeight,
                source[start + 24] <= 2, source[start + 25] <= 1
            else { return false }
            count += 1
            let disposals: [FrameControl.Disposal] = [.none, .background, .previous]
            // A denominator of 0 means 100.
            let perSecond = source.bigEndian16(at: start + 22)
            let control = FrameControl(
                x: x, y: y, width: width, height: height,
                delay: FrameDelay(
                    numerator: source.bigEndian16(at: start + 20),
                    denominator: perSecond == 0 ? 100 : perSecond),
                disposal: disposals[Int(source[start + 24])],
                isBlended: source[start + 25] == 1)
            if isBehindImageData {
                open = PNGFrame(control: control)
                return true
            }
            // The static image is the first frame and fills the canvas.
            staticControl = control
            return count == 1 && width == canvasWidth && height == canvasHeight
        }
    }
}

extension PNGFile {
    /// The frame count in `acTL`, 1…2³¹−1; nil unless exactly one valid `acTL` precedes the image
    /// data.
    fileprivate var announcedFrames: Int? {
        let controls = leadingChunks.filter { $0.type == .acTL }
        guard controls.count == 1, let data = controls.first?.data, data.count == 8 else {
            return nil
        }
        let frames = source.bigEndian32(at: data.lowerBound)
        let plays = source.bigEndian32(at: data.lowerBound + 4)
        return (1...0x7FFF_FFFF).contains(frames) && plays <= 0x7FFF_FFFF ? frames : nil
    }

    /// The type of the first animation chunk with a wrong CRC; nil without one, or without
    /// ``announcedFrames``. Decoders of still images skip such a chunk silently, but here frames
    /// would be lost.
    var damagedAnimationChunk: UInt32? {
        let controls = leadingChunks.filter { $0.type == .acTL }
        if controls.contains(where: { !isIntact($0) }) { return .acTL }
        guard announcedFrames != nil else { return nil }
        return chunks.first {
            ($0.type == .fcTL || $0.type == .fdAT) && !isIntact($0)
        }?.type
    }

    /// Checks the unpacked size of all frames together, as rows with filter types.
    func checkFrames(_ limits: CodecLimits) throws(CodecError) {
        var budget = FrameBudget(limits)
        for frame in animation?.frames ?? [] {
            // A frame fits the canvas, with sides of 31 bits; a pixel has at most 64.
            let stride = (frame.width * channels * bitDepth + 7) / 8 + 1
            try budget.take(ByteEstimate(stride) * ByteEstimate(frame.height))
        }
    }

    /// Returns a frame as a still PNG: the file's pixel format, palette and transparency, with the
    /// frame's size and data.
    ///
    /// - Throws: `corrupt` if the data is longer than a chunk can be.
    func still(_ frame: PNGAnimation.PNGFrame) throws(CodecError) -> [ImagePiece] {
        func bytes(_ value: Int) -> [UInt8] { UInt32(value).bigEndianBytes }
        let length = frame.data.reduce(0) { $0 + $1.count }
        guard length <= 0x7FFF_FFFF else { throw .broken("a frame of \(length) bytes") }
        let header = bytes(frame.width) + bytes(frame.height) + source[24..<29]
        let name = Array("IDAT".utf8)
        var checksum = cpng_crc_continued(0, name, name.count)
        var pieces: [ImagePiece] = [.source(0..<8), .made(PNGFile.chunk(.IHDR, header))]
        for chunk in leadingChunks where chunk.type == .PLTE || chunk.type == .tRNS {
            pieces.append(.source(chunk.range))
        }
        pieces.append(.made(bytes(length) + name))
        for range in frame.data where !range.isEmpty {
            let part = UnsafeRawBufferPointer(rebasing: source[range])
            checksum = cpng_crc_continued(
                checksum, part.baseAddress?.assumingMemoryBound(to: UInt8.self), part.count)
            pieces.append(.source(range))
        }
        pieces.append(.made(bytes(Int(checksum)) + PNGFile.chunk(.IEND, [])))
        return pieces
    }
}

extension UInt32 {
    static let acTL: UInt32 = 0x6163_544C
    static let fcTL: UInt32 = 0x6663_544C
    static let fdAT: UInt32 = 0x6664_4154
}

extension PNGSource: AnimationDecoding {
    /// A frame's data is assembled.
    static func frameMemory(of header: ImageHeader) -> ByteEstimate {
        ByteEstimate(header.sourceBytes)
    }

    var animation: AnimationDescription? {
        guard let animation = file.animation else { return nil }
        let controls =
            [animation.staticControl].compactMap(\.self) + animation.frames.map(\.control)
        let hasAlpha = [4, 6].contains(file.colorType) || file.chunks.contains { $0.type == .tRNS }
        let isOpaque =
            !hasAlpha && controls.first?.covers(header.widthInPixels, header.heightInPixels) == true
            && controls.first?.disposal != .previous && controls.allSatisfy(\.keepsOpacity)
        return AnimationDescription(
            frames: animation.count, plays: animation.plays, isOpaque: isOpaque,
            hasPalettes: file.colorType == 3)
    }

    func decodeFrames(
        _ interruption: Interruption,
        _ body: (borrowing Raster, FrameControl) throws(CodecError) -> Void
    ) throws(CodecError) {
        guard let animation = file.animation else { return }
        if let control = animation.staticControl {
            let picture = try picture(source, interruption)
            try body(try picture.plain(hasColour: true, interruption), control)
        } else {
            _ = try decoded(from: source, wholeBytes: 0, interruption, cpng_verify)
        }
        try forEachFrame(interruption) { still, control throws(CodecError) in
            let picture = try picture(still, interruption)
            try body(try picture.plain(hasColour: true, interruption), control)
        }
    }
}
