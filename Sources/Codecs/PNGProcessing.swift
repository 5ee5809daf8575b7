internal import CJPEG
internal import CPNG
internal import PrefetchModel

/// What can be made of one PNG source.
struct PNGProcessing {
    let source: UnsafeRawBufferPointer
    let header: ImageHeader
    let recipe: Recipe
    let limits: CodecLimits
    private let interruption: Interruption
    private let file: PNGFile

    /// - Throws: `corrupt` when transparency or an animation is damaged, which the decoder would
    ///   leave out silently; `tooManyPixels` for an animation beyond its limit; `limitExceeded` for too
    ///   many chunks.
    init(
        source: UnsafeRawBufferPointer, header: ImageHeader, recipe: Recipe, limits: CodecLimits,
        interruption: Interruption
    ) throws(CodecError) {
        self.source = source
        self.header = header
        self.recipe = recipe
        self.limits = limits
        self.interruption = interruption
        file = try PNGFile(source)
        try file.checkPieces()
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
        let metadata = metadata(valid: rows.chunks, isUpright: false)
        let output = try output(
            of: file.stripped(source, metadata, stripping: recipe.stripping))
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
            try interruption.look()
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

    /// The same pixels, upright, not interlaced, in the smallest colour type and bit depth unless all
    /// metadata is kept; else the source's own data. An animation keeps the data it has.
    func rewritten() throws(CodecError) -> ProcessedImage {
        if file.animation != nil { return try passedThrough() }
        let end = file.chunks.last?.range.upperBound ?? 0
        if recipe.stripping == .none, end < source.count { return try verified() }
        var rows = try decoded(cpng_decode)
        defer { cpng_image_free(&rows) }
        let begin = ThreadClock.now
        let isTurned = file.orientation != ExifOrientation.upright && recipe.stripping != .none
        if isTurned { try PNGProcessing.turn(&rows, file.orientation, interruption) }
        let metadata = metadata(valid: rows.chunks, isUpright: isTurned)
        // Where the source's own data stays, so does its orientation.
        let stripped = file.stripped(
            source, isTurned ? self.metadata(valid: rows.chunks, isUpright: false) : metadata,
            stripping: recipe.stripping)
        let encoding = PNGEncoding(
            effort: recipe.pngEffort, changesKind: recipe.stripping != .none,
            interruption: interruption)
        let encoded = try encoding.encoded(
            &rows, chunks: metadata.leading.bytes(of: source),
            maximumBytes: recipe.keepsLarger
                ? .max / 4 : stripped.byteCount - metadata.trailing.byteCount)
        let output: ProcessedImage.Output
        if let encoded {
            let whole = try adding(metadata.trailing, to: encoded)
            output = isSource(whole) ? .source : .encoded(whole)
        } else {
            output = try self.output(of: stripped)
        }
        let isUpright = isTurned && encoded != nil
        return ProcessedImage(
            output: output, format: .png,
            widthInPixels: isUpright ? Int(rows.width) : header.widthInPixels,
            heightInPixels: isUpright ? Int(rows.height) : header.heightInPixels,
            decodeDuration: PNGProcessing.duration(rows), encodeDuration: ThreadClock.now - begin)
    }

    private func metadata(valid: UInt32, isUpright: Bool) -> PNGFile.Metadata {
        file.metadata(
            in: source, valid: valid, stripping: recipe.stripping, isUpright: isUpright,
            limits: limits)
    }

    private func image(
        _ output: ProcessedImage.Output, decodeDuration: Duration, encodeDuration: Duration
    ) -> ProcessedImage {
        ProcessedImage(
            output: output, format: .png, widthInPixels: header.widthInPixels,
            heightInPixels: header.heightInPixels, decodeDuration: decodeDuration,
            encodeDuration: encodeDuration)
    }

    /// The file with chunks between its image data and its end.
    private func adding(
        _ chunks: [ImagePiece], to encoded: ImageBytes
    ) throws(CodecError) -> ImageBytes {
        guard !chunks.isEmpty else { return encoded }
        let trailing = chunks.bytes(of: source)
        let end = encoded.count - PNGFile.endBytes
        let pieces: [ImagePiece] = [
            .source(0..<end), .made(trailing), .source(end..<encoded.count),
        ]
        let whole = encoded.withUnsafeBytes { ImageBytes(joining: pieces, of: $0) }
        guard let whole else { throw .outOfMemory("no memory for the output") }
        return whole
    }

    private func isSource(_ encoded: ImageBytes) -> Bool {
        encoded.count == source.count && encoded.withUnsafeBytes { $0.elementsEqual(source) }
    }

    /// As a JPEG, upright unless it takes the whole EXIF along, over the background where the source is
    /// transparent. Gamma and chromaticities, which a JPEG cannot carry, are dropped.
    ///
    /// - Throws: `unsupported` for an animation, which would become one picture in silence.
    func converted() throws(CodecError) -> ProcessedImage {
        guard file.animation == nil else {
            throw .unsupported("an animated PNG, of which a JPEG would keep one picture only")
        }
        guard header.widthInPixels <= 65500, header.heightInPixels <= 65500 else {
            throw .unsupported("a JPEG has at most 65500 pixels a side")
        }
        let colour = recipe.background
        let background = [colour.red, colour.green, colour.blue]
        var rows = try decoded { source, length, limits, rows, message in
            cpng_decode_opaque(source, length, limits, background, rows, message)
        }
        defer { cpng_image_free(&rows) }
        let begin = ThreadClock.now
        let channels = rows.color_type == 0 ? 1 : 3
        let halvesChroma = PNGProcessing.halvesChroma(&rows)
        try interruption.check()
        let exif =
            recipe.stripping == .none ? file.exif(in: source).flatMap(JPEGFile.exifSegment) : nil
        if exif == nil { try PNGProcessing.turn(&rows, file.orientation, interruption) }
        guard let start = rows.rows else { throw .outOfMemory("no pixels") }
        var segments = exif ?? []
        if recipe.stripping != .all, let profile = file.profile(source, limits: limits),
            recipe.stripping == .none || !ICCProfile.isSRGB(profile),
            ICCProfile.fits(profile, channels: channels)
        {
            segments += JPEGFile.profileSegments(profile)
        }
        func encoded(_ quality: Int, _ most: Int) throws(CodecError) -> ImageBytes? {
            var result = cjpeg_result()
            try JPEGProcessing.check(interruption) { message in
                cjpeg_encode(
                    start + 1, rows.row_bytes + 1, rows.width, rows.height, Int32(channels),
                    Int32(quality), halvesChroma, segments, segments.count, most,
                    interruption.pointer, &result, message)
            }
            return result.bytes.map { ImageBytes(owning: $0, count: result.length) }
        }
        guard var made = try encoded(recipe.quality, .max / 4) else {
            throw .encodingFailed("no output")
        }
        if let most = recipe.maximumStoredBytes, made.count > most {
            let fitting = try QualitySearch.best(below: recipe.quality) {
                quality throws(CodecError) in
                try encoded(quality, most + 1)
            }
            if let fitting {
                made = fitting
            } else if recipe.quality > QualitySearch.floor {
                made = try encoded(QualitySearch.floor, made.count) ?? made
            }
        }
        return ProcessedImage(
            output: .encoded(made), format: .jpeg, widthInPixels: Int(rows.width),
            heightInPixels: Int(rows.height), decodeDuration: PNGProcessing.duration(rows),
            encodeDuration: ThreadClock.now - begin)
    }

    /// Whether a JPEG of these rows has a sample of chroma for two by two pixels, as photographs
    /// have.
    ///
    /// Where neighbours differ in little but their colour, it would be smeared over two pixels: in
    /// flat graphics, in which it shows most, and beyond a mean difference of 6, which 16 photographs
    /// are well below (0.2 to 3.4) and small icons of strong colours above.
    ///
    /// Of more than 16 megapixels always: lines are not as thin, and the encoder takes twice the
    /// memory for all chroma.
    private static func halvesChroma(_ rows: inout cpng_image) -> Bool {
        Int(rows.width) * Int(rows.height) > ImageHeader.mostPixelsOfWholeChroma
            || cpng_flatness(&rows) < PNGEncoding.leastFlatness && cpng_chroma_detail(&rows) < 6
    }

    /// Turns pixels upright from EXIF's orientation.
    ///
    /// - Throws: `outOfMemory`, or that it was interrupted.
    static func turn(
        _ rows: inout cpng_image, _ orientation: Int, _ interruption: Interruption
    ) throws(CodecError) {
        guard orientation != ExifOrientation.upright else { return }
        switch cpng_turn(&rows, Int32(orientation)) {
        case CPNG_OK: return
        case CPNG_INTERRUPTED: throw interruption.error
        default: throw .outOfMemory("no memory for the pixels")
        }
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
            maximum_warnings: Int32(clamping: limits.maximumWarnings),
            interruption: interruption.pointer)
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
        case CPNG_INTERRUPTED: throw interruption.error
        default: throw .corrupt(text, isTruncated: false)
        }
    }
}
