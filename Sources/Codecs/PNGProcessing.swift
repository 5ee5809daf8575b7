internal import CJPEG
internal import CPNG
internal import PrefetchModel

/// What can be made of one PNG source.
struct PNGProcessing {
    let source: UnsafeRawBufferPointer
    let header: ImageHeader
    let limits: CodecLimits
    private let file: PNGFile

    /// - Throws: `corrupt` when transparency or an animation is damaged, which the decoder would
    ///   leave out silently; `tooManyPixels` for an animation beyond its limit.
    init(
        source: UnsafeRawBufferPointer, header: ImageHeader, limits: CodecLimits
    ) throws(CodecError) {
        self.source = source
        self.header = header
        self.limits = limits
        file = try PNGFile(source)
        try file.checkSilentDamage(in: source)
        try file.checkFrames(limits)
    }

    /// The source as it is, after all its rows were decoded, those of an animation's frames too.
    func verified() throws(CodecError) -> ProcessedImage {
        let rows = try decoded(cpng_verify)
        return image(
            .source, decodeDuration: PNGProcessing.duration(rows) + (try verifyFrames()),
            encodeDuration: .zero)
    }

    /// The animation as it is, without its metadata.
    private func passedThrough() throws(CodecError) -> ProcessedImage {
        let rows = try decoded(cpng_verify)
        let duration = PNGProcessing.duration(rows) + (try verifyFrames())
        let begin = ThreadClock.now
        let kept = file.keptChunks(source, valid: rows.chunks, limits: limits)
        let output = try output(of: file.stripped(source, kept: kept))
        return image(output, decodeDuration: duration, encodeDuration: ThreadClock.now - begin)
    }

    private func output(
        of pieces: [ImagePiece]
    ) throws(CodecError) -> ProcessedImage.Output {
        if pieces.isWhole(source) { return .source }
        guard let copy = ImageBytes(joining: pieces, of: source) else {
            throw .outOfMemory("no memory for the output")
        }
        return .encoded(copy)
    }

    /// Decodes every frame that is not the static image, and keeps nothing of it.
    ///
    /// - Returns: the processor time of all.
    private func verifyFrames() throws(CodecError) -> Duration {
        guard let animation = file.animation else { return .zero }
        var duration = Duration.zero
        for (index, frame) in animation.frames.enumerated() {
            let pieces = try file.still(frame, in: source)
            guard let still = ImageBytes(joining: pieces, of: source) else {
                throw .outOfMemory("no memory for a frame")
            }
            do throws(CodecError) {
                let rows = try still.withUnsafeBytes { (still) throws(CodecError) in
                    try decoded(cpng_verify, from: still)
                }
                duration += PNGProcessing.duration(rows)
            } catch .corrupt(let text, _) {
                // Its end is not where the file's data ends.
                throw .corrupt(
                    "frame \(index + 1) of \(animation.frames.count): \(text)",
                    isTruncated: false)
            }
        }
        return duration
    }

    /// In its own colour type and bit depth, not interlaced; else the source's own data.
    /// An animation keeps the data it has.
    func rewritten(keepsLarger: Bool) throws(CodecError) -> ProcessedImage {
        if file.animation != nil { return try passedThrough() }
        var rows = try decoded(cpng_decode)
        defer { cpng_image_free(&rows) }
        let begin = ThreadClock.now
        let kept = file.keptChunks(source, valid: rows.chunks, limits: limits)
        let stripped = file.stripped(source, kept: kept)
        let chunks = kept.flatMap { piece -> [UInt8] in
            switch piece {
            case .source(let range): Array(source[range])
            case .made(let bytes): bytes
            }
        }
        let encoded = try PNGEncoding.encoded(
            &rows, chunks: chunks, maximumBytes: keepsLarger ? .max / 4 : stripped.byteCount)
        let output: ProcessedImage.Output
        if let encoded {
            output = isSource(encoded) ? .source : .encoded(encoded)
        } else {
            output = try self.output(of: stripped)
        }
        return image(
            output, decodeDuration: PNGProcessing.duration(rows),
            encodeDuration: ThreadClock.now - begin)
    }

    private func image(
        _ output: ProcessedImage.Output, decodeDuration: Duration, encodeDuration: Duration
    ) -> ProcessedImage {
        ProcessedImage(
            output: output, format: .png, widthInPixels: header.widthInPixels,
            heightInPixels: header.heightInPixels, decodeDuration: decodeDuration,
            encodeDuration: encodeDuration)
    }

    private func isSource(_ encoded: ImageBytes) -> Bool {
        encoded.count == source.count && encoded.withUnsafeBytes { $0.elementsEqual(source) }
    }

    /// As an upright JPEG, over white where the source is transparent. Gamma and chromaticities,
    /// which a JPEG cannot carry, are dropped.
    ///
    /// - Throws: `unsupported` for an animation, which would become one picture in silence.
    func converted(quality: Int) throws(CodecError) -> ProcessedImage {
        guard file.animation == nil else {
            throw .unsupported("an animated PNG, of which a JPEG would keep one picture only")
        }
        guard header.widthInPixels <= 65500, header.heightInPixels <= 65500 else {
            throw .unsupported("a JPEG has at most 65500 pixels a side")
        }
        var rows = try decoded(cpng_decode_opaque)
        defer { cpng_image_free(&rows) }
        let begin = ThreadClock.now
        let channels = rows.color_type == 0 ? 1 : 3
        guard var pixels = ImageBytes(uninitialised: rows.row_bytes * Int(rows.height)) else {
            throw .outOfMemory("no memory for the pixels")
        }
        pixels.fill { target in
            guard let start = target.baseAddress else { return }
            cpng_copy_pixels(&rows, start.assumingMemoryBound(to: UInt8.self))
        }
        cpng_image_free(&rows)
        let (width, height) = try ImageBytes.upright(
            &pixels, width: rows.width, height: rows.height, channels: channels,
            orientation: file.orientation)
        var segments: [UInt8] = []
        if let profile = file.profile(source, limits: limits) {
            segments = JPEGFile.profileSegments(profile)
        }
        var result = cjpeg_result()
        try pixels.withUnsafeBytes { (packed) throws(CodecError) in
            guard let start = packed.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
                return
            }
            try JPEGProcessing.check { message in
                cjpeg_encode(
                    start, width, height, Int32(channels), Int32(quality), segments,
                    segments.count, .max / 4, &result, message)
            }
        }
        guard let made = result.bytes else { throw .encodingFailed("no output") }
        return ProcessedImage(
            output: .encoded(ImageBytes(owning: made, count: result.length)), format: .jpeg,
            widthInPixels: Int(width), heightInPixels: Int(height),
            decodeDuration: PNGProcessing.duration(rows), encodeDuration: ThreadClock.now - begin)
    }

    private static func duration(_ rows: cpng_image) -> Duration {
        .nanoseconds(Int64(clamping: rows.nanoseconds))
    }

    private typealias Decoder = (
        UnsafePointer<UInt8>, Int, UnsafePointer<cpng_limits>, UnsafeMutablePointer<cpng_image>,
        UnsafeMutablePointer<CChar>
    ) -> cpng_status

    private func decoded(_ decoder: Decoder) throws(CodecError) -> cpng_image {
        try decoded(decoder, from: source)
    }

    private func decoded(
        _ decoder: Decoder, from source: UnsafeRawBufferPointer
    ) throws(CodecError) -> cpng_image {
        guard let bytes = source.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
            throw .notAnImage("no bytes")
        }
        var rows = cpng_image()
        var libraryLimits = cpng_limits(
            maximum_pixels: UInt64(limits.maximumPixels),
            maximum_chunk_bytes: UInt64(limits.maximumMetadataBytes), maximum_cached_chunks: 128,
            maximum_warnings: Int32(clamping: limits.maximumWarnings))
        let (status, text) = withUnsafeTemporaryAllocation(
            of: CChar.self, capacity: Int(CPNG_MESSAGE_BYTES)
        ) { message in
            message.initialize(repeating: 0)
            guard let start = message.baseAddress else { return (CPNG_OUT_OF_MEMORY, "") }
            let status = decoder(bytes, source.count, &libraryLimits, &rows, start)
            return (status, status == CPNG_OK ? "" : String(cString: start))
        }
        switch status {
        case CPNG_OK: return rows
        case CPNG_TRUNCATED: throw .corrupt(text, isTruncated: true)
        case CPNG_LIMIT: throw .limitExceeded(text)
        case CPNG_OUT_OF_MEMORY: throw .outOfMemory(text)
        default: throw .corrupt(text, isTruncated: false)
        }
    }
}
