internal import PrefetchModel

/// The work on one image: what its results share.
struct EntryWork: ~Copyable {
    private let source: any ImageSource
    private let codec: any ImageCodec.Type
    private let header: ImageHeader
    private let check: SourceCheck
    private let memoryBytes: Int
    /// What is decoded once for all results that are made of pixels; nil where one is, or none.
    private let shared: RasterRequest?
    /// Of ``shared``, from the first of these results to the last. Its interruption is that of a result which has
    /// been made, so whoever takes it sets another.
    private var raster: Raster?
    /// Results that are yet to be made of ``shared``.
    private var uses: Int
    /// What is made by shortcuts.
    private var shortcuts: [Recipe] = []
    /// Of several of them, what was made at once; nil before that.
    private var known: [Recipe: ProcessedImage]?
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
        recipes: [Recipe], check: SourceCheck, memoryBytes: Int, wantsPlaceholder: Bool = false
    ) {
        self.source = source
        self.wantsPlaceholder = wantsPlaceholder
        if wantsPlaceholder { source.notePlaceholder() }
        self.codec = codec
        self.header = header
        self.check = check
        self.memoryBytes = memoryBytes
        var forms: [RasterForm] = []
        var takesProfile = false
        for recipe in recipes {
            // One that cannot be made says so when its turn comes.
            guard let format = EncodedFormat(recipe.encoding, of: codec),
                let way = try? source.way(to: format, by: recipe)
            else { continue }
            if case .shortcut = way { shortcuts.append(recipe) }
            guard let form = way.rasterForm else { continue }
            forms.append(form)
            takesProfile = takesProfile || recipe.stripping != .all
        }
        uses = forms.count
        shared =
            forms.count > 1
            ? RasterRequest(
                form: Set(forms).count == 1 ? forms[0] : .native, takesProfile: takesProfile)
            : nil
    }

    /// - Throws: why there is none; `cancelled` is of all results.
    mutating func result(
        of recipe: Recipe, _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage {
        try interruption.look()
        guard let format = EncodedFormat(recipe.encoding, of: codec) else {
            return try original(interruption)
        }
        try checkDamage()
        do throws(CodecError) {
            return try made(format, by: recipe, interruption)
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
        case .structure:
            try source.checkStructure(
                memoryBytes: min(memoryBytes, header.structureMemoryBytes(within: memoryBytes)),
                interruption)
        case .decode:
            try checkDamage()
            isDecoded = true
            if !isWhole { duration = try source.verify(interruption) }
        }
        return ProcessedImage(
            output: .source, format: header.format, widthInPixels: header.widthInPixels,
            heightInPixels: header.heightInPixels, decodeDuration: duration, encodeDuration: .zero)
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
        let way = try source.way(to: format, by: recipe)
        isDecoded = true
        guard let form = way.rasterForm else {
            let image = try shortcut(by: recipe, interruption)
            isWhole = true
            return image
        }
        let raster = try raster(
            RasterRequest(form: form, takesProfile: recipe.stripping != .all), interruption)
        isWhole = true
        if case .rewriting = way {
            return try source.rewritten(raster, by: recipe, interruption)
        }
        let exif = recipe.stripping == .none ? source.exif : nil
        return switch format {
        case .jpeg: try JPEGEncoding.encoded(raster, exif: exif, by: recipe, interruption)
        case .png: try PNGEncoding.encoded(raster, exif: exif, by: recipe, interruption)
        }
    }

    private mutating func shortcut(
        by recipe: Recipe, _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage {
        if known == nil, shortcuts.count > 1 {
            do throws(CodecError) {
                known = try source.shortcuts(
                    by: shortcuts, interruption.another(for: shortcuts.count))
            } catch .cancelled {
                throw .cancelled
            } catch {
                // One by one it shows which of them it was.
                known = [:]
                return try source.shortcut(by: recipe, interruption.another())
            }
        }
        if let image = known?[recipe] { return image }
        return try source.shortcut(by: recipe, interruption)
    }

    /// Pixels that are the caller's own.
    private mutating func raster(
        _ request: RasterRequest, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        guard let shared else {
            let decoded = try source.raster(request, interruption)
            note(decoded)
            return decoded
        }
        uses -= 1
        var decoded: Raster
        if let kept = raster.take() {
            decoded = kept
        } else {
            decoded = try source.raster(shared, interruption)
            note(decoded)
            decodeDuration = decoded.decodeDuration
        }
        decoded.follow(interruption)
        var result: Raster
        switch request.form {
        case .opaque(let background) where request.form != shared.form:
            result = try decoded.opaque(over: background, interruption)
            if uses > 0 { raster = consume decoded }
        default:
            if uses > 0 {
                result = try decoded.copy()
                raster = consume decoded
            } else {
                result = decoded
            }
        }
        result.decodeDuration = decodeDuration
        decodeDuration = .zero
        return result
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
}
