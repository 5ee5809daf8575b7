internal import PrefetchModel

/// The format of an animation that is made of another one, frame by frame.
enum AnimatedFormat {
    case gif
    case png
    case webp

    /// The format that a recipe makes of an animation; nil if it keeps the data, or takes the first
    /// frame.
    ///
    /// `auto` makes a WebP where that is allowed, since it is the smallest. So does `same` of an
    /// AVIF with steps: libavif 0.11 writes no number of plays, and holds all coded frames without
    /// telling their size, which has no limit then.
    init?(_ recipe: Recipe, of header: ImageHeader, isTransformed: Bool) {
        guard header.isAnimated, recipe.animation == .keep,
            let own = AnimatedFormat(ofFramesOf: header.format)
        else { return nil }
        let wanted: AnimatedFormat?
        switch recipe.encoding {
        case .original, .jpeg, .avif: wanted = nil
        case .same: wanted = isTransformed ? own : nil
        case .png: wanted = .png
        case .webp: wanted = .webp
        case .auto where isTransformed:
            wanted = [.webp, .png].first { format in
                recipe.allowedFormats.contains { $0.rawValue == format.imageFormat.rawValue }
                    && format.isMade
            }
        case .auto: wanted = nil
        }
        guard let wanted, wanted.isMade,
            isTransformed || wanted.imageFormat != header.format
        else { return nil }
        self = wanted
    }

    /// The format of an animation with steps; nil for a format whose frames are not decoded one by
    /// one.
    private init?(ofFramesOf format: ImageFormat) {
        switch format {
        case .gif: self = .gif
        case .png: self = .png
        case .webp, .avif: self = .webp
        default: return nil
        }
    }

    var imageFormat: ImageFormat {
        switch self {
        case .gif: .gif
        case .png: .png
        case .webp: .webp
        }
    }

    private var isMade: Bool { imageFormat.codec != nil }

    /// - Throws: `unsupported` for a canvas that the format cannot hold.
    func check(_ size: TransformationPlan.Size) throws(CodecError) {
        let (name, most) =
            switch self {
            case .gif: ("a GIF", 65_535)
            case .png: ("a PNG", Int.max)
            case .webp: ("a WebP", ImageFormat.webp.codec?.encoder?.maximumSidePixels ?? .max)
            }
        guard max(size.width, size.height) <= most else {
            throw .unsupported("\(name) has at most \(most) pixels a side")
        }
    }

    /// Makes a file of at most ``TransformedAnimation/mostBytes``.
    ///
    /// - Throws: The damage of the source, `limitExceeded`, `outOfMemory`, `encodingFailed`, or the
    ///   interruption.
    func encoded(
        _ animation: TransformedAnimation, exif: [UInt8]?, by recipe: Recipe,
        _ interruption: Interruption
    ) throws(CodecError) -> ImageBytes {
        switch self {
        case .gif: try GIFAnimationEncoding.encoded(animation, interruption)
        case .png:
            try PNGAnimationEncoding(animation, exif: exif, recipe, interruption).encoded()
        case .webp:
            try WebPAnimationEncoding.encoded(
                animation, exif: exif, by: recipe, interruption)
        }
    }

    // MARK: Memory

    /// The most bytes of a result: a multiple of the source, whose frames are compressed in
    /// similar ways, and of the growth of the canvas.
    func mostBytes(
        of header: ImageHeader, _ size: TransformationPlan.Size
    ) -> ByteEstimate {
        let factor: ByteEstimate =
            switch self {
            case .webp: 1
            case .gif: 2
            // Four samples a pixel instead of an index.
            case .png: 4
            }
        let pixels = ByteEstimate(size.width) * ByteEstimate(size.height)
        // The frames of an AVIF are differences to others.
        let growth = ByteEstimate(
            (1 + pixels.count / max(header.pixels, 1)) * (header.format == .avif ? 8 : 1))
        return factor * growth * ByteEstimate(header.sourceBytes) + 8 * pixels
            + ByteEstimate(4 << 20)
    }

    /// Upper estimate of making a result, whatever the number of frames.
    ///
    /// - Parameters:
    ///   - header: The source.
    ///   - size: The size of the result.
    ///   - steps: The memory for transforming one frame.
    ///   - recipe: The result.
    /// - Returns: The estimate.
    func estimate(
        of header: ImageHeader, _ size: TransformationPlan.Size, beside steps: ByteEstimate,
        for recipe: Recipe
    ) -> MemoryEstimate {
        let (source, made) = (
            ByteEstimate(header.pixels), ByteEstimate(size.width) * ByteEstimate(size.height)
        )
        // The canvas, the one before it, the one in sRGB, and the frame as it is decoded and in
        // plain samples.
        let decoding =
            5 * 4 * source + 8 * source * ByteEstimate(header.bitDepth) / 8
            + ByteEstimate(header.libraryBytes)
            // A PNG's frame is assembled.
            + (header.format == .png ? ByteEstimate(header.sourceBytes) : 0)
        let basis = size.basis(recipe)
        let encoding: ByteEstimate =
            switch self {
            // Two canvases, the next frame, indices, planes for fewer colours, and their cells.
            case .gif: 18 * made + ByteEstimate(1 << 20)
            case .png: basis.encoding(.encoded(.png)).peak + 12 * made
            // libwebp's three canvases, and the frame in its own form.
            case .webp: basis.encoding(.encoded(.webp)).peak + 20 * made
            }
        let result = mostBytes(of: header, size)
        return MemoryEstimate(
            peak: basis.margin + decoding + steps + 4 * made + encoding + 2 * result,
            result: result, raster: 0)
    }
}
