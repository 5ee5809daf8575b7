#if WebP
    internal import CPNG
    internal import CWebP
    internal import PrefetchModel

    extension ImageCodec {
        /// WebP (RFC 9649) by libwebp. `same` keeps data that is lossless or no finer than the
        /// quality.
        static let webP: ImageCodec? = ImageCodec(
            decoder: { "webp/\(WebPSource.version)" }, same: .webP, source: WebPSource.self,
            encoder: .webP, animationEncoder: .webP)
    }

    /// A WebP with all its chunks.
    struct WebPSource: DataKeeping {
        let source: UnsafeRawBufferPointer
        let header: ImageHeader
        let limits: CodecLimits
        let file: WebPFile
        /// Whether its pictures are frames, even a single one.
        private let isAnimation: Bool
        let note = WarningNote()

        init(
            _ source: UnsafeRawBufferPointer, header: ImageHeader, limits: CodecLimits
        ) throws(CodecError) {
            file = try WebPFile(source)
            try file.check()
            isAnimation = try WebPSource.features(of: source).is_animated
            self.source = source
            self.header = header
            self.limits = limits
        }

        private var still: UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(rebasing: source[..<file.pictureEnd])
        }

        static var version: String { withMessage(16) { cwebp_library_version($0) }.text }

        static func header(of source: UnsafeRawBufferPointer) throws(CodecError) -> ImageHeader {
            let features = try features(of: source)
            let file = try WebPFile(source)
            let (width, height) = (Int(features.width), Int(features.height))
            var header = ImageHeader(
                format: .webp, widthInPixels: width, heightInPixels: height, bitDepth: 8,
                orientation: file.orientation,
                channels: features.has_alpha || features.is_animated ? 4 : 3,
                sourceBytes: source.count)
            header.isAnimated = file.frames.count > 1
            header.frames = max(file.frames.count, 1)
            header.memory.libraryBytes = libraryBytes(features, file)
            header.lossyQuality = file.lossyData.flatMap { data in
                VP8FrameHeader(UnsafeRawBufferPointer(rebasing: source[data])).map {
                    QualityCurve.libwebp.quality(at: $0.libwebpQuality)
                }
            }
            return header
        }

        /// The memory that libwebp 1.2.4 allocates for decoding, by its source code.
        ///
        /// A lossless picture takes four bytes a pixel, and the images of its transforms are at
        /// most a 16th as large. Its prefix code tables are counted once the whole file is known;
        /// before that they count as nothing. A lossy picture takes a few rows, and its alpha
        /// channel twice, stored and decoded.
        private static func libraryBytes(_ features: cwebp_features, _ file: WebPFile) -> Int {
            let pixels = ByteEstimate(Int(features.width)) * ByteEstimate(Int(features.height))
            let groups = file.isCut ? 0 : tableBytes(features, file)
            let rows = ByteEstimate(Int(features.width)) * 128 + ByteEstimate(1 << 20)
            // Verification decodes to a reduced size.
            let scaled = pixels / 16
            if !features.is_lossy { return (5 * pixels + groups + rows + scaled).count }
            return (features.has_alpha ? 3 * pixels + groups + rows + scaled : rows + scaled).count
        }

        /// The most table memory of any single picture.
        private static func tableBytes(
            _ features: cwebp_features, _ file: WebPFile
        ) -> ByteEstimate {
            var effort = mostEffort
            func bytes(_ range: Range<Int>, _ width: Int, _ height: Int) -> UInt64 {
                let chunks = UnsafeRawBufferPointer(rebasing: file.source[range])
                guard let start = chunks.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
                    return 0
                }
                return cwebp_table_bytes(
                    start, chunks.count, UInt32(width), UInt32(height), &effort)
            }
            let most =
                features.is_animated
                ? file.frames.reduce(0) {
                    max($0, bytes($1.data, $1.control.width, $1.control.height))
                }
                : bytes(
                    WebPFile.riffBytes..<max(file.pictureEnd, WebPFile.riffBytes),
                    Int(features.width), Int(features.height))
            return ByteEstimate(Int(most))
        }

        /// The limit for counting the tables; a bit or a symbol is a step. A 100-megapixel file of
        /// libwebp's encoder takes a third of it.
        private static let mostEffort: UInt64 = 1 << 26

        static func features(
            of source: UnsafeRawBufferPointer
        ) throws(CodecError) -> cwebp_features {
            var features = cwebp_features()
            switch cwebp_read_header(try source.start, source.count, &features) {
            case CCODEC_OK: return features
            case CCODEC_TRUNCATED:
                throw .cutHeader
            default: throw .broken("a damaged header")
            }
        }

        /// Frames and metadata follow the header of an extended file.
        static func outlook(
            on header: ImageHeader, of beginning: UnsafeRawBufferPointer
        ) throws(CodecError) -> HeaderOutlook {
            let file = try WebPFile(beginning)
            guard file.isCut else { return HeaderOutlook(headers: [header], isFinal: true) }
            guard file.isExtended else {
                // A lossless picture has tables that are not known yet.
                let isLossy = try features(of: beginning).is_lossy
                return HeaderOutlook(headers: [header], isFinal: isLossy)
            }
            var (still, animated) = (header, header)
            still.isAnimated = false
            animated.isAnimated = true
            return HeaderOutlook(headers: [still, animated], isFinal: false)
        }

        /// Damage inside pictures is found by decoding alone.
        func check(
            _ depth: CheckDepth, memoryBytes: Int, _ interruption: Interruption
        ) throws(CodecError) {
            switch depth {
            case .ignoredByDecoder, .structure: try checkFrames()
            case .pixels where isAnimation: try verifyFrames(interruption)
            case .pixels:
                try decode(
                    still, header.widthInPixels, header.heightInPixels, into: nil, interruption)
            }
        }

        /// Checks the frames' number and sizes.
        ///
        /// - Throws: `corrupt` for an animation without frames; `tooManyPixels` for one over its
        ///   limit.
        private func checkFrames() throws(CodecError) {
            guard isAnimation else { return }
            guard !file.frames.isEmpty else { throw .broken("an animation without frames") }
            var budget = FrameBudget(limits)
            for frame in file.frames {
                try budget.take(
                    4 * ByteEstimate(frame.control.width) * ByteEstimate(frame.control.height))
            }
        }

        private func verifyFrames(_ interruption: Interruption) throws(CodecError) {
            for index in file.frames.indices { try decode(frame: index, into: nil, interruption) }
        }

        func decode(
            frame index: Int, into rows: cwebp_rows?, _ interruption: Interruption
        ) throws(CodecError) {
            let frame = file.frames[index]
            try CodecError.naming("frame", index, of: file.frames.count) {
                () throws(CodecError) in
                try decode(
                    UnsafeRawBufferPointer(rebasing: source[frame.data]), frame.control.width,
                    frame.control.height, into: rows, interruption)
            }
        }

        var colours: SourceColours { SourceColours(file.profile) }

        /// The picture; of an animation the first frame on its transparent canvas. All other frames
        /// are verified.
        func raster(
            at scale: DecodingScale, _ interruption: Interruption
        ) throws(CodecError) -> Raster {
            if isAnimation { try verifyFrames(interruption) }
            let raster = try Raster(
                width: header.widthInPixels, height: header.heightInPixels,
                channels: header.channels, isClear: isAnimation, orientation: header.orientation,
                interruption)
            var rows = cwebp_rows(
                first: raster.firstSample, stride: raster.stride, channels: Int32(raster.channels))
            if let frame = file.frames.first, isAnimation {
                rows.first += frame.control.y * raster.stride + frame.control.x * raster.channels
                try decode(
                    UnsafeRawBufferPointer(rebasing: source[frame.data]), frame.control.width,
                    frame.control.height, into: rows, interruption)
            } else {
                try decode(
                    still, header.widthInPixels, header.heightInPixels, into: rows, interruption)
            }
            return raster
        }

        func decode(
            _ data: UnsafeRawBufferPointer, _ width: Int, _ height: Int, into rows: cwebp_rows?,
            _ interruption: Interruption
        ) throws(CodecError) {
            guard let start = data.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
                throw .broken("a frame without data")
            }
            func run(_ rows: UnsafePointer<cwebp_rows>?) -> ccodec_status {
                cwebp_decode(
                    start, data.count, UInt32(width), UInt32(height), rows, interruption.pointer)
            }
            let status = if let rows { withUnsafePointer(to: rows) { run($0) } } else { run(nil) }
            switch status {
            case CCODEC_OK: return
            case CCODEC_TRUNCATED:
                throw .cutImage
            case CCODEC_OUT_OF_MEMORY: throw .outOfMemory("no memory for the decoder")
            case CCODEC_INTERRUPTED: throw interruption.error
            default: throw .broken("damaged data")
            }
        }

        func pieces(keptBy recipe: Recipe) -> [ImagePiece] {
            let malformed = recipe.stripping == .none ? file.malformedChunks : []
            note.noteMalformed(malformed.map(WebPFile.name), "chunk")
            return file.stripped(recipe.stripping, without: malformed)
        }

        func hasUnwrittenMetadata() -> Bool { file.hasOtherMetadata }

        var metadata: CarriedMetadata { CarriedMetadata(exif: file.exif, xmp: file.xmp) }

        var companions: Set<Companion> { file.hasManifest ? [.manifest] : [] }
    }
#else
    extension ImageCodec {
        static let webP: ImageCodec? = nil
    }
#endif
