internal import PrefetchModel

extension ImageCodec {
    /// Icons and cursors: their largest picture, by the decoders of PNG and BMP. Never encoded;
    /// `same` makes a PNG.
    static let ico = ImageCodec(
        decoder: { "ico/3" },
        // The file may already hold a PNG.
        same: .encoded(as: .png, ignoring: [.quality, .maximumBytes, .animation]),
        source: ICOSource.self)
}

/// An icon, its directory read.
private struct ICOSource: ImageDecoding {
    let source: UnsafeRawBufferPointer
    let limits: CodecLimits
    let file: ICOFile
    let note = WarningNote()

    init(
        _ source: UnsafeRawBufferPointer, header: ImageHeader, limits: CodecLimits
    ) throws(CodecError) {
        file = try ICOFile(source)
        self.source = source
        self.limits = limits
    }

    static func header(of source: UnsafeRawBufferPointer) throws(CodecError) -> ImageHeader {
        let file = try ICOFile(source)
        let entry = file.entries[file.largest]
        var header = ImageHeader(
            format: .icon, widthInPixels: entry.width, heightInPixels: entry.height, bitDepth: 8,
            channels: 4, sourceBytes: source.count)
        if entry.isPNG {
            let place = file.place(of: entry, in: source)
            let png = try PNGSource.header(of: .init(rebasing: source[place.range]))
            header = ImageHeader(
                format: .icon, widthInPixels: png.widthInPixels, heightInPixels: png.heightInPixels,
                bitDepth: png.bitDepth, isProgressiveOrInterlaced: png.isProgressiveOrInterlaced,
                orientation: png.orientation, channels: png.channels, memory: png.memory,
                sourceBytes: source.count)
        }
        guard !header.widthInPixels.multipliedReportingOverflow(by: header.heightInPixels).overflow
        else { throw .tooManyPixels("\(entry.width)×\(entry.height) pixels") }
        // A bitmap's colours before alpha is added, and copies of the pictures' data.
        let pixels = ByteEstimate(header.widthInPixels) * ByteEstimate(header.heightInPixels)
        header.memory.libraryBytes =
            ((entry.isPNG ? 0 : 4 * pixels + ByteEstimate(entry.height)) + 2
            * ByteEstimate(source.count)).count
        return header
    }

    static func structureMemoryBytes(of header: ImageHeader, within budget: Int) -> Int {
        EstimateBasis(header, Recipe(encoding: .original)).ofDecoded.peak.count
    }

    /// A PNG's orientation may follow its pixels.
    static func outlook(
        on header: ImageHeader, of beginning: UnsafeRawBufferPointer
    ) throws(CodecError) -> HeaderOutlook {
        let file = try ICOFile(beginning)
        let entry = file.entries[file.largest]
        return HeaderOutlook(
            headers: [header], isFinal: !entry.isPNG || entry.range.upperBound <= beginning.count)
    }

    private enum Picture {
        case png(PNGSource)
        case bitmap(ICOBitmap)
    }

    private func picture(_ entry: ICOFile.DirectoryEntry) throws(CodecError) -> Picture {
        let place = file.place(of: entry, in: source)
        let bytes = UnsafeRawBufferPointer(rebasing: source[place.range])
        if place.isCorrected {
            note.note(
                ImageWarning(
                    text: "the directory states a wrong length of a picture",
                    lacksEnd: place.passesEnd))
        }
        guard entry.isPNG else {
            let bitmap = try ICOBitmap(bytes, height: entry.height, isCut: place.passesEnd)
            if bitmap.isMaskCut {
                note.note(
                    ImageWarning(
                        text: "a part of a mask is missing, which no pixel needs",
                        lacksEnd: place.passesEnd))
            }
            if bitmap.isTopDown {
                note.note(ImageWarning(text: "a picture has a negative height"))
            }
            return .bitmap(bitmap)
        }
        let header = try Codecs.header(of: bytes, limits: limits)
        var png = try PNGSource(bytes, header: header, limits: limits)
        note.note(png.note.warning)
        png.note = note
        return .png(png)
    }

    private var largest: Picture {
        get throws(CodecError) { try picture(file.entries[file.largest]) }
    }

    func check(
        _ depth: CheckDepth, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) {
        if depth == .pixels { return try verify(interruption) }
        var budget = FrameBudget(limits)
        for entry in file.entries {
            try budget.take(4 * ByteEstimate(entry.width) * ByteEstimate(entry.height))
        }
        for entry in file.entries where entry.isPNG {
            try check(entry, .ignoredByDecoder, interruption)
        }
        guard depth == .structure else { return }
        for entry in file.entries { try check(entry, depth, interruption) }
    }

    private func check(
        _ entry: ICOFile.DirectoryEntry, _ depth: CheckDepth, _ interruption: Interruption
    ) throws(CodecError) {
        switch try picture(entry) {
        case .png(let png): try png.check(depth, memoryBytes: 0, interruption)
        case .bitmap(let bitmap): try bitmap.verify(interruption)
        }
    }

    /// Viewers pick the picture that fits, so all must be good.
    private func verify(_ interruption: Interruption) throws(CodecError) {
        for place in file.entries.indices {
            try interruption.look()
            do throws(CodecError) {
                try check(file.entries[place], .pixels, interruption)
            } catch {
                let count = file.entries.count
                // The end of such a picture is the end of the file.
                let passesEnd = file.entries[place].range.upperBound > source.count
                throw count > 1 && !passesEnd ? error.inPart("picture", place, of: count) : error
            }
        }
    }

    func raster(
        at scale: DecodingScale, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        try verify(interruption)
        switch try largest {
        case .png(let png): return try png.raster(at: scale, interruption)
        case .bitmap(let bitmap): return try bitmap.raster(interruption)
        }
    }

    var colours: SourceColours {
        if case .png(let png)? = try? largest { png.colours } else { .undeclared }
    }

    func ownWay(by recipe: Recipe) throws(CodecError) -> OwnWay? {
        guard case .png(let png) = try largest else { return nil }
        var still = recipe
        still.animation = .first
        return switch png.ownWay(by: still) {
        case .shortcut(let make):
            .shortcut { interruption throws(CodecError) in
                try verify(interruption)
                return try outside(png, make(interruption))
            }
        case .rewriting(let make):
            .rewriting {
                (raster: consuming Raster, interruption: Interruption) throws(CodecError) in
                try outside(png, make(raster, interruption))
            }
        case nil: nil
        }
    }

    /// The PNG's whole source is only a part of the icon, and must be copied.
    private func outside(
        _ png: PNGSource, _ image: ProcessedImage
    ) throws(CodecError) -> ProcessedImage {
        guard case .source = image.output else { return image }
        let piece = ImagePiece.source(0..<png.source.count)
        var image = image
        image.output = .encoded(try ImageBytes(joining: [piece], of: png.source))
        return image
    }

    private var png: PNGSource? {
        if case .png(let png)? = try? largest { png } else { nil }
    }

    var metadata: CarriedMetadata { png?.metadata ?? .none }

    var companions: Set<Companion> { png?.companions ?? [] }
}
