#if GIF
    internal import CGIF
    internal import CPNG
    internal import Glibc
    internal import PrefetchModel

    extension GIFSource: AnimationDecoding {
        var animation: AnimationDescription? {
            guard file.frames > 1 else { return nil }
            let (first, all) = file.disposals
            return AnimationDescription(
                frames: file.frames, plays: file.plays,
                // The canvas before the first frame is transparent.
                isOpaque: !file.hasAlpha && !first.contains(DISPOSE_PREVIOUS)
                    && !all.contains(DISPOSE_BACKGROUND), hasPalettes: true)
        }

        func decodeFrames(
            _ interruption: Interruption,
            _ body: (borrowing Raster, FrameControl) throws(CodecError) -> Void
        ) throws(CodecError) {
            let start = try source.start
            var limits = GIFSource.libraryLimits(interruption)
            var opened: OpaquePointer?
            try interruption.run { message in
                cgif_open(
                    start, source.count, UInt32(header.widthInPixels),
                    UInt32(header.heightInPixels), &limits, message, &opened)
            }
            guard let reader = opened else { throw .outOfMemory("no memory for the decoder") }
            defer { cgif_close(reader) }
            while true {
                var frame = cgif_frame()
                try interruption.run { cgif_next(reader, &frame, $0) }
                guard let rows = frame.rows else { return try checkEnd() }
                let raster = Raster(
                    owning: cpng_image_of(rows, frame.width, frame.height, 4, interruption.pointer))
                try body(raster, FrameControl(frame))
            }
        }
    }

    extension FrameControl {
        fileprivate init(_ frame: cgif_frame) {
            self.init(
                x: Int(frame.x), y: Int(frame.y), width: Int(frame.width),
                height: Int(frame.height),
                delay: FrameDelay(numerator: Int(frame.delay_centiseconds), denominator: 100),
                disposal: frame.disposal == DISPOSE_BACKGROUND
                    ? .background : frame.disposal == DISPOSE_PREVIOUS ? .previous : .none,
                isBlended: true)
        }
    }

    /// Disposal methods (GIF89a, section 23).
    private let (DISPOSE_BACKGROUND, DISPOSE_PREVIOUS): (Int32, Int32) = (2, 3)

    extension GIFFile {
        /// The number of plays; 0 for no end. Without a loop count it is 1.
        fileprivate var plays: Int {
            guard
                let loop = blocks.first(where: { if case .loop = $0.kind { true } else { false } }),
                // Introducer, label, the program's name, then a block of three bytes.
                loop.range.count >= 18, source[loop.range.lowerBound + 14] == 3,
                source[loop.range.lowerBound + 15] & 7 == 1
            else { return 1 }
            let repetitions = source.littleEndian16(at: loop.range.lowerBound + 16)
            return repetitions == 0 ? 0 : repetitions + 1
        }

        /// The disposal methods of control blocks: those before the first frame, and all.
        fileprivate var disposals: (first: [Int32], all: [Int32]) {
            var (first, all): ([Int32], [Int32]) = ([], [])
            var isBeforeFrames = true
            for block in blocks {
                switch block.kind {
                case .control where block.range.count >= 8:
                    let disposal = Int32(source[block.range.lowerBound + 3] >> 2 & 7)
                    all.append(disposal)
                    if isBeforeFrames { first.append(disposal) }
                case .frame: isBeforeFrames = false
                default: break
                }
            }
            return (first, all)
        }
    }

    extension AnimationEncoder {
        static let gif = AnimationEncoder(
            format: .gif, sideLimit: SideLimit(subject: "a GIF", pixels: 65_535),
            room: MetadataRoom(exif: 0), growth: 2,
            // Two canvases, the next frame, indices, planes for fewer colours, and their cells.
            memory: { 18 * $0.pixels + ByteEstimate(1 << 20) },
            encode: { animation, metadata, _, interruption throws(CodecError) in
                let made = try GIFAnimationEncoding.encoded(animation, interruption)
                guard let packet = metadata[.xmp] else { return made }
                return try GIFFile.file(made, with: packet)
            })
    }

    enum GIFAnimationEncoding {
        /// Writes the frames with a palette each. Delays are rounded to hundredths of a second.
        static func encoded(
            _ animation: TransformedAnimation, _ interruption: Interruption
        ) throws(CodecError) -> ImageBytes {
            var writer: OpaquePointer?
            let status = cgif_begin(
                UInt32(animation.size.width), UInt32(animation.size.height),
                UInt32(clamping: animation.description.plays), animation.mostBytes,
                interruption.pointer, &writer)
            try check(status, animation, interruption)
            guard let writer else { throw .outOfMemory("no memory for the encoder") }
            defer { cgif_discard(writer) }
            try animation.forEachFrame { picture, delay throws(CodecError) in
                guard let rows = picture.rows.rows else { return }
                let status = cgif_add(
                    writer, rows + 1, picture.stride, Int32(picture.channels),
                    UInt32(min(delay.units(perSecond: 100), 65_535)))
                try check(status, animation, interruption)
            }
            var (bytes, count): (UnsafeMutablePointer<UInt8>?, Int) = (nil, 0)
            try check(cgif_end(writer, &bytes, &count), animation, interruption)
            guard let bytes else { throw .outOfMemory("no output") }
            return ImageBytes(owning: bytes, count: count)
        }

        private static func check(
            _ status: ccodec_status, _ animation: TransformedAnimation, _ interruption: Interruption
        ) throws(CodecError) {
            if status == CCODEC_LIMIT { throw .tooLargeAnimation(animation) }
            try interruption.check(status, noMemory: "no memory for the encoder")
        }
    }
#endif
