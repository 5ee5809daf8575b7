package import PrefetchModel

/// The bytes that a decoder allocates besides the rows, as far as the header tells.
struct DecoderMemory: Hashable, Sendable {
    /// Bytes of all DCT coefficients of a JPEG, rows and columns of padding blocks included.
    var coefficientBytes = 0
    /// Upper estimate of the library's memory for decoding, without the rows.
    var libraryBytes = 0
    /// Whether a profile must be unpacked to be read, as in a PNG.
    var hasPackedProfile = false
    /// Whether samples are indices into a palette.
    var isIndexed = false
    /// Whether colours of the palette, or one colour of all, are transparent.
    var hasTransparentColours = false
    /// Whether steps alone make pixels transparent.
    var hasSimpleAlpha = false
}

/// The properties of an image that are known before any pixel is decoded.
package struct ImageHeader: Hashable, Sendable {
    package let format: ImageFormat
    /// As stored, before ``orientation`` is applied.
    package private(set) var widthInPixels: Int
    package private(set) var heightInPixels: Int
    /// Bits a sample.
    package let bitDepth: Int
    package private(set) var isProgressiveOrInterlaced = false
    /// EXIF orientation, or the same turn stated in another way, 1…8; 1 needs no turn.
    package private(set) var orientation = ExifOrientation.upright
    /// Samples a pixel; a palette index counts as one.
    let channels: Int
    var memory = DecoderMemory()
    /// Length of the whole file.
    var sourceBytes: Int
    /// Whether there is more than one picture; the size is the canvas's.
    package internal(set) var isAnimated = false
    /// As far as the bytes of the header tell; 1 for a still image.
    package internal(set) var frames = 1
    /// Why the library behind the format's decoder does not decode this file, though its container
    /// may be whole; nil if it does. Only for formats with a container check.
    var libraryRefusal: String?
    /// The quality of a lossy picture on libjpeg's scale, 1…100, by its quantiser. Nil for a format
    /// without data kept by quality, a lossless or deeper picture, an animation, and where the data
    /// is not read yet.
    var lossyQuality: Double?

    package var pixels: Int { widthInPixels * heightInPixels }

    /// The size with ``orientation`` applied, as filters, rows and reports state it.
    package var displayedSize: (width: Int, height: Int) {
        ExifOrientation.displayedSize(widthInPixels, heightInPixels, orientation)
    }

    /// The codec that decodes this file; nil if the file can only be stored unchanged.
    var codec: ImageCodec? { libraryRefusal == nil ? format.codec : nil }

    /// The bytes of a row with its filter type, as decoded.
    func stride(_ pixels: ByteEstimate) -> ByteEstimate {
        (pixels * ByteEstimate(rasterChannels * bitDepth) + 7) / 8 + 1
    }

    /// Samples of a decoded pixel: inks are converted while they are decoded.
    private var rasterChannels: Int { format == .jpeg ? min(channels, 3) : channels }

    /// Whether some pixels may not be opaque.
    var mayBeTransparent: Bool {
        memory.hasTransparentColours || rasterChannels % 2 == 0
    }

    var isGrey: Bool { channels < 3 && !memory.isIndexed }

    /// Samples of a pixel of 8 bits without a palette, 1…4. A profile may make colours of grey.
    var plainChannels: Int {
        (isGrey && !memory.hasPackedProfile ? 1 : 3) + (mayBeTransparent ? 1 : 0)
    }

    /// Whether the picture was compressed with loss or is as dense as a photograph, so that it is
    /// larger if compressed without loss.
    private var hasLossyDetail: Bool {
        switch format {
        case .jpeg, .heif: true
        // Photographs take more than a byte a pixel, graphics a tenth of one.
        case .png, .webp, .avif: lossyQuality != nil || sourceBytes > pixels / 2
        case .jpegXL, .jpeg2000: sourceBytes > pixels / 8
        default: false
        }
    }

    /// Upper estimate of the structure check, see ``CheckDepth/structure``.
    package func structureMemoryBytes(within budget: Int) -> Int {
        codec?.source.structureMemoryBytes(of: self, within: budget) ?? containerMemoryBytes
    }

    /// Upper estimate of decoding a source that is stored unchanged, see
    /// ``CheckDepth/pixels``.
    func verificationMemoryBytes(for recipe: Recipe, within budget: Int) -> Int {
        codec?.source.verificationMemoryBytes(of: self, for: recipe, within: budget)
            ?? containerMemoryBytes
    }

    /// Upper estimate of decoding this image and making one result: coefficients, pixels and
    /// output, without the source.
    func estimate(for recipe: Recipe) -> MemoryEstimate {
        guard let codec else {
            return MemoryEstimate(peak: ByteEstimate(containerMemoryBytes), result: 0, raster: 0)
        }
        let planned = PlannedRecipe(recipe, of: self)
        if let plan = planned.steps, let encoder = planned.animationEncoder {
            return encoder.estimate(
                of: self, plan.size, beside: plan.workingMemory(from: self), for: recipe)
        }
        // Impossible steps fail before anything is decoded.
        guard let plan = planned.steps, !plan.isEmpty else {
            let made = codec.source.memory(of: self, for: recipe.untransformed)
            guard recipe.encoding == .auto, let own = ownRecipe(for: recipe.untransformed) else {
                return made
            }
            // It is made first, and kept with the others.
            let before = codec.source.memory(of: self, for: own)
            return MemoryEstimate(
                peak: max(before.peak, made.adding(before.result).peak),
                result: max(before.result, made.result), raster: max(before.raster, made.raster))
        }
        return plan.estimate(from: self, by: codec, for: recipe)
    }

    /// The recipe that makes the source's own format as a candidate for the smallest result. Nil if
    /// that format is not allowed, and for an animation, since a frame is less than the source.
    func ownRecipe(for recipe: Recipe) -> Recipe? {
        guard !isAnimated,
            recipe.allowedFormats.contains(where: { $0.rawValue == format.rawValue })
        else { return nil }
        var same = recipe
        same.encoding = .same
        // Not part of `auto`, see ``Recipe/maximumStoredBytes``.
        same.maximumStoredBytes = nil
        return same
    }

    /// Whether a result without steps has the source's own frames. A format that the recipe names
    /// is made, of the first frame unless it has animations.
    func keepsFrames(for recipe: Recipe) -> Bool {
        isAnimated && recipe.animation != .first
            && (recipe.encoding.format?.rawValue ?? format.rawValue) == format.rawValue
    }

    /// Whether the result is the source's own data, without an attempt to encode it.
    ///
    /// A lossy picture within ``qualityTolerance`` of the recipe's quality is kept.
    func keepsData(for recipe: Recipe, _ same: SameRule) -> Bool {
        guard !isAnimated else { return false }
        switch same.keeping {
        case .never: return false
        case .always: return recipe.encoding == .same
        case .unlessFiner:
            guard recipe.encoding == .same || recipe.encoding.format == same.encoded else {
                return false
            }
            guard let lossyQuality else { return recipe.encoding == .same }
            if recipe.economy == .keepingData { return true }
            // From near the lowest quality that is tried, lowering it further gains little.
            let fits = sourceBytes <= recipe.maximumStoredBytes ?? .max
            let quality =
                fits ? recipe.quality : min(recipe.quality, QualitySearch.floor + 7)
            return (recipe.encoding == .same || !recipe.keepsLarger)
                && lossyQuality <= Double(quality) + ImageHeader.qualityTolerance
        }
    }

    /// The quality of a source is read to within this number of steps: see `VP8FrameHeader`.
    static let qualityTolerance = 3.0

    /// The recipe as it is carried out within a memory budget: with as little economy as possible,
    /// or all of it if nothing suffices.
    func settled(_ recipe: Recipe, within budget: Int) -> Recipe {
        guard recipe.encoding != .original else { return recipe }
        var settled = recipe
        for economy in Recipe.Economy.allCases {
            if economy == .none, hasLossyDetail { continue }
            if economy == .keepingData, lossyQuality == nil { break }
            settled.economy = economy
            if estimate(for: settled).peak.count <= budget { break }
        }
        return settled
    }

    /// The memory of a format that is not decoded.
    private var containerMemoryBytes: Int {
        format.container?.memoryBytes(ofSource: sourceBytes) ?? .max
    }

    /// The header of the picture decoded at a scale.
    func decoded(at scale: DecodingScale) -> ImageHeader {
        var header = self
        header.widthInPixels = (widthInPixels + scale.rawValue - 1) / scale.rawValue
        header.heightInPixels = (heightInPixels + scale.rawValue - 1) / scale.rawValue
        return header
    }

    /// Checks the pixels that a recipe decodes and makes against the limit.
    func checkPixels(for recipe: Recipe, _ limits: CodecLimits) throws(CodecError) {
        // Steps that cannot be planned are refused with their own error, if the format is decoded
        // at all.
        try checkPixels(codec == nil ? nil : PlannedRecipe(recipe, of: self).steps, limits)
    }

    /// The same for planned steps; nil for none.
    func checkPixels(_ plan: TransformationPlan?, _ limits: CodecLimits) throws(CodecError) {
        if decoded(at: plan?.scale ?? .full).pixels > limits.maximumPixels {
            let (width, height) = displayedSize
            throw .tooManyPixels(
                "\(width)×\(height) pixels, more than --max-pixels "
                    + "(\(limits.maximumPixels))")
        }
        if let plan, plan.mostPixels > limits.maximumPixels {
            throw .tooManyPixels(
                "the recipe makes a picture of more pixels than --max-pixels "
                    + "(\(limits.maximumPixels))")
        }
    }
}

/// Reads the header, without decoding. Pixels are too many if they are for each of the recipes.
///
/// - Throws: `notAnImage` without a known signature; for formats that are not decoded the error of
///   ``OtherFormats``; `unsupported`, `tooManyPixels`; `corrupt` if the header is damaged or cut.
package func header(
    of source: UnsafeRawBufferPointer, limits: CodecLimits = CodecLimits(),
    recipes: [Recipe] = [Recipe()], others: OtherFormats = .fail
) throws(CodecError) -> ImageHeader {
    try header(
        of: source, acceptedFormat(of: source, others), limits: limits, recipes: recipes,
        others: others)
}

/// The same for a source of a format that the rule accepts.
func header(
    of source: UnsafeRawBufferPointer, _ format: ImageFormat, limits: CodecLimits,
    recipes: [Recipe], others: OtherFormats
) throws(CodecError) -> ImageHeader {
    let result =
        try format.codec?.source.header(of: source) ?? ImageHeader(undecoded: format, source)
    if let text = result.libraryRefusal { try others.check(text) }
    var refusal: CodecError?
    for recipe in recipes {
        do throws(CodecError) {
            try result.checkPixels(for: recipe, limits)
            return result
        } catch {
            refusal = refusal ?? error
        }
    }
    if let refusal { throw refusal }
    return result
}

extension ImageHeader {
    /// The header of a file that is not decoded; width and height are 0 if unknown.
    init(
        undecoded format: ImageFormat, _ source: UnsafeRawBufferPointer,
        libraryRefusal: String? = nil
    ) {
        var (width, height) = (0, 0)
        if case .known(let declaredWidth, let declaredHeight)? = format.container?.size(in: source)
        {
            // Larger products would overflow, and no displayable picture is larger.
            width = min(declaredWidth, Int(Int32.max))
            height = min(declaredHeight, Int(Int32.max))
        }
        self.init(
            format: format, widthInPixels: width, heightInPixels: height, bitDepth: 0,
            orientation: format.container?.orientation(in: source) ?? ExifOrientation.upright,
            channels: 0, sourceBytes: source.count)
        self.libraryRefusal = libraryRefusal
    }
}
