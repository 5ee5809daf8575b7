internal import PrefetchModel

/// The encoder of one format's animations.
///
/// Each format declares its value in its folder, as ``ImageCodec/animationEncoder`` of its codec.
struct AnimationEncoder: Sendable {
    let format: ImageFormat
    let sideLimit: SideLimit
    /// The metadata that the format holds.
    var room = MetadataRoom()
    /// The largest result, as a multiple of the source: one that stores indices has smaller frames
    /// than one that stores colours.
    let growth: ByteEstimate
    /// Upper estimate of the encoder's memory; the basis has the size of the canvas.
    let memory: @Sendable (EstimateBasis) -> ByteEstimate
    /// Makes a file of at most ``TransformedAnimation/mostBytes``, with metadata within ``room``.
    ///
    /// Throws the damage of the source, `limitExceeded`, `outOfMemory`, `encodingFailed`, or the
    /// interruption.
    let encode:
        @Sendable (
            _ animation: TransformedAnimation, _ metadata: CarriedMetadata, _ recipe: Recipe,
            _ interruption: Interruption
        ) throws(CodecError) -> ImageBytes

    /// The encoder for the frames of an animation; nil if the recipe keeps the data, or takes the
    /// first frame.
    static func chosen(
        by recipe: Recipe, of header: ImageHeader, isTransformed: Bool
    ) -> AnimationEncoder? {
        guard header.isAnimated, recipe.animation == .keep, let codec = header.format.codec,
            codec.animations != nil
        else { return nil }
        let chosen: AnimationEncoder? =
            switch recipe.encoding {
            case .same: isTransformed ? codec.animationEncoder : nil
            case .auto: isTransformed ? smallest(of: recipe.allowedFormats) : nil
            default: recipe.encoding.format?.animationEncoder
            }
        guard let chosen, isTransformed || chosen.format != header.format else { return nil }
        return chosen
    }

    private static func smallest(of formats: Set<EncodedImageFormat>) -> AnimationEncoder? {
        formats.compactMap(\.animationEncoder).min { $0.growth < $1.growth }
    }

    // MARK: Memory

    /// The limit on the bytes of a result. It is proportional to the source and to the growth of
    /// the canvas, since the frames of both files are compressed in similar ways.
    func mostBytes(of header: ImageHeader, _ size: TransformationPlan.Size) -> ByteEstimate {
        let pixels = ByteEstimate(size.width) * ByteEstimate(size.height)
        let factor = header.format.codec?.animations?.growthOfFrames ?? 1
        let canvases = ByteEstimate((1 + pixels.count / max(header.pixels, 1)) * factor)
        return growth * canvases * ByteEstimate(header.sourceBytes) + 8 * pixels
            + ByteEstimate(4 << 20)
    }

    /// Upper estimate of making a result of a size, for any number of frames. `steps` is the memory
    /// for transforming one frame.
    func estimate(
        of header: ImageHeader, _ size: TransformationPlan.Size, beside steps: ByteEstimate,
        for recipe: Recipe
    ) -> MemoryEstimate {
        let source = ByteEstimate(header.pixels)
        // The canvas, the one before it, the one in sRGB, and the frame as it is decoded and in
        // plain samples.
        let decoding =
            5 * 4 * source + 8 * source * ByteEstimate(header.bitDepth) / 8
            + ByteEstimate(header.memory.libraryBytes)
            + (header.format.codec?.animations?.frameMemory(of: header) ?? 0)
        let basis = size.basis(recipe)
        let result = mostBytes(of: header, size)
        return MemoryEstimate(
            peak: basis.margin + decoding + steps + 4 * basis.pixels + memory(basis) + 2 * result,
            result: result, raster: 0)
    }
}

extension EncodedImageFormat {
    /// Nil for a format without animations, or one that this build does not encode.
    fileprivate var animationEncoder: AnimationEncoder? {
        let encoder = ImageFormat(rawValue: rawValue)?.codec?.animationEncoder
        return encoder?.format.rawValue == rawValue ? encoder : nil
    }
}
