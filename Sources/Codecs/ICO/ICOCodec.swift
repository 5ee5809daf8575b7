internal import PrefetchModel

/// Icons and cursors: their largest picture, by what decodes PNG and BMP, and never encoded. It becomes PNG where it is
/// to stay what it is.
enum ICOCodec: ImageCodec {
    static let decoder = "ico/1"
    static let same = EncodedFormat.png

    static func isAnnounced(by bytes: UnsafeRawBufferPointer) -> Bool { isIcon(bytes) }

    static func header(of source: UnsafeRawBufferPointer) throws(CodecError) -> ImageHeader {
        let file = try ICOFile(source)
        let entry = file.entries[file.largest]
        var header = ImageHeader(
            format: .icon, widthInPixels: entry.width, heightInPixels: entry.height, bitDepth: 8,
            isProgressiveOrInterlaced: false, orientation: ExifOrientation.upright, channels: 4,
            coefficientBytes: 0, sourceBytes: source.count)
        if entry.isPNG {
            let range = entry.range.clamped(to: 0..<source.count)
            let png = try PNGCodec.header(of: .init(rebasing: source[range]))
            header = ImageHeader(
                format: .icon, widthInPixels: png.widthInPixels,
                heightInPixels: png.heightInPixels, bitDepth: png.bitDepth,
                isProgressiveOrInterlaced: png.isProgressiveOrInterlaced,
                orientation: png.orientation, channels: png.channels, coefficientBytes: 0,
                sourceBytes: source.count, hasPackedProfile: png.hasPackedProfile)
        }
        guard !header.widthInPixels.multipliedReportingOverflow(by: header.heightInPixels).overflow
        else {
            throw .tooManyPixels("\(entry.width)×\(entry.height) pixels")
        }
        // A bitmap's colours before they get their alpha, and copies of what the pictures have.
        let pixels = ByteEstimate(header.widthInPixels) * ByteEstimate(header.heightInPixels)
        header.libraryBytes =
            ((entry.isPNG ? 0 : 4 * pixels + ByteEstimate(entry.height)) + 2
            * ByteEstimate(source.count)).count
        return header
    }

    /// A PNG's orientation may come behind its pixels.
    static func outlook(
        on header: ImageHeader, of beginning: UnsafeRawBufferPointer
    ) throws(CodecError) -> HeaderOutlook {
        let file = try ICOFile(beginning)
        let entry = file.entries[file.largest]
        return HeaderOutlook(
            headers: [header],
            isFinal: !entry.isPNG || entry.range.upperBound <= beginning.count)
    }

    static func memory(of header: ImageHeader, for recipe: Recipe) -> MemoryEstimate {
        EstimateBasis(header, recipe).ofDecoded
    }

    static func structureMemoryBytes(of header: ImageHeader, within budget: Int) -> Int {
        memory(of: header, for: Recipe(encoding: .original)).peak.count
    }

    static func source(
        _ source: UnsafeRawBufferPointer, header: ImageHeader, limits: CodecLimits
    ) throws(CodecError) -> any ImageSource {
        let file = try ICOFile(source)
        try file.checkRanges(in: source)
        return ICOSource(source: source, header: header, limits: limits, file: file)
    }
}

/// An icon of which the directory was read.
private struct ICOSource: ImageSource {
    let source: UnsafeRawBufferPointer
    let header: ImageHeader
    let limits: CodecLimits
    let file: ICOFile

    private enum Picture {
        case png(PNGSource)
        case bitmap(ICOBitmap)
    }

    private func picture(_ entry: ICOFile.Entry) throws(CodecError) -> Picture {
        let bytes = UnsafeRawBufferPointer(rebasing: source[entry.range])
        guard entry.isPNG else { return .bitmap(try ICOBitmap(bytes, height: entry.height)) }
        let header = try Codecs.header(of: bytes, limits: limits)
        return .png(try PNGSource(bytes, header: header, limits: limits))
    }

    private var largest: Picture {
        get throws(CodecError) { try picture(file.entries[file.largest]) }
    }

    func way(to format: EncodedFormat, by recipe: Recipe) throws(CodecError) -> CodecWay {
        var still = recipe
        still.animation = .first
        if case .png(let png) = try largest { return try png.way(to: format, by: still) }
        return try format.way(from: header, by: recipe)
    }

    func checkStructure(memoryBytes: Int, _ interruption: Interruption) throws(CodecError) {
        try checkSilentDamage()
        for entry in file.entries {
            switch try picture(entry) {
            case .png(let png): try png.checkStructure(memoryBytes: 0, interruption)
            case .bitmap(let bitmap): try bitmap.verify(interruption)
            }
        }
    }

    /// - Throws: `corrupt`; `tooManyPixels` for all pictures together.
    func checkSilentDamage() throws(CodecError) {
        var budget = FrameBudget(limits)
        for entry in file.entries {
            try budget.take(4 * ByteEstimate(entry.width) * ByteEstimate(entry.height))
        }
        for entry in file.entries where entry.isPNG {
            if case .png(let png) = try picture(entry) { try png.checkSilentDamage() }
        }
    }

    /// Viewers pick the picture that fits, so all have to be good.
    func verify(_ interruption: Interruption) throws(CodecError) -> Duration {
        let begin = ThreadClock.now
        try verify(file.entries.indices, interruption)
        return ThreadClock.now - begin
    }

    private func verify(
        _ places: some Sequence<Int>, _ interruption: Interruption
    ) throws(CodecError) {
        for place in places {
            try interruption.look()
            do throws(CodecError) {
                switch try picture(file.entries[place]) {
                case .png(let png): _ = try png.verify(interruption)
                case .bitmap(let bitmap): try bitmap.verify(interruption)
                }
            } catch {
                let count = file.entries.count
                throw count > 1 ? error.inPart("picture", place, of: count) : error
            }
        }
    }

    func raster(
        _ request: RasterRequest, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        let begin = ThreadClock.now
        try verify(file.entries.indices, interruption)
        switch try largest {
        case .png(let png):
            var raster = try png.raster(request, interruption)
            raster.decodeDuration = ThreadClock.now - begin
            return raster
        case .bitmap(let bitmap):
            let raster = Raster(
                owning: try bitmap.rows(interruption), decodeDuration: ThreadClock.now - begin)
            return try raster.formed(as: request.form, interruption)
        }
    }

    func shortcut(
        by recipe: Recipe, _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage {
        guard case .png(let png) = try largest else {
            preconditionFailure("a bitmap has no shortcut")
        }
        try verify(file.entries.indices, interruption)
        return try outside(png, png.shortcut(by: recipe, interruption))
    }

    func rewritten(
        _ raster: consuming Raster, by recipe: Recipe, _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage {
        guard case .png(let png) = try largest else {
            preconditionFailure("a bitmap is not rewritten")
        }
        return try outside(png, png.rewritten(raster, by: recipe, interruption))
    }

    /// What is the source to the PNG is a part of it here.
    private func outside(
        _ png: PNGSource, _ image: ProcessedImage
    ) throws(CodecError) -> ProcessedImage {
        guard case .source = image.output else { return image }
        let piece = ImagePiece.source(0..<png.source.count)
        guard let copy = ImageBytes(joining: [piece], of: png.source) else {
            throw .outOfMemory("no memory for the output")
        }
        return ProcessedImage(
            output: .encoded(copy), format: image.format, widthInPixels: image.widthInPixels,
            heightInPixels: image.heightInPixels, decodeDuration: image.decodeDuration,
            encodeDuration: image.encodeDuration)
    }

    var exif: [UInt8]? {
        if case .png(let png)? = try? largest { png.exif } else { nil }
    }
}
