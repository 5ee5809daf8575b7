#if GIF
    internal import CGIF
    internal import CPNG
    internal import PrefetchModel

    extension ImageCodec {
        /// GIF by giflib: decoded, and not encoded. `same` keeps its data; its pixels become PNG.
        static let gif: ImageCodec? = ImageCodec(
            decoder: { "gif/\(GIFSource.version)-2" }, same: .gif, source: GIFSource.self,
            animationEncoder: .gif)
    }

    /// A GIF with all its blocks.
    struct GIFSource: DataKeeping {
        let source: UnsafeRawBufferPointer
        let header: ImageHeader
        private let limits: CodecLimits
        let file: GIFFile

        let note = WarningNote()

        static var version: String { String(cString: cgif_library_version()) }

        init(
            _ source: UnsafeRawBufferPointer, header: ImageHeader, limits: CodecLimits
        ) throws(CodecError) {
            file = try GIFFile(source)
            try file.checkPieces()
            self.source = source
            self.header = header
            self.limits = limits
            if file.lacksTrailer { note.note(GIFContainer.noTrailer) }
        }

        /// Decoding expands indices, so the samples are RGB, or RGB and alpha.
        static func header(of source: UnsafeRawBufferPointer) throws(CodecError) -> ImageHeader {
            let file = try GIFFile(source)
            var header = ImageHeader(
                format: .gif, widthInPixels: file.width, heightInPixels: file.height, bitDepth: 8,
                isProgressiveOrInterlaced: file.isInterlaced, channels: file.hasAlpha ? 4 : 3,
                sourceBytes: source.count)
            header.isAnimated = file.frames > 1
            // None yet at the beginning of a file.
            header.frames = max(file.frames, 1)
            // Codes have 12 bits at most (GIF89a, appendix F), and palettes 256 colours.
            if (9...11).contains(file.mostCodeBits) {
                header.libraryRefusal =
                    "giflib \(version) does not decode a GIF with LZW code size "
                    + "\(file.mostCodeBits)"
            }
            // A row of at most 65,535 indices, and the library's code tables.
            header.memory.libraryBytes = 128 << 10
            return header
        }

        /// Nothing is kept: every check follows the codes.
        static func structureMemoryBytes(of header: ImageHeader, within budget: Int) -> Int {
            header.memory.libraryBytes
        }

        /// Whether the file is an animation is known at its second frame, or its end.
        static func outlook(
            on header: ImageHeader, of beginning: UnsafeRawBufferPointer
        ) throws(CodecError) -> HeaderOutlook {
            let file = try GIFFile(beginning)
            if file.end != nil || header.isAnimated {
                return HeaderOutlook(headers: [header], isFinal: true)
            }
            var animated = header
            animated.isAnimated = true
            animated.frames = 2
            return HeaderOutlook(headers: [header, animated], isFinal: false)
        }

        func check(
            _ depth: CheckDepth, memoryBytes: Int, _ interruption: Interruption
        ) throws(CodecError) {
            if depth != .pixels { try checkFrames() }
            if depth != .ignoredByDecoder { try decode(into: nil, interruption) }
        }

        private func checkFrames() throws(CodecError) {
            var budget = FrameBudget(limits)
            for case .frame(let width, let height) in file.blocks.map(\.kind) {
                try budget.take(ByteEstimate(width) * ByteEstimate(height))
            }
        }

        /// The first frame on its transparent canvas. All other frames are verified.
        func raster(
            at scale: DecodingScale, _ interruption: Interruption
        ) throws(CodecError) -> Raster {
            let raster = try Raster(
                width: header.widthInPixels, height: header.heightInPixels,
                channels: header.channels, isClear: true, interruption)
            try decode(into: raster.picture, interruption)
            return raster
        }

        private func decode(
            into canvas: ccodec_picture?, _ interruption: Interruption
        ) throws(CodecError) {
            let start = try source.start
            var libraryLimits = GIFSource.libraryLimits(interruption)
            try interruption.run { message in
                func run(_ canvas: UnsafePointer<ccodec_picture>?) -> ccodec_status {
                    cgif_decode(start, source.count, &libraryLimits, canvas, message)
                }
                return if let canvas { withUnsafePointer(to: canvas) { run($0) } } else { run(nil) }
            }
            try checkEnd()
        }

        /// - Throws: `corrupt` for a file that ends between two blocks, but not for one that only
        ///   lacks its trailer.
        func checkEnd() throws(CodecError) {
            guard file.end != nil || file.lacksTrailer else { throw .cutImage }
        }

        /// The frames' declared sizes are counted before.
        static func libraryLimits(_ interruption: Interruption) -> cgif_limits {
            cgif_limits(
                maximum_frames: UInt32(CodecLimits.maximumPieces),
                interruption: interruption.pointer)
        }

        func pieces(keptBy recipe: Recipe) -> [ImagePiece] {
            let malformed = recipe.stripping == .none ? file.malformedBlocks : []
            note.noteMalformed(malformed.map { _ in "extension" }, "block")
            return file.stripped(recipe.stripping, without: malformed)
        }

        var metadata: CarriedMetadata { CarriedMetadata(xmp: file.xmp) }

        var companions: Set<Companion> { file.hasManifest ? [.manifest] : [] }
    }
#else
    extension ImageCodec {
        static let gif: ImageCodec? = nil
    }
#endif
