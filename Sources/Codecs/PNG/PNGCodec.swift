internal import CPNG
internal import PrefetchModel

extension ImageCodec {
    /// PNG (third edition) by libpng and libdeflate, also written with our own compressor.
    static let png = ImageCodec(
        decoder: { "png/\(String(cString: cpng_library_version()))-3" },
        same: .encoded(as: .png, ignoring: [.quality, .maximumBytes]),
        source: PNGSource.self, encoder: .png, animationEncoder: .png)
}

extension PNGSource {
    /// Most following chunks only add to the memory. But an animation may take less than a still
    /// image, since it is not encoded, and it is recognised only at its end.
    static func outlook(
        on header: ImageHeader, of beginning: UnsafeRawBufferPointer
    ) throws(CodecError) -> HeaderOutlook {
        let file = try PNGFile(beginning)
        let isStill = file.isImageDataReached && !file.announcesAnimation
        var (still, animated) = (header, header)
        still.isAnimated = false
        animated.isAnimated = true
        return HeaderOutlook(headers: isStill ? [still] : [still, animated], isFinal: isStill)
    }

    static func memory(of header: ImageHeader, for recipe: Recipe) -> MemoryEstimate {
        let made = memoryOfMaking(of: header, for: recipe)
        let format = EncodedFormat(recipe, of: header, by: .png)
        guard format != nil, !header.keepsFrames(for: recipe) else { return made }
        return made.atLeast(rasterMemory(of: header, for: recipe))
    }

    static func rasterMemory(of header: ImageHeader, for recipe: Recipe) -> ByteEstimate {
        let basis = EstimateBasis(header, recipe)
        return basis.margin + max(basis.rows, wholeBytes(of: header, rows: basis.rows))
    }

    /// The rows and the joined image data, if they are inflated as a whole; otherwise zero.
    private static func wholeBytes(of header: ImageHeader, rows: ByteEstimate) -> ByteEstimate {
        guard rows.count <= Int(CPNG_MOST_BYTES_AT_ONCE) else { return 0 }
        return rows + ByteEstimate(min(header.sourceBytes, Int(CPNG_MOST_STREAM_AT_ONCE)))
    }

    /// The memory for making a result, without reading.
    private static func memoryOfMaking(
        of header: ImageHeader, for recipe: Recipe
    ) -> MemoryEstimate {
        let basis = EstimateBasis(header, recipe)
        let source = basis.source
        // Each frame of an animation is assembled for decoding.
        let frame = header.isAnimated ? source : 0
        let format = EncodedFormat(recipe, of: header, by: .png)
        switch format {
        case nil: return MemoryEstimate(peak: basis.margin + frame, result: 0, raster: 0)
        case _ where header.keepsFrames(for: recipe):
            return MemoryEstimate(peak: basis.margin + 2 * source, result: source, raster: 0)
        case .encoded(.png), .container:
            let written = max(basis.rows, basis.turnedRows)
            let file = recipe.keepsLarger ? written + written / 64 : source
            // With more effort two files, one in progress, from a copy of the rows.
            let again = basis.isSmall ? written + 2 * max(written, file) : file
            return MemoryEstimate(
                peak: basis.margin + basis.packing + basis.rows + basis.turnedRows + again + frame,
                result: file,
                raster: basis.rows)
        case let format?: return basis.encoding(format).adding(frame)
        }
    }

    /// A picture of usual size is inflated as a whole if the budget suffices, otherwise row by row.
    /// Unusual data is left to the decoder.
    static func structureMemoryBytes(of header: ImageHeader, within budget: Int) -> Int {
        let least = memory(of: header, for: Recipe(encoding: .original)).peak
        // The passes of an interlaced image have twice as many rows.
        let stride = header.stride(ByteEstimate(header.widthInPixels))
        let rows = ByteEstimate(header.heightInPixels) * (stride + 4) + 16
        let most = least + wholeBytes(of: header, rows: rows)
        return most.count <= budget ? most.count : least.count
    }

    static func verificationMemoryBytes(
        of header: ImageHeader, for recipe: Recipe, within budget: Int
    ) -> Int {
        max(
            memory(of: header, for: recipe).peak.count,
            structureMemoryBytes(of: header, within: budget))
    }
}

extension PNGFile {
    /// Whether the image data has begun, possibly with an incomplete first chunk.
    fileprivate var isImageDataReached: Bool {
        let next = chunks.last?.range.upperBound ?? 8
        return source.holds("IDAT", at: next + 4) || chunks.contains { $0.type == .IDAT }
    }

    fileprivate var announcesAnimation: Bool { chunks.contains { $0.type == .acTL } }
}

/// A PNG with all its chunks.
struct PNGSource: ImageDecoding {
    let source: UnsafeRawBufferPointer
    let header: ImageHeader
    let limits: CodecLimits
    private(set) var file: PNGFile
    /// Takes faults of image data, too.
    var note = WarningNote()

    init(
        _ source: UnsafeRawBufferPointer, header: ImageHeader, limits: CodecLimits
    ) throws(CodecError) {
        self.source = source
        self.header = header
        self.limits = limits
        file = try PNGFile(source)
        try file.checkPieces()
        if file.lacksEnd { note.note(.missingEndChunk) }
        if file.hasDamagedEnd { note.note(.damagedEndChunk) }
    }

    static func header(of source: UnsafeRawBufferPointer) throws(CodecError) -> ImageHeader {
        try PNGFile(source).imageHeader()
    }

    func check(
        _ depth: CheckDepth, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) {
        switch depth {
        case .ignoredByDecoder: try checkIgnoredDamage()
        case .structure: try checkStructure(memoryBytes: memoryBytes, interruption)
        case .pixels: _ = try verified(wholeBytes: wholeBytes(of: memoryBytes), interruption)
        }
    }

    private func checkStructure(memoryBytes: Int, _ interruption: Interruption) throws(CodecError) {
        try file.checkChunks()
        try file.checkFrames(limits)
        // Unusual image data is left to the decoder, which accepts some of it.
        let whole = wholeBytes(of: memoryBytes)
        guard try !file.isImageDataWhole(memoryBytes: whole, interruption) else { return }
        try checkIgnoredDamage()
        if try file.imageData(memoryBytes: 0, interruption) == CPNG_DATA_UNENDED {
            note.note(.unendedImageData)
        }
        _ = try verified(wholeBytes: 0, interruption)
    }

    /// The part of a reservation that remains for inflating image data as a whole.
    private func wholeBytes(of memoryBytes: Int) -> Int {
        max(memoryBytes - header.structureMemoryBytes(within: 0), 0)
    }

    /// Checks transparency and the animation: the decoder would ignore their damage.
    private func checkIgnoredDamage() throws(CodecError) {
        try file.checkIgnoredDamage()
        try file.checkFrames(limits)
    }

    /// Decodes all rows, including an animation's frames, with `wholeBytes` of memory for inflating
    /// image data as a whole. Returns whether the decoder uses tRNS.
    func verified(wholeBytes: Int, _ interruption: Interruption) throws(CodecError) -> Bool {
        let rows = try decoded(from: source, wholeBytes: wholeBytes, interruption, cpng_verify)
        try verifyFrames(wholeBytes: wholeBytes, interruption)
        return rows.has_transparency
    }

    /// Decodes every frame except the static image, and keeps nothing.
    private func verifyFrames(wholeBytes: Int, _ interruption: Interruption) throws(CodecError) {
        try forEachFrame(interruption) { still, _ throws(CodecError) in
            _ = try decoded(from: still, wholeBytes: wholeBytes, interruption, cpng_verify)
        }
    }

    /// Assembles every frame except the static image as a still PNG.
    func forEachFrame(
        _ interruption: Interruption,
        _ body: (_ still: UnsafeRawBufferPointer, FrameControl) throws(CodecError) -> Void
    ) throws(CodecError) {
        let frames = file.animation?.frames ?? []
        for (index, frame) in frames.enumerated() {
            try interruption.look()
            let still = try ImageBytes(
                joining: try file.still(frame), of: source, for: "a frame")
            try CodecError.naming("frame", index, of: frames.count) { () throws(CodecError) in
                try still.withUnsafeBytes { (still) throws(CodecError) in
                    try body(still, frame.control)
                }
            }
        }
    }

    var colours: SourceColours { file.colours }

    /// The static image. All other frames of an animation are verified.
    func raster(
        at scale: DecodingScale, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        try verifyFrames(wholeBytes: 0, interruption)
        var raster = try picture(source, interruption)
        raster.orientation = file.orientation
        return raster
    }

    /// The samples of a still PNG, or of the static image.
    func picture(
        _ still: UnsafeRawBufferPointer, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        var colour = ColourDescription()
        let rows = try decoded(from: still, interruption) { bytes, count, limits, rows, message in
            cpng_decode(bytes, count, limits, rows, &colour.samples, message)
        }
        return Raster(owning: rows, colour: colour)
    }

    func ownWay(by recipe: Recipe) -> OwnWay? {
        let end = file.chunks.last?.range.upperBound ?? 0
        let keepsData =
            if file.animation == nil {
                recipe.stripping == .none && end < source.count && !file.lacksEnd
            } else {
                recipe.animation != .first
            }
        if keepsData {
            return .shortcut { interruption throws(CodecError) in
                try PNGRewriting(png: self, recipe: recipe, interruption: interruption)
                    .passedThrough()
            }
        }
        return .rewriting {
            (raster: consuming Raster, interruption: Interruption) throws(CodecError) in
            var still = self
            still.file = file.withoutAnimation
            return try PNGRewriting(png: still, recipe: recipe, interruption: interruption)
                .rewritten(raster)
        }
    }

    var metadata: CarriedMetadata { CarriedMetadata(exif: file.exif, xmp: file.xmp) }

    var companions: Set<Companion> {
        file.chunks.contains { $0.type == .caBX } ? [.manifest] : []
    }

    typealias Decoder = (
        UnsafePointer<UInt8>, Int, UnsafePointer<cpng_limits>, UnsafeMutablePointer<cpng_image>,
        UnsafeMutablePointer<CChar>
    ) -> ccodec_status

    /// `wholeBytes` is as in ``verified(wholeBytes:_:)``. If rows are kept, all of it was reserved.
    ///
    /// Image data that has all rows and no end is decoded too. Libraries accept different forms.
    func decoded(
        from source: UnsafeRawBufferPointer, wholeBytes: Int = .max, _ interruption: Interruption,
        _ decoder: Decoder
    ) throws(CodecError) -> cpng_image {
        func form() throws(CodecError) -> cpng_form? {
            let file = try PNGFile(source)
            let data = try file.imageData(memoryBytes: 0, interruption)
            if data == CPNG_DATA_UNENDED { note.note(.unendedImageData) }
            let isCut = data == CPNG_DATA_WHOLE && file.cutImageData != nil
            return data == CPNG_DATA_UNENDED || isCut ? file.form : nil
        }
        let outcome = Result { () throws(CodecError) in
            try decoded(
                from: source, unended: cpng_form(), wholeBytes: wholeBytes, interruption, decoder)
        }
        if case .failure(.corrupt) = outcome, let form = try form() {
            return try decoded(
                from: source, unended: form, wholeBytes: wholeBytes, interruption, decoder)
        }
        var rows = try outcome.get()
        if rows.is_unusual { rows.is_unusual = try form() != nil }
        return rows
    }

    private func decoded(
        from source: UnsafeRawBufferPointer, unended: cpng_form, wholeBytes: Int,
        _ interruption: Interruption, _ decoder: Decoder
    ) throws(CodecError) -> cpng_image {
        let bytes = try source.start
        var rows = cpng_image()
        var libraryLimits = cpng_limits(
            maximum_pixels: UInt64(limits.maximumPixels),
            maximum_warnings: Int32(clamping: limits.maximumWarnings),
            maximum_whole_bytes: UInt64(wholeBytes), interruption: interruption.pointer,
            lacks_end: source.baseAddress == self.source.baseAddress && file.lacksEnd,
            unended: unended)
        try interruption.run { message in
            decoder(bytes, source.count, &libraryLimits, &rows, message)
        }
        return rows
    }
}
