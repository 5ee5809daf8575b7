internal import PrefetchModel

/// Upper estimates for making a result, without the source itself.
struct MemoryEstimate {
    /// The peak while it is made, including the result.
    let peak: ByteEstimate
    /// The result itself.
    let result: ByteEstimate
    /// The pixels or coefficients that other results can share.
    let raster: ByteEstimate

    /// The same with `bytes` more while the result is made.
    func adding(_ bytes: ByteEstimate) -> MemoryEstimate {
        MemoryEstimate(peak: peak + bytes, result: result, raster: raster)
    }
}

/// The common values of all formats' estimates.
struct EstimateBasis {
    let header: ImageHeader
    let recipe: Recipe
    let width: ByteEstimate
    let height: ByteEstimate
    let pixels: ByteEstimate
    /// The bytes of the file.
    let source: ByteEstimate
    /// Whether EXIF orientation is applied.
    let isTurned: Bool
    let isSmall: Bool
    /// All rows, each with its filter type.
    let rows: ByteEstimate
    /// The rows after turning; zero without a turn.
    let turnedRows: ByteEstimate
    /// The libraries' state and tables, and rows in progress.
    let margin: ByteEstimate

    init(_ header: ImageHeader, _ recipe: Recipe) {
        self.header = header
        self.recipe = recipe
        width = ByteEstimate(header.widthInPixels)
        height = ByteEstimate(header.heightInPixels)
        pixels = ByteEstimate(header.pixels)
        source = ByteEstimate(header.sourceBytes)
        isTurned = header.orientation != ExifOrientation.upright
        isSmall = recipe.effort == .small
        // Mostly libdeflate's compressor; its highest levels take 9 MB.
        var fixed = ByteEstimate(isSmall ? 12 << 20 : 3 << 20)
        if header.memory.hasPackedProfile {
            fixed = fixed + 2 * ByteEstimate(CodecLimits.maximumMetadataBytes)
        }
        // Metadata is copied from the source and joined.
        if recipe.stripping == .none { fixed = fixed + 2 * source }
        let longest = isTurned ? max(width, height) : width
        rows = height * header.stride(width)
        turnedRows = isTurned ? max(width * header.stride(height), rows) : 0
        // Rows in progress, and sample rows for trials: in two forms, filtered and compressed. For
        // a small picture the sample is all rows.
        margin =
            fixed
            + min(
                (isSmall ? 1100 : 300) * header.stride(longest),
                5 * rows + 8 * header.stride(longest))
    }

    /// A format that is decoded to rows: in addition the decoder's state, then turned rows and the
    /// encoder.
    var ofDecoded: MemoryEstimate {
        let library = ByteEstimate(header.memory.libraryBytes)
        let format = header.codec.flatMap { EncodedFormat(recipe, of: header, by: $0) }
        switch format {
        case nil: return MemoryEstimate(peak: margin + library, result: 0, raster: 0)
        case .container:
            return MemoryEstimate(peak: margin + max(library, source), result: source, raster: 0)
        case let format?:
            let made = encoding(format)
            // Rows without alpha are a copy.
            let opaque = format.encoder?.hasAlpha == false ? 3 * pixels + height : 0
            return MemoryEstimate(
                peak: max(made.peak, margin + rows + max(library, opaque)), result: made.result,
                raster: max(made.raster, rows))
        }
    }

    /// Encoding a raster of the header's samples.
    func encoding(_ format: EncodedFormat) -> MemoryEstimate {
        format == .smallest
            ? encodingSmallest
            : format.encoder?.estimate(self) ?? encodingPixels(beside: 0)
    }

    var mayBeTransparent: Bool { header.channels != 3 }

    /// Rows of 8-bit colours.
    var plain: ByteEstimate { (mayBeTransparent ? 4 : 3) * pixels + height }

    /// An encoder of 8-bit colours that allocates `working` bytes: rows of any kind, their 8-bit
    /// copy if they differ, turned rows, and two outputs.
    func encodingPixels(beside working: ByteEstimate) -> MemoryEstimate {
        // An upper limit: a file of noise.
        let result = recipe.quality > 90 ? 4 * pixels : 5 * pixels / 4
        return encodingPixels(beside: working + 2 * result, result: result)
    }

    private func encodingPixels(
        beside encoder: ByteEstimate, result: ByteEstimate
    ) -> MemoryEstimate {
        let isMadePlain = mayBeTransparent || header.bitDepth != 8
        return MemoryEstimate(
            peak: margin + rows + max(turnedRows, isMadePlain ? plain : 0) + encoder,
            result: result, raster: max(rows, plain))
    }

    /// The smallest of several formats: a copy of the rows for each encoder, or a decoded result
    /// and its comparison. The three outputs are the smallest of all, the smallest of the format,
    /// and the last.
    private var encodingSmallest: MemoryEstimate {
        let result = 4 * pixels
        // A JPEG is always encoded for comparison.
        var most = ImageEncoder.jpeg.workingMemory(self)
        for format in EncodedImageFormat.allCases where recipe.allowedFormats.contains(format) {
            most = max(most, format.encoder?.workingMemory(self) ?? 0)
        }
        return encodingPixels(
            beside: plain + max(plain + most, 3 * plain) + 3 * result, result: result)
    }
}

/// A saturating number of bytes: a header of 100 bytes may declare any size, and everything over
/// `Int.max` exceeds every budget.
struct ByteEstimate: Comparable, ExpressibleByIntegerLiteral {
    let count: Int

    /// - Precondition: `count` is zero or more.
    init(_ count: Int) {
        self.count = count
    }

    init(integerLiteral count: Int) {
        self.init(count)
    }

    static func + (left: ByteEstimate, right: ByteEstimate) -> ByteEstimate {
        let (sum, overflows) = left.count.addingReportingOverflow(right.count)
        return ByteEstimate(overflows ? .max : sum)
    }

    static func * (left: ByteEstimate, right: ByteEstimate) -> ByteEstimate {
        let (product, overflows) = left.count.multipliedReportingOverflow(by: right.count)
        return ByteEstimate(overflows ? .max : product)
    }

    static func / (left: ByteEstimate, right: Int) -> ByteEstimate {
        ByteEstimate(left.count / right)
    }

    static func < (left: ByteEstimate, right: ByteEstimate) -> Bool { left.count < right.count }
}
