internal import PrefetchModel

/// Makes the results of one source, one after the other.
struct EntryWork: ~Copyable {
    private let plan: EntryPlan
    private let check: SourceCheck
    private let memoryBytes: Int
    private let overlays: Overlays
    private var rasters: SharedRasters
    private var damage = DamageFindings()
    /// Whether anything has been decoded, even in part.
    private(set) var isDecoded = false

    /// The fault found so far, despite which the source is accepted.
    var warning: ImageWarning? { source.warning }

    private var source: any ImageDecoding { plan.source }
    private var header: ImageHeader { plan.header }

    /// `check` is for sources that are stored unchanged.
    init(
        _ plan: EntryPlan, recipes: [PlannedRecipe], check: SourceCheck, memoryBytes: Int,
        overlays: Overlays, wantsPlaceholder: Bool
    ) {
        self.plan = plan
        self.check = check
        self.memoryBytes = memoryBytes
        self.overlays = overlays
        let placeholder = PlaceholderCollector(for: plan.source, isWanted: wantsPlaceholder)
        rasters = SharedRasters(plan, of: recipes, placeholder)
    }

    /// The placeholder, made of data decoded for results; nil if nothing was decoded, or none is
    /// wanted.
    var placeholder: Placeholder? { rasters.placeholder.made }

    /// - Throws: Why there is no result; `cancelled` ends all results.
    mutating func result(
        of planned: PlannedRecipe, _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage {
        try interruption.look()
        let recipe = planned.recipe
        guard let format = EncodedFormat(recipe, of: header, by: plan.codec) else {
            return try original(interruption)
        }
        try overlays.check(recipe)
        if header.isAnimated, recipe.animation == .refuse {
            throw .unsupported(
                "an animation, which --animated refuse, or animated=refuse, keeps out")
        }
        if let encoder = planned.animationEncoder, let steps = planned.steps {
            try encoder.sideLimit.check(steps.size.width, steps.size.height)
            _ = try plan.handling(by: recipe, as: nil, after: steps)
        } else {
            try plan.checkFeasibility(of: planned, as: format)
        }
        try damage.check(source, interruption)
        do throws(CodecError) {
            let image = try image(of: planned, as: format, interruption)
            plan.noteLosses(of: image, by: recipe)
            return image
        } catch {
            damage.note(error)
            throw error
        }
    }

    private mutating func image(
        of planned: PlannedRecipe, as format: EncodedFormat, _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage {
        let (recipe, steps) = (planned.recipe, try planned.plan.get())
        if let encoder = planned.animationEncoder {
            return try animated(by: encoder, steps, recipe, interruption)
        }
        return steps.isEmpty
            ? try made(format, by: recipe.untransformed, interruption)
            : try transformed(
                EncodedFormat(transforming: recipe, by: plan.codec), steps, by: recipe,
                interruption)
    }

    private mutating func original(
        _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage {
        var duration = Duration.zero
        switch check {
        // Accepts everything that decodes.
        case .structure where damage.isRuledOut: break
        case .structure:
            try source.check(
                .structure,
                memoryBytes: min(memoryBytes, header.structureMemoryBytes(within: memoryBytes)),
                interruption)
        case .decode:
            try damage.check(source, interruption)
            isDecoded = true
            guard !damage.isRuledOut else { break }
            let most = header.verificationMemoryBytes(
                for: Recipe(encoding: .original), within: memoryBytes)
            duration = try verified(memoryBytes: min(memoryBytes, most), interruption)
        }
        return ProcessedImage(
            keeping: header, as: .source, decodeDuration: duration, encodeDuration: .zero)
    }

    /// Decodes everything and keeps nothing.
    ///
    /// - Returns: The processor time.
    private func verified(
        memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) -> Duration {
        let begin = ThreadClock.now
        try source.check(.pixels, memoryBytes: memoryBytes, interruption)
        return ThreadClock.now - begin
    }

    private mutating func made(
        _ format: EncodedFormat, by recipe: Recipe, _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage {
        let way = try plan.way(to: format, by: recipe)
        if case .smallest = format, case .raster = way {
            return try smallest(by: recipe, interruption)
        }
        isDecoded = true
        switch way {
        case .own(.shortcut(let make)):
            let image = try make(interruption)
            damage.isRuledOut = true
            return plan.kept(image, by: recipe)
        case .container:
            let duration = try verified(memoryBytes: 0, interruption)
            let image = try plan.joined(plan.pieces(keptBy: recipe), decodeDuration: duration)
            damage.isRuledOut = true
            return plan.kept(image, by: recipe)
        case .own(.rewriting(let make)):
            let raster = try decoded(RasterRequest(form: .native), interruption)
            let duration = rasters.takeDuration()
            var image = plan.kept(try make(raster, interruption), by: recipe)
            image.decodeDuration = duration
            return image
        case .raster(let form):
            let handling = try plan.handling(by: recipe, as: format)
            var raster = try decoded(
                RasterRequest(form: form, conversion: handling.conversion), interruption)
            let duration = rasters.takeDuration()
            raster = try raster.described(by: handling.profile, interruption)
            if format.encoder?.hasAlpha == false {
                raster = try raster.formed(as: .opaque(recipe.background), interruption)
            }
            let metadata = source.metadata(keptBy: recipe)
            var image = try format.encoded(raster, metadata: metadata, by: recipe, interruption)
            image.decodeDuration = duration
            image.colour = handling.treatment
            return withoutFrames(try keptData(insteadOf: image, by: recipe) ?? image, recipe)
        }
    }

    /// Notes frames that the recipe keeps, and the result's format does not hold.
    private func withoutFrames(_ image: ProcessedImage, _ recipe: Recipe) -> ProcessedImage {
        guard header.isAnimated, header.frames > 1, recipe.animation == .keep else { return image }
        var image = image
        image.framesOfSource = header.frames
        source.note.note(
            ImageWarning(text: "only the first of \(header.frames) frames is stored"))
        return image
    }

    /// The source's data, if the new encoding is no smaller and shows the same colours.
    private func keptData(
        insteadOf image: ProcessedImage, by recipe: Recipe
    ) throws(CodecError) -> ProcessedImage? {
        guard source is any DataKeeping, image.format == header.format, !header.isAnimated,
            !recipe.keepsLarger, case .encoded(let made) = image.output
        else { return nil }
        let pieces = plan.pieces(keptBy: recipe)
        guard pieces.byteCount <= made.count else { return nil }
        var kept = try plan.joined(pieces, decodeDuration: image.decodeDuration)
        kept.encodeDuration += image.encodeDuration
        kept = plan.kept(kept, by: recipe)
        let isConverted = image.colour == .converted || image.colour == .toneMapped
        return isConverted && kept.colour == .assumedSRGB ? nil : kept
    }

    /// Makes the smallest of the recipe's formats; the source's own is made as `same` makes it.
    private mutating func smallest(
        by recipe: Recipe, _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage {
        var kept: FormatChoice.Candidate?
        if let own = header.ownRecipe(for: recipe) {
            let image = try made(plan.ownFormat, by: own, interruption)
            kept = FormatChoice.Candidate(
                image: image, byteCount: image.byteCount(of: header),
                isKept: plan.ownFormat == .container)
        }
        // No other result has its light.
        if let kept, plan.colours.areOfHighDynamicRange, kept.image.colour == .kept {
            return kept.image
        }
        let handling: ColourHandling
        do throws(CodecError) {
            handling = try plan.handling(by: recipe, as: .smallest)
        } catch {
            // Colours that cannot be converted allow nothing else.
            if let kept { return kept.image }
            throw error
        }
        isDecoded = true
        var raster = try decoded(
            RasterRequest(form: .native, conversion: handling.conversion), interruption)
        let duration = rasters.takeDuration()
        raster = try raster.described(by: handling.profile, interruption)
        let metadata = source.metadata(keptBy: recipe)
        var image = try FormatChoice(recipe: recipe, interruption: interruption)
            .smallest(of: raster, metadata: metadata, beside: kept)
        image.decodeDuration += duration
        image.colour = image.colour ?? handling.treatment
        return image
    }

    private mutating func decoded(
        _ request: RasterRequest, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        let raster = try rasters.take(request, interruption)
        damage.isRuledOut = true
        return raster
    }

    /// Makes a result with other pixels than the source's.
    private mutating func transformed(
        _ format: EncodedFormat, _ steps: TransformationPlan, by recipe: Recipe,
        _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage {
        isDecoded = true
        let handling = try plan.handling(by: recipe, as: format, after: steps)
        let request = RasterRequest(
            form: .native, conversion: handling.conversion, scale: steps.scale)
        let decoded = try rasters.borrow(request, interruption)
        damage.isRuledOut = true
        let begin = ThreadClock.now
        var picture = try decoded.transformed(by: steps, overlays, interruption)
        rasters.putBack(decoded, after: request)
        let decodeDuration = rasters.takeDuration()
        picture = try picture.described(by: handling.profile, interruption)
        if format.encoder?.hasAlpha == false {
            picture = try picture.opaque(over: recipe.background, interruption)
        }
        try picture.turn(interruption)
        let metadata = source.metadata(keptBy: recipe)
        let duration = ThreadClock.now - begin
        var image = try format.encoded(picture, metadata: metadata, by: recipe, interruption)
        image.decodeDuration = decodeDuration
        image.encodeDuration += duration
        image.colour = handling.treatment
        return withoutFrames(image, recipe)
    }

    private mutating func animated(
        by encoder: AnimationEncoder, _ steps: TransformationPlan, _ recipe: Recipe,
        _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage {
        guard let source = source as? any AnimationDecoding, let description = source.animation
        else { throw .broken("an animation without frames") }
        isDecoded = true
        let begin = ThreadClock.now
        let handling = try plan.handling(by: recipe, as: nil, after: steps)
        let animation = TransformedAnimation(
            source, description, of: header, by: encoder, steps, overlays, handling,
            wantsPlaceholder: rasters.placeholder.wantsMore, interruption)
        let (metadata, leftOut) = source.metadata(keptBy: recipe).fitting(encoder.room)
        let made = try encoder.encode(animation, metadata, recipe, interruption)
        damage.isRuledOut = true
        rasters.placeholder.add(animation.placeholder)
        var image = ProcessedImage(
            output: .encoded(made), format: encoder.format, widthInPixels: steps.size.width,
            heightInPixels: steps.size.height, decodeDuration: animation.decodeDuration,
            encodeDuration: ThreadClock.now - begin - animation.decodeDuration)
        image.leftOut = leftOut
        image.colour = handling.treatment
        return image
    }
}

/// Known damage of one source.
struct DamageFindings {
    /// The outcome of ``CheckDepth/ignoredByDecoder``; nil before it ran.
    private var ignoredByDecoder: Result<Void, CodecError>?
    /// The damage that decoding has found, and would find again.
    private var found: CodecError?
    /// Whether the whole source has been decoded without an error.
    var isRuledOut = false

    mutating func check(
        _ source: any ImageDecoding, _ interruption: Interruption
    ) throws(CodecError) {
        let result =
            ignoredByDecoder
            ?? Result { () throws(CodecError) in
                try source.check(.ignoredByDecoder, memoryBytes: 0, interruption)
            }
        ignoredByDecoder = result
        try result.get()
        if let found { throw found }
    }

    mutating func note(_ error: CodecError) {
        if case .corrupt = error { found = error }
    }
}
