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

    /// The same where another phase takes `bytes`.
    func atLeast(_ bytes: ByteEstimate) -> MemoryEstimate {
        MemoryEstimate(peak: max(peak, bytes), result: result, raster: raster)
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
    /// The libraries' state and tables, metadata, and rows in progress.
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
        rows = height * header.stride(width)
        turnedRows = isTurned ? max(width * header.stride(height), rows) : 0
        var fixed = ByteEstimate(1 << 20)
        if header.memory.hasPackedProfile {
            fixed = fixed + 2 * ByteEstimate(CodecLimits.maximumMetadataBytes)
        }
        // Metadata is copied from the source and joined.
        if recipe.stripping == .none { fixed = fixed + 2 * source }
        let longest = isTurned ? max(width, height) : width
        margin = fixed + min(64 * header.stride(longest), 2 * rows)
    }

    /// Compressing rows as a PNG: mostly libdeflate's compressor, up to 9 MB at the highest levels,
    /// and rows for trials, in two forms, filtered and compressed. For a small picture all rows are
    /// tried.
    var packing: ByteEstimate {
        let longest = isTurned ? max(width, height) : width
        return ByteEstimate(isSmall ? 11 << 20 : 2 << 20)
            + min(
                (isSmall ? 1036 : 236) * header.stride(longest),
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
        case let format?: return encoding(format).atLeast(ofRaster)
        }
    }

    /// Decoding to rows, with the decoder's state.
    var ofRaster: ByteEstimate { margin + rows + ByteEstimate(header.memory.libraryBytes) }

    /// Encoding a raster of the header's samples.
    func encoding(_ format: EncodedFormat) -> MemoryEstimate {
        format == .smallest
            ? encodingSmallest
            : format.encoder?.estimate(self) ?? encodingPixels(beside: 0, result: 0)
    }

    /// Rows of 8-bit colours, with alpha if the picture may have it.
    var plain: ByteEstimate { (header.mayBeTransparent ? 4 : 3) * pixels + height }

    /// Whether encoders see no colours.
    var isGrey: Bool { header.plainChannels < 3 }

    /// Opaque rows of 8-bit grey or colours.
    var opaque: ByteEstimate { (isGrey ? 1 : 3) * pixels + height }

    /// Whether the rows are a copy as soon as they are opaque.
    var isMadeOpaque: Bool {
        header.mayBeTransparent || header.memory.isIndexed || header.bitDepth != 8
    }

    /// The results that are kept while smaller ones are tried.
    func kept(_ result: ByteEstimate) -> ByteEstimate {
        recipe.maximumStoredBytes == nil ? 0 : 2 * result
    }

    /// An encoder of 8-bit colours that allocates `working` bytes beside them, outputs included. In
    /// turn, there are rows of any kind and plain ones, copies without alpha or turned, and the
    /// encoder.
    func encodingPixels(beside working: ByteEstimate, result: ByteEstimate) -> MemoryEstimate {
        let isCopied = isMadeOpaque || header.plainChannels != 3
        let copies = isTurned || header.mayBeTransparent ? 2 * plain : 0
        return MemoryEstimate(
            peak: margin + max(max(isCopied ? rows + plain : rows, copies), plain + working),
            result: result, raster: max(rows, plain))
    }

    /// The smallest of several formats: a copy of the rows for each encoder, or a decoded result
    /// and its comparison. The smallest output of the formats before is kept, and the best of a
    /// format that is tried several times.
    private var encodingSmallest: MemoryEstimate {
        let (width, height) = header.displayedSize
        func basis(_ channels: Int) -> EstimateBasis {
            TransformationPlan.Size(width: width, height: height).basis(
                recipe, channels: channels, hasSimpleAlpha: header.memory.hasSimpleAlpha)
        }
        let channels = header.plainChannels
        let isCompared = recipe.economy < .withoutTrials
        var (most, result) = (ByteEstimate(0), ByteEstimate(0))
        for isTransparent in header.mayBeTransparent ? [true, false] : [false] {
            let basis = basis(isTransparent ? channels : channels - (channels + 1) % 2)
            for format in FormatChoice.candidates(
                for: recipe, width, height, isTransparent: isTransparent)
            {
                let made = basis.encoding(.encoded(format))
                let isTriedAgain = isCompared && format.encoder?.curve != nil
                let compared = isTriedAgain ? 5 * pixels + made.result : 0
                let kept = isTriedAgain ? result + made.result : result
                most = max(most, max(made.peak, compared) + kept)
                result = max(result, made.result)
            }
        }
        let basis = basis(channels)
        if isCompared {
            // A JPEG of nearly the same size is encoded for comparison, and decoded.
            let encoding = JPEGEncoding.working(basis)
            most = max(
                most,
                basis.opaque
                    + max(
                        header.mayBeTransparent ? basis.plain : encoding.peak,
                        basis.opaque + encoding.result))
        }
        return MemoryEstimate(
            peak: margin + plain + max(rows, most),
            result: result, raster: max(rows, plain))
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
