internal import CJPEG
internal import CPNG
internal import PrefetchModel

/// What can be made of one JPEG source.
struct JPEGProcessing {
    let source: UnsafeRawBufferPointer
    let header: ImageHeader
    let recipe: Recipe
    let limits: CodecLimits
    private let interruption: Interruption
    private let file: JPEGFile
    private let bytes: UnsafePointer<UInt8>

    init(
        source: UnsafeRawBufferPointer, header: ImageHeader, recipe: Recipe, limits: CodecLimits,
        interruption: Interruption
    ) throws(CodecError) {
        guard let bytes = source.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
            throw .notAnImage("no bytes")
        }
        self.source = source
        self.header = header
        self.recipe = recipe
        self.limits = limits
        self.interruption = interruption
        self.bytes = bytes
        file = try JPEGFile(headerOf: source)
    }

    private var libraryLimits: cjpeg_limits {
        cjpeg_limits(
            maximum_pixels: UInt64(limits.maximumPixels),
            maximum_scans: Int32(clamping: limits.maximumScans),
            maximum_warnings: Int32(clamping: limits.maximumWarnings),
            maximum_memory_bytes: UInt64(limits.maximumLibraryBytes),
            interruption: interruption.pointer)
    }

    /// The source as it is, after its coefficients were decoded.
    func verified() throws(CodecError) -> ProcessedImage {
        let result = try called { limits, result, message in
            cjpeg_verify(bytes, source.count, limits, result, message)
        }
        return image(.source, result)
    }

    /// Upright where whole blocks allow it, with coarser quantisation where the quality or the
    /// largest size asks for it; else the source's own data.
    func requantised() throws(CodecError) -> ProcessedImage {
        let profile = keptProfile
        let segments = keptSegments(profile)
        var result = cjpeg_result()
        do throws(CodecError) {
            result = try requantised(
                quality: recipe.quality,
                maximumBytes: recipe.keepsLarger ? Int.max / 4 : source.count, segments)
        } catch .encodingFailed {
            // Readable, but with coefficients or tables beyond what may be written: its own data
            // is as good as before. It was decoded to its end, or this could not have begun.
            result = try called { limits, result, message in
                cjpeg_verify(bytes, source.count, limits, result, message)
            }
        }
        let stripped =
            recipe.stripping == .none
            ? [.source(0..<source.count)]
            : file.stripped(source, end: result.source_end, keepsProfile: profile != nil)
        var encoded = result.bytes.map { ImageBytes(owning: $0, count: result.length) }
        // A turned one is smaller than the source, if not always than its bytes with a tag.
        // What stands behind the image, as further pictures do, is found by its place in the file.
        if recipe.stripping == .none, result.source_end < source.count {
            return image(.source, result)
        }
        if let made = encoded, !recipe.keepsLarger, !result.was_turned,
            made.count >= stripped.byteCount
        {
            encoded = nil
        }
        if let most = recipe.maximumStoredBytes, encoded?.count ?? stripped.byteCount > most {
            encoded =
                try fitting(
                    most, segments, below: encoded?.count ?? stripped.byteCount, &result) ?? encoded
        }
        if let encoded { return image(.encoded(encoded), result) }
        if stripped.isWhole(source) { return image(.source, result) }
        guard let copy = ImageBytes(joining: stripped, of: source) else {
            throw .outOfMemory("no memory for the output")
        }
        return image(.encoded(copy), result)
    }

    /// With the best quality for that many bytes; where none is low enough, the lowest, if that makes
    /// it smaller than it is. `result` is replaced when there is one, and has the times of all trials.
    private func fitting(
        _ maximumBytes: Int, _ segments: [UInt8], below present: Int, _ result: inout cjpeg_result
    ) throws(CodecError) -> ImageBytes? {
        var spent = (decode: result.decode_nanoseconds, encode: result.encode_nanoseconds)
        func trial(_ quality: Int, _ most: Int) throws(CodecError) -> (ImageBytes, cjpeg_result)? {
            do throws(CodecError) {
                let trial = try requantised(quality: quality, maximumBytes: most, segments)
                spent.decode += trial.decode_nanoseconds
                spent.encode += trial.encode_nanoseconds
                return trial.bytes.map { (ImageBytes(owning: $0, count: trial.length), trial) }
            } catch .encodingFailed {
                return nil
            }
        }
        var found = try QualitySearch.best(below: recipe.quality) { quality throws(CodecError) in
            try trial(quality, maximumBytes + 1)
        }
        if found == nil, recipe.quality > QualitySearch.floor {
            found = try trial(QualitySearch.floor, present)
        }
        if let found { result = found.1 }
        result.decode_nanoseconds = spent.decode
        result.encode_nanoseconds = spent.encode
        return found?.0
    }

    /// `bytes` of the result stays nil when nothing would change, or when it would reach that many.
    private func requantised(
        quality: Int, maximumBytes: Int, _ segments: [UInt8]
    ) throws(CodecError) -> cjpeg_result {
        let keepsAll = recipe.stripping == .none
        let orientation = keepsAll ? ExifOrientation.upright : file.orientation
        let tag =
            orientation == ExifOrientation.upright
            ? [] : JPEGFile.orientationSegment(orientation)
        return try called { limits, result, message in
            segments.withUnsafeBufferPointer { segments in
                tag.withUnsafeBufferPointer { tag in
                    var rewriting = cjpeg_rewriting(
                        quality: Int32(quality), segments: segments.baseAddress,
                        segments_length: segments.count, orientation: Int32(orientation),
                        orientation_segment: tag.baseAddress,
                        orientation_segment_length: tag.count,
                        writes_own_segments: !keepsAll, maximum_output: maximumBytes)
                    return cjpeg_requantise(
                        bytes, source.count, limits, &rewriting, result, message)
                }
            }
        }
    }

    /// The profile that goes with the pixels: one of sRGB says what is true without it.
    private var keptProfile: [UInt8]? {
        guard recipe.stripping != .all, let profile = file.profile(in: source, limits: limits)
        else { return nil }
        return recipe.stripping == .none || !ICCProfile.isSRGB(profile) ? profile : nil
    }

    /// What the recipe keeps beside the orientation, as marker segments.
    private func keptSegments(_ profile: [UInt8]?) -> [UInt8] {
        if recipe.stripping == .none { return file.metadata(in: source) }
        return profile.map(JPEGFile.profileSegments) ?? []
    }

    /// As a PNG of at most 8 bits a sample, upright unless it takes the whole EXIF along.
    func converted() throws(CodecError) -> ProcessedImage {
        let result = try called { limits, result, message in
            cjpeg_decode(bytes, source.count, limits, 1, result, message)
        }
        guard let decoded = result.bytes else { throw .outOfMemory("no pixels") }
        var rows = cpng_image_of(
            decoded, result.width, result.height, result.channels, interruption.pointer)
        defer { cpng_image_free(&rows) }
        let begin = ThreadClock.now
        let exif = recipe.stripping == .none ? file.exif(in: source) : nil
        if exif == nil { try PNGProcessing.turn(&rows, file.orientation, interruption) }
        var chunks: [UInt8] = []
        if let profile = keptProfile, !result.was_cmyk,
            ICCProfile.fits(profile, channels: Int(result.channels))
        {
            chunks += PNGFile.profileChunk(profile)
        }
        if let exif { chunks += PNGFile.chunk(.eXIf, exif) }
        let (width, height) = (Int(rows.width), Int(rows.height))
        let encoding = PNGEncoding(
            effort: recipe.pngEffort, changesKind: recipe.stripping != .none,
            interruption: interruption)
        let output = try encoding.encoded(&rows, chunks: chunks, maximumBytes: .max / 4)
        guard let output else { throw .encodingFailed("the PNG is too large") }
        return ProcessedImage(
            output: .encoded(output), format: .png, widthInPixels: width, heightInPixels: height,
            decodeDuration: .nanoseconds(Int64(clamping: result.decode_nanoseconds)),
            encodeDuration: ThreadClock.now - begin)
    }

    private func image(_ output: ProcessedImage.Output, _ result: cjpeg_result) -> ProcessedImage {
        ProcessedImage(
            output: output, format: .jpeg, widthInPixels: Int(result.width),
            heightInPixels: Int(result.height),
            decodeDuration: .nanoseconds(Int64(clamping: result.decode_nanoseconds)),
            encodeDuration: .nanoseconds(Int64(clamping: result.encode_nanoseconds)))
    }

    private func called(
        _ body: (
            UnsafePointer<cjpeg_limits>, UnsafeMutablePointer<cjpeg_result>,
            UnsafeMutablePointer<CChar>
        ) -> cjpeg_status
    ) throws(CodecError) -> cjpeg_result {
        var result = cjpeg_result()
        var limits = libraryLimits
        try JPEGProcessing.check(interruption) { message in body(&limits, &result, message) }
        return result
    }

    /// Calls into libjpeg and turns its answer into an error.
    static func check(
        _ interruption: Interruption, _ body: (UnsafeMutablePointer<CChar>) -> cjpeg_status
    ) throws(CodecError) {
        let (status, text) = withUnsafeTemporaryAllocation(
            of: CChar.self, capacity: Int(CJPEG_MESSAGE_BYTES)
        ) { message in
            message.initialize(repeating: 0)
            guard let start = message.baseAddress else { return (CJPEG_OUT_OF_MEMORY, "") }
            let status = body(start)
            return (status, status == CJPEG_OK ? "" : String(cString: start))
        }
        switch status {
        case CJPEG_OK: return
        case CJPEG_TRUNCATED: throw .corrupt(text, isTruncated: true)
        case CJPEG_UNSUPPORTED: throw .unsupported(text)
        case CJPEG_LIMIT: throw .limitExceeded(text)
        case CJPEG_OUT_OF_MEMORY: throw .outOfMemory(text)
        case CJPEG_ENCODE_FAILED: throw .encodingFailed(text)
        case CJPEG_INTERRUPTED: throw interruption.error
        default: throw .corrupt(text, isTruncated: false)
        }
    }
}
