internal import PrefetchModel

/// What making a result allocates at most, the source itself not counted.
struct MemoryEstimate {
    /// While it is made, with the result.
    let peak: ByteEstimate
    /// What of it stays when it is made.
    let result: ByteEstimate
    /// Of the pixels or coefficients that other results can be made of, too.
    let raster: ByteEstimate

    /// With so much more while it is made.
    func adding(_ bytes: ByteEstimate) -> MemoryEstimate {
        MemoryEstimate(peak: peak + bytes, result: result, raster: raster)
    }
}

/// What the estimates of all formats have in common.
struct EstimateBasis {
    let header: ImageHeader
    let recipe: Recipe
    let width: ByteEstimate
    let height: ByteEstimate
    let pixels: ByteEstimate
    /// Of the file.
    let source: ByteEstimate
    /// A result of the same format may be upright where the source is not.
    let isTurned: Bool
    let isSmall: Bool
    /// All rows, each with its filter type.
    let rows: ByteEstimate
    /// The same upright; zero where nothing is turned.
    let turnedRows: ByteEstimate
    /// The libraries' own state and tables, and rows in work.
    let margin: ByteEstimate

    init(_ header: ImageHeader, _ recipe: Recipe) {
        self.header = header
        self.recipe = recipe
        width = ByteEstimate(header.widthInPixels)
        height = ByteEstimate(header.heightInPixels)
        pixels = ByteEstimate(header.pixels)
        source = ByteEstimate(header.sourceBytes)
        isTurned = header.orientation != ExifOrientation.upright && recipe.stripping != .none
        isSmall = recipe.effort == .small
        // libdeflate's compressor is most of it, of which the highest levels have 9 MB.
        var fixed = ByteEstimate(isSmall ? 12 << 20 : 3 << 20)
        if header.hasPackedProfile {
            fixed = fixed + 2 * ByteEstimate(CodecLimits().maximumMetadataBytes)
        }
        // Taken out of the source and put together.
        if recipe.stripping == .none { fixed = fixed + 2 * source }
        let longest = isTurned ? max(width, height) : width
        rows = height * header.stride(width)
        turnedRows = isTurned ? max(width * header.stride(height), rows) : 0
        // Rows in work, and those on which ways to write them are tried: in two forms, filtered and
        // compressed. Those of a small picture are all of them.
        margin =
            fixed
            + min(
                (isSmall ? 1100 : 300) * header.stride(longest),
                5 * rows + 8 * header.stride(longest))
    }

    /// Of a format that is decoded and not encoded: beside the rows, what its decoder has while it makes them;
    /// afterwards the rows, upright beside those, and the output, with more effort a copy of them and two outputs.
    var ofDecoded: MemoryEstimate {
        let library = ByteEstimate(header.libraryBytes)
        let format = header.format.codec.flatMap { EncodedFormat(recipe, of: header, by: $0) }
        switch format {
        case nil: return MemoryEstimate(peak: margin + library, result: 0, raster: 0)
        case .container:
            return MemoryEstimate(peak: margin + max(library, source), result: source, raster: 0)
        case .jpeg:
            // Without their alpha, the rows are others.
            let made = encodingJPEG
            return MemoryEstimate(
                peak: max(made.peak, margin + rows + max(library, 3 * pixels + height)),
                result: made.result, raster: max(made.raster, rows))
        case .png:
            let written = (isSmall ? 3 : 1) * max(rows, turnedRows)
            return MemoryEstimate(
                peak: margin + rows + max(library, turnedRows + written), result: rows, raster: rows
            )
        case .webp?, .avif?, .smallest?:
            let made = encodingPixels(as: format)
            return MemoryEstimate(
                peak: max(made.peak, margin + rows + library), result: made.result,
                raster: made.raster)
        }
    }

    /// A WebP, an AVIF or the smallest of several, of rows of any kind: beside them such as the encoders take, where they
    /// are no such, turned, and what the encoder has.
    func encodingPixels(as format: EncodedFormat?) -> MemoryEstimate {
        let mayBeTransparent = header.channels != 3
        let plain = (mayBeTransparent ? 4 : 3) * pixels + height
        let isMadePlain = mayBeTransparent || header.bitDepth != 8
        // A file of noise.
        let result = recipe.quality > 90 || format == .smallest ? 4 * pixels : 5 * pixels / 4
        let encoder: ByteEstimate
        switch format {
        case .webp: encoder = webPEncoder(mayBeTransparent) + 2 * result
        case .avif: encoder = avifEncoder + 2 * result
        case .smallest:
            let most = max(
                recipe.allowedFormats.contains(.webp) ? webPEncoder(mayBeTransparent) : 0,
                recipe.allowedFormats.contains(.avif) ? avifEncoder : 0,
                recipe.allowedFormats.contains(.png) ? (isSmall ? 3 : 1) * plain : 0,
                6 * pixels)
            // A copy for each, or what is compared; the smallest of all and of the format, and the last.
            encoder = plain + max(plain + most, 3 * plain) + 3 * result
        case .jpeg, .png, .container, nil: encoder = 0
        }
        return MemoryEstimate(
            peak: margin + rows + max(turnedRows, isMadePlain ? plain : 0) + encoder,
            result: result, raster: max(rows, plain))
    }

    /// What libwebp 1.2.4 allocates, measured over noise: 22 bytes a pixel without loss, 35 for an alpha channel, which is
    /// written so; two else.
    private func webPEncoder(_ mayBeTransparent: Bool) -> ByteEstimate {
        let isTriedLossless = pixels.count <= WebPEncoding.mostPixelsOfLossless
        let each: ByteEstimate = mayBeTransparent ? 40 : isTriedLossless ? 25 : 2
        return each * pixels + ByteEstimate(4 << 20)
    }

    /// What aom 3.6 and libavif 0.11 allocate, measured as the growth of the process: some 30 bytes a pixel, and frames
    /// with wide borders.
    private var avifEncoder: ByteEstimate {
        30 * pixels + 12 * ((width + 384) * (height + 384)) + ByteEstimate(16 << 20)
    }

    /// A JPEG of pixels: grey or RGB, before with alpha, and beside it turned, or all coefficients and
    /// the output.
    var encodingJPEG: MemoryEstimate {
        let isLarge = pixels > ByteEstimate(JPEGEncoding.mostPixelsOfWholeChroma)
        let coefficients = (isLarge ? 3 : 6) * pixels
        let jpeg = recipe.quality > 90 ? 6 * pixels : 3 * pixels / 2
        let trials = min(ByteEstimate(recipe.maximumStoredBytes ?? 0), 3 * pixels)
        let raster = 3 * pixels + height
        return MemoryEstimate(
            peak: margin + raster + coefficients + jpeg + 2 * trials, result: jpeg, raster: raster)
    }
}

/// A number of bytes that saturates: a header of 100 bytes may say anything, and whatever is beyond
/// `Int.max` is beyond every budget.
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
