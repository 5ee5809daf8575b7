internal import PrefetchModel

/// The work on one image: what its results share.
struct EntryWork: ~Copyable {
    private let source: any ImageSource
    private let codec: any ImageCodec.Type
    private let header: ImageHeader
    private let check: SourceCheck
    private let memoryBytes: Int
    /// What is decoded once for all results that are made of pixels at one scale, where these, or the scales, are
    /// several.
    private var shared: [DecodingScale: SharedRaster] = [:]
    /// Scales that are decoded at once when the first of them is wanted; empty where there is but one.
    private var joined: [DecodingScale] = []
    /// Those of ``shared``, each from its decoding to the last of its results. Their interruption is that of a
    /// result which has been made, so whoever takes one sets another.
    private var kept = ScaledRasters()
    /// Of the decoding that no result has been told yet.
    private var decodeDuration = Duration.zero
    /// What the look for silent damage has found; nil before it.
    private var silentDamage: Result<Void, CodecError>?
    /// What decoding has found, which would be found again.
    private var damage: CodecError?
    /// Whether the whole source has been decoded without an error.
    private var isWhole = false
    /// Whether anything has been decoded, or begun to be.
    private(set) var isDecoded = false
    /// Whether a placeholder is wanted, and has not been made of pixels.
    private var wantsPlaceholder: Bool
    private var placeholderOfPixels: Placeholder?

    init(
        source: any ImageSource, codec: any ImageCodec.Type, header: ImageHeader,
        recipes: [PlannedRecipe], check: SourceCheck, memoryBytes: Int,
        wantsPlaceholder: Bool = false
    ) {
        self.source = source
        self.wantsPlaceholder = wantsPlaceholder
        if wantsPlaceholder { source.notePlaceholder() }
        self.codec = codec
        self.header = header
        self.check = check
        self.memoryBytes = memoryBytes
        for planned in recipes {
            let recipe = planned.recipe
            // One that cannot be made says so when its turn comes.
            guard let format = EncodedFormat(recipe, of: header, by: codec),
                let plan = planned.steps
            else { continue }
            var request = RasterRequest(form: .native, scale: plan.scale)
            if plan.isEmpty {
                guard let way = try? source.way(to: format, by: recipe.untransformed) else {
                    continue
                }
                guard let form = way.rasterForm else { continue }
                request.form = form
            }
            request.takesProfile = recipe.stripping != .all
            shared[plan.scale, default: SharedRaster(request)].add(request)
            // Where the smallest is looked for, the source's own format may need pixels of its own.
            if case .smallest = format, plan.isEmpty, let own = header.ownRecipe(for: recipe),
                let way = try? source.way(to: codec.same, by: own), way.rasterForm != nil
            {
                shared[plan.scale]?.add(request)
            }
        }
        if shared.count > 1 {
            joined = DecodingScale.allCases.filter { shared[$0] != nil }
        } else {
            shared = shared.filter { $0.value.uses > 1 }
        }
    }

    /// - Throws: why there is none; `cancelled` is of all results.
    mutating func result(
        of planned: PlannedRecipe, _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage {
        try interruption.look()
        let recipe = planned.recipe
        guard let format = EncodedFormat(recipe, of: header, by: codec) else {
            return try original(interruption)
        }
        if header.isAnimated, recipe.animation == .refuse {
            throw .unsupported(
                "an animation, which --animated refuse, or animated=refuse, keeps out")
        }
        try checkFeasibility(of: planned, as: format)
        try checkDamage()
        do throws(CodecError) {
            let plan = try planned.plan.get()
            return plan.isEmpty
                ? try made(format, by: recipe.untransformed, interruption)
                : try transformed(
                    EncodedFormat(transforming: recipe, by: codec), plan, by: recipe, interruption)
        } catch {
            if case .corrupt = error { damage = error }
            throw error
        }
    }

    private mutating func original(
        _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage {
        var duration = Duration.zero
        switch check {
        // It takes whatever decoding does.
        case .structure where isWhole: break
        case .structure:
            try source.checkStructure(
                memoryBytes: min(memoryBytes, header.structureMemoryBytes(within: memoryBytes)),
                interruption)
        case .decode:
            try checkDamage()
            isDecoded = true
            guard !isWhole else { break }
            let most = header.verificationMemoryBytes(
                for: Recipe(encoding: .original), within: memoryBytes)
            duration = try source.verify(memoryBytes: min(memoryBytes, most), interruption)
        }
        return ProcessedImage(
            output: .source, format: header.format, widthInPixels: header.widthInPixels,
            heightInPixels: header.heightInPixels, decodeDuration: duration, encodeDuration: .zero)
    }

    /// Says what cannot be made however the decoding goes: of a damaged file, too, since decoding for another result may
    /// have found the damage before.
    private func checkFeasibility(
        of planned: PlannedRecipe, as format: EncodedFormat
    ) throws(CodecError) {
        guard let plan = planned.steps else { return }
        guard plan.isEmpty else {
            try EncodedFormat(transforming: planned.recipe, by: codec)
                .check(plan.size.width, plan.size.height)
            return try source.checkColours()
        }
        let way = try source.way(to: format, by: planned.recipe.untransformed)
        // What is kept as it is may be the smallest whatever its colours.
        if case .smallest = format, header.ownRecipe(for: planned.recipe) != nil { return }
        if way.rasterForm != nil { try source.checkColours() }
    }

    private mutating func checkDamage() throws(CodecError) {
        let found =
            silentDamage ?? Result { () throws(CodecError) in try source.checkSilentDamage() }
        silentDamage = found
        try found.get()
        if let damage { throw damage }
    }

    private mutating func made(
        _ format: EncodedFormat, by recipe: Recipe, _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage {
        if case .smallest = format { return try smallest(by: recipe, interruption) }
        let way = try source.way(to: format, by: recipe)
        isDecoded = true
        guard let form = way.rasterForm else {
            let image = try source.shortcut(by: recipe, interruption)
            isWhole = true
            return image
        }
        let raster = try raster(
            RasterRequest(form: form, takesProfile: recipe.stripping != .all), interruption)
        isWhole = true
        if case .rewriting = way {
            return try source.rewritten(raster, by: recipe, interruption)
        }
        let exif = source.exif(keptBy: recipe)
        let image = try format.encoded(raster, exif: exif, by: recipe, interruption)
        guard image.format == header.format, !header.isAnimated, !recipe.keepsLarger,
            case .encoded(let made) = image.output,
            var kept = try source.kept(by: recipe, within: made.count)
        else { return image }
        kept.decodeDuration = image.decodeDuration
        kept.encodeDuration += image.encodeDuration
        return kept
    }

    /// Makes the smallest of the recipe's formats, among which the source's own is made as `same` makes it.
    private mutating func smallest(
        by recipe: Recipe, _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage {
        var kept: FormatChoice.Own?
        if let own = header.ownRecipe(for: recipe) {
            let image = try made(codec.same, by: own, interruption)
            kept = FormatChoice.Own(image: image, byteCount: image.byteCount(of: header))
            // Of colours that are not converted nothing else is made.
            if (try? source.checkColours()) == nil { return image }
        }
        isDecoded = true
        let raster = try raster(
            RasterRequest(form: .native, takesProfile: recipe.stripping != .all), interruption)
        isWhole = true
        let exif = source.exif(keptBy: recipe)
        return try FormatChoice(recipe, interruption)
            .smallest(of: raster, exif: exif, beside: kept)
    }

    /// Makes a result that shows something else than the source.
    private mutating func transformed(
        _ format: EncodedFormat, _ plan: TransformationPlan, by recipe: Recipe,
        _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage {
        isDecoded = true
        let decoded = try raster(
            RasterRequest(
                form: .native, takesProfile: recipe.stripping != .all, scale: plan.scale),
            interruption, isOwn: false)
        isWhole = true
        let begin = ThreadClock.now
        var picture = try decoded.transformed(by: plan, interruption)
        put(back: decoded, of: plan.scale)
        picture.decodeDuration = decodeDuration
        decodeDuration = .zero
        if format == .jpeg { picture = try picture.opaque(over: recipe.background, interruption) }
        // The rows are turned, and EXIF has to say the same.
        try picture.turn(interruption)
        let exif = source.exif(keptBy: recipe).map(ExifOrientation.uprightTIFF)
        let duration = ThreadClock.now - begin
        var image = try format.encoded(picture, exif: exif, by: recipe, interruption)
        image.encodeDuration += duration
        return image
    }

    /// Pixels for one result: the caller's own, or such as are to be ``put(back:of:)`` unchanged.
    private mutating func raster(
        _ request: RasterRequest, _ interruption: Interruption, isOwn: Bool = true
    ) throws(CodecError) -> Raster {
        guard var sharing = shared[request.scale] else {
            let decoded = try source.raster(request, interruption)
            note(decoded)
            if !isOwn { decodeDuration = decoded.decodeDuration }
            return decoded
        }
        sharing.uses -= 1
        shared[request.scale] = sharing
        try decodeJoined(interruption)
        var decoded: Raster
        if let kept = kept.take(request.scale) {
            decoded = kept
        } else {
            decoded = try source.raster(sharing.request, interruption)
            note(decoded)
            decodeDuration += decoded.decodeDuration
        }
        decoded.follow(interruption)
        guard isOwn else { return decoded }
        var result: Raster
        switch request.form {
        case .opaque(let background) where request.form != sharing.request.form:
            result = try decoded.opaque(over: background, interruption)
            if sharing.uses > 0 { kept.put(decoded, at: request.scale) }
        default:
            if sharing.uses > 0 {
                result = try decoded.copy()
                kept.put(decoded, at: request.scale)
            } else {
                result = decoded
            }
        }
        result.decodeDuration = decodeDuration
        decodeDuration = .zero
        return result
    }

    /// Decodes all scales that are wanted, where the source can do it at once.
    ///
    /// - Throws: `cancelled`. Whatever else is wrong shows when they are decoded one by one.
    private mutating func decodeJoined(_ interruption: Interruption) throws(CodecError) {
        guard !joined.isEmpty else { return }
        let scales = joined
        joined = []
        let decoded: ScaledRasters?
        do throws(CodecError) {
            decoded = try source.rasters(
                scales.compactMap { shared[$0]?.request }, interruption.another(for: scales.count))
        } catch .cancelled {
            throw .cancelled
        } catch {
            return
        }
        guard var decoded else { return }
        // The smallest is large enough for a placeholder, and costs least.
        for scale in scales.reversed() {
            guard let raster = decoded.take(scale) else { continue }
            note(raster)
            decodeDuration += raster.decodeDuration
            kept.put(raster, at: scale)
        }
    }

    // MARK: The placeholder

    /// What is shown of the image before it is loaded: of pixels or coefficients that were decoded for results; nil
    /// where none were, or none is wanted.
    var placeholder: Placeholder? {
        placeholderOfPixels ?? (wantsPlaceholder ? source.placeholder : nil)
    }

    private mutating func note(_ raster: borrowing Raster) {
        guard wantsPlaceholder else { return }
        placeholderOfPixels = Placeholder(of: raster)
        wantsPlaceholder = false
    }

    /// Keeps a raster for the results that are yet to be made of it.
    private mutating func put(back decoded: consuming Raster, of scale: DecodingScale) {
        guard let sharing = shared[scale], sharing.uses > 0 else { return }
        kept.put(decoded, at: scale)
    }
}

/// One decoding for several results.
private struct SharedRaster {
    /// That serves all of them.
    private(set) var request: RasterRequest
    /// Results that are yet to be made of it.
    var uses = 0

    init(_ request: RasterRequest) {
        self.request = request
    }

    mutating func add(_ other: RasterRequest) {
        if other.form != request.form { request.form = .native }
        request.takesProfile = request.takesProfile || other.takesProfile
        uses += 1
    }
}
