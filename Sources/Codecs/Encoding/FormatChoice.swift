internal import PrefetchModel

/// Picks the smallest of several formats at one quality, for ``Recipe/Encoding/auto``.
///
/// Results have the same quality if they are as similar to the picture as a JPEG of the requested
/// quality. WebP and AVIF are encoded by their ``QualityCurve``, decoded and compared, and encoded
/// again if they are better or worse. Lossless formats are tried for flat and smooth pictures only,
/// since they are never the smallest for a photograph.
struct FormatChoice {
    struct Candidate {
        let image: ProcessedImage
        let byteCount: Int
        /// Whether the source's data was kept, so an encoding of its format may be smaller.
        var isKept = false
        /// Whether it has the wanted quality or a better one.
        var isGood = true

        /// The first of two equal candidates wins, and the last of two bad ones, which is nearer.
        func isWorse(than other: Candidate) -> Bool {
            isGood && other.isGood ? other.byteCount < byteCount : !isGood
        }
    }

    /// For each format.
    private static let mostTrials = 4

    let recipe: Recipe
    let interruption: Interruption

    /// Returns the smallest result of a raster with its orientation still to be applied.
    ///
    /// `own` is the result of the source's own format, if it is allowed and the raster shows the
    /// source. It is not made again, unless the data was kept.
    ///
    /// - Throws: `unsupported` if no format holds the picture, and the errors of encoders.
    func smallest(
        of raster: consuming Raster, metadata: CarriedMetadata, beside own: Candidate?
    ) throws(CodecError) -> ProcessedImage {
        let begin = ThreadClock.now
        var picture = try raster.plainWithoutOpaqueAlpha(interruption)
        try picture.turn(interruption)
        let isTransparent = picture.alpha != .none
        let formats = formats(for: picture, beside: own, isTransparent)
        if isTransparent, !formats.isEmpty,
            !formats.contains(where: { $0.encoder?.hasAlpha == true })
        {
            picture = try picture.opaque(over: recipe.background, interruption)
        }
        let isCompared = isCompared && formats.contains { $0.encoder?.curve != nil }
        let reference = isCompared ? try reference(of: picture) : 1
        var best = own
        let isFlat = picture.isFlat
        for format in formats {
            if format.encoder?.isLossless == true, !isFlat, let best, best.isGood,
                !picture.mayBeSmallerLossless(than: best.byteCount)
            {
                continue
            }
            let made = try made(format, of: picture, metadata: metadata, reference, beside: best)
            best = best.map { $0.isWorse(than: made) ? made : $0 } ?? made
        }
        guard var image = best?.image else {
            throw .unsupported(
                "none of --allow-formats holds a picture of "
                    + "\(picture.widthInPixels)×\(picture.heightInPixels) pixels")
        }
        image.decodeDuration = own?.image.decodeDuration ?? .zero
        image.encodeDuration = ThreadClock.now - begin + (own?.image.encodeDuration ?? .zero)
        return image
    }

    /// Whether results are decoded and compared, which takes more memory than to make them.
    private var isCompared: Bool { recipe.economy < .withoutTrials }

    /// The formats to try for a picture of a size: all allowed ones that hold it, in the order of
    /// the cases, or the one that takes least memory.
    static func candidates(
        for recipe: Recipe, _ width: Int, _ height: Int, isTransparent: Bool
    ) -> [EncodedImageFormat] {
        func isSuitable(_ format: EncodedImageFormat) -> Bool {
            recipe.allowedFormats.contains(format)
                && (try? EncodedFormat.encoded(format).check(width, height)) != nil
        }
        guard recipe.economy >= .withoutTrials else {
            return EncodedImageFormat.allCases.filter(isSuitable)
        }
        let thriftiest: [EncodedImageFormat] =
            isTransparent ? [.png, .avif, .webp, .jpeg] : [.webp, .jpeg, .avif, .png]
        return Array(thriftiest.filter(isSuitable).prefix(1))
    }

    /// The formats to try, lossless ones last. JPEG is tried for a transparent picture only if
    /// nothing else is allowed.
    private func formats(
        for picture: borrowing Raster, beside own: Candidate?, _ isTransparent: Bool
    ) -> [EncodedImageFormat] {
        var formats = FormatChoice.candidates(
            for: recipe, picture.widthInPixels, picture.heightInPixels,
            isTransparent: isTransparent
        ).filter { $0.rawValue != own?.image.format.rawValue || own?.isKept == true }
        func prefer(_ isSuitable: (ImageEncoder) -> Bool) {
            let others = formats.filter { $0.encoder.map(isSuitable) ?? false }
            if !others.isEmpty || own != nil { formats = others }
        }
        if isTransparent { prefer(\.hasAlpha) }
        let lossless = formats.filter { $0.encoder?.isLossless == true }
        return formats.filter { !lossless.contains($0) } + lossless
    }

    /// The smallest good result in one format, or else the last trial. `best` is of other formats.
    private func made(
        _ format: EncodedImageFormat, of picture: borrowing Raster, metadata: CarriedMetadata,
        _ reference: Double, beside best: Candidate?
    ) throws(CodecError) -> Candidate {
        var kept: Candidate?
        var search = QualityScale.Search(for: recipe.quality, where: reference)
        for _ in 0..<FormatChoice.mostTrials {
            guard let quality = search.next else { break }
            let image = try encoded(picture, format, quality, metadata: metadata)
            guard case .encoded(let bytes) = image.output else { break }
            var made = Candidate(image: image, byteCount: bytes.count)
            if format.encoder?.curve == nil || !isCompared { return made }
            let similarity = try similarity(of: bytes, in: image.format, to: picture)
            search.add(similarity, of: quality)
            made.isGood = search.isLastGood
            kept = kept.map { $0.isWorse(than: made) ? made : $0 } ?? made
            // A better result is larger, unless it is lossless.
            if let best, best.isGood, made.byteCount >= best.byteCount, !made.isGood { break }
        }
        guard let kept else { throw .encodingFailed("no output") }
        return kept
    }

    private func encoded(
        _ picture: borrowing Raster, _ format: EncodedImageFormat, _ quality: Int,
        metadata: CarriedMetadata
    ) throws(CodecError) -> ProcessedImage {
        var trial = recipe
        trial.quality = quality
        trial.maximumStoredBytes = nil
        var copy = try picture.copy()
        copy.follow(interruption)
        return try EncodedFormat.encoded(format).encoded(
            copy, metadata: metadata, by: trial, interruption)
    }

    /// The similarity of a JPEG of the recipe's quality. Its blocks are shifted by four pixels
    /// right and down: a source that was a JPEG would lose nothing more on its own block grid.
    private func reference(of picture: borrowing Raster) throws(CodecError) -> Double {
        let width = max(picture.widthInPixels - 4, 1)
        let height = max(picture.heightInPixels - 4, 1)
        var opaque = try picture.cropped(
            x: picture.widthInPixels - width, y: picture.heightInPixels - height,
            to: TransformationPlan.Size(width: width, height: height), interruption)
        if opaque.alpha != .none { opaque = try opaque.opaque(over: .black, interruption) }
        var plain = Recipe(encoding: .jpeg, quality: recipe.quality)
        plain.stripping = .all
        let halvesChroma = JPEGEncoding.halvesChroma(&opaque.rows)
        let bytes = try JPEGEncoding.encoded(
            upright: opaque, halvesChroma: halvesChroma, metadata: .none, by: plain, interruption)
        return try similarity(of: bytes, in: .jpeg, to: opaque)
    }

    private func similarity(
        of bytes: ImageBytes, in format: ImageFormat, to picture: borrowing Raster
    ) throws(CodecError) -> Double {
        guard let codec = format.codec else { throw .encodingFailed("no decoder") }
        var limits = CodecLimits()
        limits.maximumPixels = .max
        var similarity = 0.0
        try bytes.withUnsafeBytes { (bytes) throws(CodecError) in
            let header = try codec.source.header(of: bytes)
            let source = try codec.open(bytes, header, limits)
            var decoded = try source.raster(at: .full, interruption)
            try decoded.turn(interruption)
            similarity = try decoded.similarity(to: picture, interruption)
        }
        return similarity
    }
}
