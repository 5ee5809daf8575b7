package import PrefetchModel

/// What an image says of itself before any pixel is decoded.
package struct ImageHeader: Hashable, Sendable {
    package let format: ImageFormat
    /// As stored, before ``orientation`` is applied.
    package private(set) var widthInPixels: Int
    package private(set) var heightInPixels: Int
    /// Bits a sample.
    package let bitDepth: Int
    package let isProgressiveOrInterlaced: Bool
    /// EXIF's, 1…8; 1 is upright.
    package let orientation: Int
    /// Samples a pixel, a palette's index counting as one.
    let channels: Int
    /// Bytes of all DCT coefficients of a JPEG, rows and columns of padding blocks included.
    let coefficientBytes: Int
    /// Length of the whole file.
    var sourceBytes: Int
    /// What a library allocates at most to decode it, beside the rows that it fills.
    var libraryBytes = 0
    /// More than one picture, of which the size is that of all.
    package internal(set) var isAnimated = false
    /// A PNG's profile is unpacked to know what it says.
    var hasPackedProfile = false

    package var pixels: Int { widthInPixels * heightInPixels }

    /// Of a row with its filter type.
    func stride(_ pixels: ByteEstimate) -> ByteEstimate {
        (pixels * ByteEstimate(channels * bitDepth) + 7) / 8 + 1
    }

    /// An upper estimate, in bytes, of what decoding this image and making one result allocates, the source
    /// itself not counted: coefficients, pixels, and the output. `Int.max` for what cannot be counted.
    package func decodeMemoryBytes(for recipe: Recipe) -> Int {
        estimate(for: recipe).peak.count
    }

    /// The same of the check of the structure: nothing for a JPEG. A PNG of usual size is inflated as
    /// a whole where the budget has room for it, else row by row; one that is not made in the usual way is
    /// left to the decoder.
    package func structureMemoryBytes(within budget: Int) -> Int {
        format.codec?.memory.structure(self, budget) ?? containerMemoryBytes
    }

    /// The same of decoding a source that is stored as it came, of which the rows of a PNG are kept where the
    /// budget has room for them, since that is quicker.
    func verificationMemoryBytes(for recipe: Recipe, within budget: Int) -> Int {
        format.codec?.memory.verification(self, recipe, budget)
            ?? containerMemoryBytes
    }

    func estimate(for recipe: Recipe) -> MemoryEstimate {
        guard let codec = format.codec else {
            return MemoryEstimate(peak: ByteEstimate(containerMemoryBytes), result: 0, raster: 0)
        }
        // Steps that cannot be carried out say so before anything is decoded.
        guard let plan = PlannedRecipe(recipe, of: self).steps, !plan.isEmpty else {
            let made = codec.memory.result(self, recipe.untransformed)
            guard recipe.encoding == .auto, let own = ownRecipe(for: recipe.untransformed) else {
                return made
            }
            // It is made before, and kept beside the others.
            let before = codec.memory.result(self, own)
            return MemoryEstimate(
                peak: max(before.peak, made.adding(before.result).peak),
                result: max(before.result, made.result), raster: max(before.raster, made.raster))
        }
        return plan.estimate(from: self, by: codec, for: recipe)
    }

    /// How the source's own format is made for a recipe that looks for the smallest of several; nil where that is none
    /// of them, and for a frame of an animation, which is less than the source.
    func ownRecipe(for recipe: Recipe) -> Recipe? {
        guard !isAnimated,
            recipe.allowedFormats.contains(where: { $0.rawValue == format.rawValue })
        else { return nil }
        var same = recipe
        same.encoding = .same
        // No part of what `auto` is, see ``Recipe/maximumStoredBytes``.
        same.maximumStoredBytes = nil
        return same
    }

    /// Of a format that is not decoded.
    private var containerMemoryBytes: Int {
        format.container?.memoryBytes(ofSource: sourceBytes) ?? .max
    }

    /// As a decoder makes it at a scale.
    func decoded(at scale: DecodingScale) -> ImageHeader {
        var header = self
        header.widthInPixels = (widthInPixels + scale.rawValue - 1) / scale.rawValue
        header.heightInPixels = (heightInPixels + scale.rawValue - 1) / scale.rawValue
        return header
    }

    /// Looks whether what a recipe decodes and makes has no more pixels than may be.
    ///
    /// - Throws: `tooManyPixels`.
    func checkPixels(for recipe: Recipe, _ limits: CodecLimits) throws(CodecError) {
        // What cannot be planned is refused with its own error, if it is decoded at all.
        try checkPixels(format.codec == nil ? nil : PlannedRecipe(recipe, of: self).steps, limits)
    }

    /// The same for steps that are planned; nil for none.
    func checkPixels(_ plan: TransformationPlan?, _ limits: CodecLimits) throws(CodecError) {
        if decoded(at: plan?.scale ?? .full).pixels > limits.maximumPixels {
            throw .tooManyPixels(
                "\(widthInPixels)×\(heightInPixels) pixels, more than --max-pixels "
                    + "(\(limits.maximumPixels))")
        }
        if let plan, plan.mostPixels > limits.maximumPixels {
            throw .tooManyPixels(
                "the recipe makes a picture of more pixels than --max-pixels "
                    + "(\(limits.maximumPixels))")
        }
    }
}

/// Reads the header, without decoding. Pixels are too many where that is so for each of the recipes.
///
/// - Throws: `notAnImage` without a known signature; for formats that are not decoded what ``OtherFormats`` says of them;
///   `unsupported` for other kinds that are not, `tooManyPixels`, and `corrupt` where the header itself is damaged or
///   cut.
package func header(
    of source: UnsafeRawBufferPointer, limits: CodecLimits = CodecLimits(),
    recipes: [Recipe] = [Recipe()], others: OtherFormats = .fail
) throws(CodecError) -> ImageHeader {
    let result =
        switch try way(of: source, others) {
        case .decoded(let codec): try codec.header(source)
        case .asItCame(let format): ImageHeader(undecoded: format, source)
        }
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
    /// Of a format that is not decoded; width and height are 0 where the bytes do not say them.
    fileprivate init(undecoded format: ImageFormat, _ source: UnsafeRawBufferPointer) {
        var (width, height) = (0, 0)
        if case .known(let declaredWidth, let declaredHeight)? = format.container?.size(in: source)
        {
            // Products of more bits would not fit; no picture that anything shows is larger.
            width = min(declaredWidth, Int(Int32.max))
            height = min(declaredHeight, Int(Int32.max))
        }
        self.init(
            format: format, widthInPixels: width, heightInPixels: height, bitDepth: 0,
            isProgressiveOrInterlaced: false, orientation: 1, channels: 0, coefficientBytes: 0,
            sourceBytes: source.count)
    }
}
