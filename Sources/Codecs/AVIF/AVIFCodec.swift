#if AVIF
    internal import CAVIF
    internal import CPNG
    internal import PrefetchModel

    extension ImageCodec {
        /// AVIF by libavif, dav1d and aom. `same` keeps data that is lossless, deeper than 8 bits,
        /// or no finer than the quality.
        static let avif: ImageCodec? = ImageCodec(
            decoder: { LibAVIF.decoder }, same: .avif, source: AVIFSource.self, encoder: .avif,
            // libavif 0.11 writes no number of plays, and holds all coded frames without telling
            // their size, which has no limit then.
            animationEncoder: .webP)
    }

    /// The library as loaded.
    enum LibAVIF {
        /// Different without libavif, so its failures are retried once it is installed.
        static let decoder =
            "avif/\(missing == nil ? versions.joined(separator: "+") : "missing")-4"

        /// Loads libavif. The reason that it cannot be loaded; nil on success.
        static var missing: String? {
            cavif_load().map {
                "\(String(cString: $0)); Debian's package is libavif16, of Debian 12 libavif15"
            }
        }

        /// The versions of libavif and its dav1d as loaded; empty if they cannot be loaded.
        static var versions: [Substring] {
            withMessage(64) { cavif_library_versions($0) }.text.split(separator: " ")
        }

        private static var version: String { String(versions.first ?? "") }

        /// Returns the message for a file that the library does not decode, or not rightly.
        static func refusal(_ reason: String) -> String {
            "libavif \(version) does not decode an AVIF with \(reason)"
        }

        static func container(
            of source: UnsafeRawBufferPointer
        ) throws(CodecError) -> cavif_header {
            var header = cavif_header()
            try AVIFView.read(source) { (start, count) throws(CodecError) in
                try check(of: source) { message in
                    cavif_read_header(
                        start, count, UInt32(CodecLimits.maximumPieces), &header, message)
                }
            }
            return header
        }

        /// Runs a call of libavif, which may read `source`.
        static func check(
            of source: UnsafeRawBufferPointer? = nil, _ interruption: Interruption? = nil,
            _ body: (UnsafeMutablePointer<CChar>) -> ccodec_status
        ) throws(CodecError) {
            let (status, text) = withMessage(CCODEC_MESSAGE_BYTES, body)
            switch status {
            case CCODEC_OK: return
            case CCODEC_TRUNCATED: throw .cutImage
            case CCODEC_UNSUPPORTED: throw .unsupported(refusal(text))
            case CCODEC_FAILED: throw .encodingFailed(text)
            case CCODEC_LIMIT: throw .limitExceeded("libavif \(version) refuses an AVIF: \(text)")
            case CCODEC_OUT_OF_MEMORY: throw .outOfMemory("no memory for libavif")
            case CCODEC_INTERRUPTED: throw interruption?.error ?? .cancelled
            case CCODEC_NO_LIBRARY:
                // Concerns sources and results alike.
                throw .unsupported(
                    "AVIF needs libavif, and libavif cannot be loaded: \(missing ?? text)")
            default:
                // libavif reports a box that passes the end of the file as damage.
                if let cut = source.flatMap(HEIFContainer.truncation) { throw cut }
                throw .broken(text.isEmpty ? "damaged data" : text)
            }
        }
    }

    /// An AVIF, its container read.
    struct AVIFSource: DataKeeping {
        let source: UnsafeRawBufferPointer
        let header: ImageHeader
        private let limits: CodecLimits
        let container: cavif_header
        private let places: HEIFMetadata
        let note = WarningNote()

        init(
            _ source: UnsafeRawBufferPointer, header: ImageHeader, limits: CodecLimits
        ) throws(CodecError) {
            self.source = source
            self.header = header
            self.limits = limits
            container = try LibAVIF.container(of: source)
            places = try HEIFMetadata(source)
            if container.frames < 2, try HEIFItems(source)?.contradictsSizes == true {
                throw .broken("a size that its data contradicts")
            }
        }

        /// Samples of 10 and 12 bits become 16: lossless in a PNG, and a JPEG has 8 anyway.
        static func header(of source: UnsafeRawBufferPointer) throws(CodecError) -> ImageHeader {
            let items = try HEIFItems(source)
            if LibAVIF.missing == nil, let reason = items?.refusal {
                return ImageHeader(
                    undecoded: .avif, source, libraryRefusal: LibAVIF.refusal(reason))
            }
            let container: cavif_header
            do throws(CodecError) {
                container = try LibAVIF.container(of: source)
            } catch {
                let text: String? =
                    switch error {
                    case .unsupported(let text): text
                    // Each reader makes something else of them.
                    case .corrupt(_, isTruncated: false)
                    where (items?.associationBoxes ?? 0) > 1:
                        LibAVIF.refusal("several boxes ipma")
                    default: nil
                    }
                guard let text, LibAVIF.missing == nil else { throw error }
                return ImageHeader(undecoded: .avif, source, libraryRefusal: text)
            }
            guard max(container.coded_width, container.coded_height) <= mostSidePixels else {
                throw .limitExceeded(
                    "\(container.width)×\(container.height): an AVIF with more than "
                        + "\(mostSidePixels) pixels a side")
            }
            var header = ImageHeader(
                format: .avif, widthInPixels: Int(container.width),
                heightInPixels: Int(container.height), bitDepth: container.depth > 8 ? 16 : 8,
                orientation: Int(container.orientation), channels: container.has_alpha ? 4 : 3,
                sourceBytes: source.count)
            header.isAnimated = container.frames > 1
            header.frames = max(Int(container.frames), 1)
            header.memory.libraryBytes =
                libraryBytes(container) + (AVIFView.isCopied(source) ? source.count : 0)
            // Quantiser 0 is lossless. The encoder makes 8 bits.
            if !header.isAnimated, container.depth == 8, let quantizer = items?.quantizer,
                quantizer > 0
            {
                header.lossyQuality = QualityCurve.aom.quality(at: Double(quantizer) / 4)
            }
            return header
        }

        /// The limit of browsers: libavif's default, `AVIF_DEFAULT_IMAGE_DIMENSION_LIMIT`.
        private static let mostSidePixels: UInt32 = 32768

        /// The memory of libavif and dav1d: 1.6 times the bytes of all samples. A grid takes 2.3
        /// times, which the header does not tell; a sequence 4.7 times, since its frames refer to
        /// others.
        private static func libraryBytes(_ container: cavif_header) -> Int {
            let pixels =
                ByteEstimate(Int(container.coded_width)) * ByteEstimate(Int(container.coded_height))
            let sampleBytes: ByteEstimate = container.depth > 8 ? 2 : 1
            let samples =
                pixels * sampleBytes * ByteEstimate(Int(container.samples_of_two_pixels)) / 2
            return container.frames > 1
                ? (6 * samples + ByteEstimate(16 << 20)).count
                : (23 * samples / 10 + ByteEstimate(2 << 20)).count
        }

        /// An ICC profile overrides the container's code points.
        var colours: SourceColours {
            if let profile { return SourceColours(profile) }
            return SourceColours(
                primaries: Int(container.primaries), transfer: Int(container.transfer),
                peak: statedPeak ?? RGBSpace.usualPeak, ofA: "an AVIF")
        }

        /// The brightest light of the main item or of the track that libavif shows.
        private var statedPeak: Double? {
            guard let items = try? HEIFItems(source) else {
                return HEIFTrack.shown(in: source)?.peak
            }
            return items.peak
        }

        /// Damage inside pictures, except for a cut, is found by decoding alone.
        func check(
            _ depth: CheckDepth, memoryBytes: Int, _ interruption: Interruption
        ) throws(CodecError) {
            switch depth {
            case .ignoredByDecoder: try checkFrames()
            case .structure:
                if container.is_cut { throw .cutImage }
                try checkFrames()
            case .pixels: try readFrames(keeping: 0, interruption) { _, _ in }
            }
        }

        private func checkFrames() throws(CodecError) {
            guard container.frames > 1 else { return }
            var budget = FrameBudget(limits)
            let frame = header.stride(ByteEstimate(Int(container.coded_width)))
            try budget.take(
                frame * ByteEstimate(Int(container.coded_height))
                    * ByteEstimate(Int(container.frames)))
        }

        func raster(
            at scale: DecodingScale, _ interruption: Interruption
        ) throws(CodecError) -> Raster {
            var first: Raster?
            try readFrames(keeping: 1, interruption) { _, rows in
                first = raster(owning: rows, interruption)
            }
            guard var raster = first.take() else { throw .outOfMemory("no pixels") }
            raster.orientation = header.orientation
            return raster
        }

        /// The raster of libavif's rows.
        func raster(
            owning rows: UnsafeMutablePointer<UInt8>, _ interruption: Interruption
        ) -> Raster {
            var image = cpng_image_of(
                rows, container.width, container.height, Int32(header.channels),
                interruption.pointer)
            if header.bitDepth == 16 {
                image.bit_depth = 16
                image.row_bytes *= 2
                image.filter_distance *= 2
            }
            return Raster(owning: image)
        }

        func libraryLimits(_ interruption: Interruption) -> cavif_limits {
            // No picture is larger than the header's; the decoder's blocks have 128 pixels a side.
            let (width, height) = (Int(container.coded_width), Int(container.coded_height))
            let most = (width + 127) / 128 * 128 * ((height + 127) / 128 * 128)
            return cavif_limits(
                maximum_pixels: UInt64(most), maximum_frames: UInt32(CodecLimits.maximumPieces),
                interruption: interruption.pointer)
        }

        /// Decodes all frames, and calls `body` with the first `count` ones and their rows, which
        /// it owns.
        func readFrames(
            keeping count: Int, _ interruption: Interruption,
            _ body: (cavif_frame, UnsafeMutablePointer<UInt8>) throws(CodecError) -> Void
        ) throws(CodecError) {
            try AVIFView.read(source) { (start, size) throws(CodecError) in
                var (limits, header) = (libraryLimits(interruption), container)
                var reader: OpaquePointer?
                try LibAVIF.check(of: source, interruption) { message in
                    cavif_open(start, size, &limits, &header, message, &reader)
                }
                guard let reader else { throw .outOfMemory("no memory for the decoder") }
                defer { cavif_close(reader) }
                for index in 0... {
                    var frame = cavif_frame()
                    try LibAVIF.check(of: source, interruption) { message in
                        cavif_next(reader, index < count, &frame, message)
                    }
                    guard frame.is_present else { return }
                    if let rows = frame.rows { try body(frame, rows) }
                }
            }
        }

        var keepsProfileAlways: Bool { true }

        func pieces(keptBy recipe: Recipe) -> [ImagePiece] {
            places.pieces(
                keptBy: recipe.stripping, note, besides: AVIFView.essentialMarks(in: source))
        }

        /// The ICC profile; nil without a whole one for RGB, or for grey.
        private var profile: [UInt8]? {
            guard let profile = libraryProfile,
                profile.count <= CodecLimits.maximumMetadataBytes,
                ICCProfile.fits(profile, channels: 3)
                    || container.is_grey && ICCProfile.fits(profile, channels: 1)
            else { return nil }
            return profile
        }

        private var libraryProfile: [UInt8]? {
            var count = 0
            // Without memory for a copy of the file, the picture has no profile.
            let copy = try? AVIFView.read(source) { start, size in
                cavif_copy_profile(start, size, &count)
            }
            guard let copy else { return nil }
            return ImageBytes(owning: copy, count: count).withUnsafeBytes { [UInt8]($0) }
        }

        var companions: Set<Companion> { places.companions }

        var metadata: CarriedMetadata { places.carried(turnedTo: header.orientation) }
    }
#else
    extension ImageCodec {
        static let avif: ImageCodec? = nil
    }
#endif
