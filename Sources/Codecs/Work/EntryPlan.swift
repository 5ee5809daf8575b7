internal import PrefetchModel

/// One source and the rules by which its results are made.
struct EntryPlan {
    /// The whole file.
    let bytes: UnsafeRawBufferPointer
    let source: any ImageDecoding
    let codec: ImageCodec
    let header: ImageHeader

    /// The way to make a result of untransformed pixels.
    ///
    /// - Throws: `unsupported` for a picture that the format cannot hold, or a format that this
    ///   build does not encode.
    func way(to format: EncodedFormat, by recipe: Recipe) throws(CodecError) -> CodecWay {
        if format == EncodedFormat(codec.same),
            let own = try (source as? any OwnFormatMaking)?.ownWay(by: recipe)
        {
            return .own(own)
        }
        try format.check(header.widthInPixels, header.heightInPixels)
        switch format {
        case .container: return .own(.container { [.source(0..<bytes.count)] })
        case .encoded where format.encoder?.hasAlpha == false:
            return .raster(.opaque(recipe.background))
        case .encoded, .smallest: return .raster(.native)
        }
    }

    /// Rejects a result that is impossible whatever the decoder finds. A damaged file gets the same
    /// answer, since another result may or may not have found the damage before.
    func checkFeasibility(
        of planned: PlannedRecipe, as format: EncodedFormat
    ) throws(CodecError) {
        guard let plan = planned.steps else { return }
        guard plan.isEmpty else {
            try EncodedFormat(transforming: planned.recipe, by: codec)
                .check(plan.size.width, plan.size.height)
            return try checkColours()
        }
        let way = try way(to: format, by: planned.recipe.untransformed)
        // The kept source may be the smallest whatever its colours.
        if case .smallest = format, header.ownRecipe(for: planned.recipe) != nil { return }
        if way.rasterForm != nil { try checkColours() }
    }

    func checkColours() throws(CodecError) {
        try (source as? any ColourChecking)?.checkColours()
    }

    /// The file of ``OwnWay/container(_:)``.
    ///
    /// - Throws: `outOfMemory`.
    func joined(
        _ pieces: [ImagePiece], decodeDuration: Duration
    ) throws(CodecError) -> ProcessedImage {
        let begin = ThreadClock.now
        var output = ProcessedImage.Output.source
        if !pieces.isWhole(bytes) {
            guard let copy = ImageBytes(joining: pieces, of: bytes) else {
                throw .outOfMemory("no memory for the output")
            }
            let isSame =
                copy.count == bytes.count && copy.withUnsafeBytes { $0.elementsEqual(bytes) }
            if !isSame { output = .encoded(copy) }
        }
        return ProcessedImage(
            output: output, format: header.format, widthInPixels: header.widthInPixels,
            heightInPixels: header.heightInPixels, decodeDuration: decodeDuration,
            encodeDuration: ThreadClock.now - begin)
    }
}

/// A way to make a result.
enum CodecWay {
    case own(OwnWay)
    case raster(RasterForm)

    /// The raster that the way starts from; nil for none.
    var rasterForm: RasterForm? {
        switch self {
        case .own(.shortcut), .own(.container): nil
        case .own(.rewriting): .native
        case .raster(let form): form
        }
    }
}
