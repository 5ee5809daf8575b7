internal import PrefetchModel

/// One source and the rules by which its results are made.
final class EntryPlan {
    /// The whole file.
    let bytes: UnsafeRawBufferPointer
    let source: any ImageDecoding
    let codec: ImageCodec
    let header: ImageHeader
    /// The declared colours, read when the first result needs them.
    private(set) lazy var colours = source.colours
    private(set) lazy var companions = source.companions

    init(
        bytes: UnsafeRawBufferPointer, source: any ImageDecoding, codec: ImageCodec,
        header: ImageHeader
    ) {
        self.bytes = bytes
        self.source = source
        self.codec = codec
        self.header = header
    }

    /// Decides about the colours of a result of pixels, after the steps; `format` is nil for the
    /// frames of an animation.
    ///
    /// - Throws: `unsupported` for colours that cannot be converted.
    func handling(
        by recipe: Recipe, as format: EncodedFormat?, after steps: TransformationPlan? = nil
    ) throws(CodecError) -> ColourHandling {
        let target = ColourTarget(recipe, as: format, of: header, after: steps)
        return try ColourHandling(of: colours, in: target)
    }

    /// The way to make a result of untransformed pixels.
    ///
    /// - Throws: `unsupported` for a picture that the format cannot hold, or a format that this
    ///   build does not encode.
    func way(to format: EncodedFormat, by recipe: Recipe) throws(CodecError) -> CodecWay {
        if keepsBytes(as: format, by: recipe) { return .container }
        // Samples of a high dynamic range look wrong without their description.
        let keepsSamples = recipe.stripping != .all || !colours.areOfHighDynamicRange
        if format == ownFormat, keepsSamples, let own = try source.ownWay(by: recipe) {
            return .own(own)
        }
        if recipe.encoding == .same, isIrreplaceable(for: recipe) { return .container }
        try format.check(header.widthInPixels, header.heightInPixels)
        switch format {
        case .container: return .container
        case .encoded where format.encoder?.hasAlpha == false:
            // Transparency is blended over the background in sRGB.
            return try handling(by: recipe, as: format).conversion == nil
                ? .raster(.opaque(recipe.background)) : .raster(.native)
        case .encoded, .smallest: return .raster(.native)
        }
    }

    /// Rejects a result that is impossible for any data. A damaged file gets the same
    /// answer, since another result may or may not have found the damage before.
    func checkFeasibility(of planned: PlannedRecipe, as format: EncodedFormat) throws(CodecError) {
        guard let plan = planned.steps else { return }
        guard plan.isEmpty else {
            let format = EncodedFormat(transforming: planned.recipe, by: codec)
            try format.check(plan.size.width, plan.size.height)
            _ = try handling(by: planned.recipe, as: format, after: plan)
            return
        }
        let way = try way(to: format, by: planned.recipe.untransformed)
        // The source may be the smallest; where it is kept, it may have any colours.
        if case .smallest = format, header.ownRecipe(for: planned.recipe) != nil { return }
        if case .raster = way { _ = try handling(by: planned.recipe, as: format) }
    }

    /// Notes the treatment of the colours in a result that has the source's own samples.
    ///
    /// `all` strips their description, except where a format keeps it.
    func kept(_ image: ProcessedImage, by recipe: Recipe) -> ProcessedImage {
        var image = image
        let keepsDescription =
            recipe.stripping != .all
            || (source as? any DataKeeping)?.keepsProfileAlways == true
        image.colour =
            switch colours {
            case .undeclared: .assumedSRGB
            case .sRGB, .inks(profile: nil): .kept
            case .profile, .space, .inks, .unconvertible: keepsDescription ? .kept : .assumedSRGB
            }
        return image
    }

    /// Whether another encoding of a still picture would lose something that `same` keeps, at
    /// any quality.
    private func isIrreplaceable(for recipe: Recipe) -> Bool {
        guard !header.isAnimated, let source = source as? any DataKeeping else { return false }
        switch colours {
        // No encoder writes them.
        case .space, .unconvertible: return true
        case .undeclared, .sRGB, .profile, .inks:
            return recipe.stripping == .none && source.hasUnwrittenMetadata()
        }
    }

    /// The source's own format as a candidate for the smallest result. Data that can be kept is
    /// not encoded again, since ``FormatChoice`` does that.
    var ownFormat: EncodedFormat {
        source is any DataKeeping ? .container : .encoded(codec.same.encoded)
    }

    /// The source's data without the metadata that the recipe strips.
    func pieces(keptBy recipe: Recipe) -> [ImagePiece] {
        guard !isSealed(by: recipe), let source = source as? any DataKeeping else {
            return [.source(0..<bytes.count)]
        }
        return source.pieces(keptBy: recipe)
    }

    func joined(
        _ pieces: [ImagePiece], decodeDuration: Duration
    ) throws(CodecError) -> ProcessedImage {
        let begin = ThreadClock.now
        let output = try ProcessedImage.Output(joining: pieces, of: bytes)
        var image = ProcessedImage(
            keeping: header, as: output, decodeDuration: decodeDuration,
            encodeDuration: ThreadClock.now - begin)
        image.isKeptData = true
        return image
    }
}

/// A way to make a result.
enum CodecWay {
    case own(OwnWay)
    /// The source's data is kept.
    case container
    case raster(RasterForm)

    /// The raster that the way starts from; nil for none.
    var rasterForm: RasterForm? {
        switch self {
        case .own(.shortcut), .container: nil
        case .own(.rewriting): .native
        case .raster(let form): form
        }
    }
}
