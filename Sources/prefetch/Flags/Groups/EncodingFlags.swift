import ArgumentParser
import ConfigurationFiles
import Pipeline
import PrefetchModel

/// Flags of `run` and `put` about the stored variants.
struct EncodingFlags: FlagRows {
    static let flags = FlagTable(EncodingFlags())

    let format = FormatFlags()
    let steps = StepFlags()

    let variants = RunFlag<[String]>(
        repeatable: "variant", value: "name=spec",
        help: """
            Also store each image in this form; repeatable. SPEC is a list like jpeg,q=60 of: a \
            size like 256x256, \(Recipe.Encoding.allCases.map(\.rawValue).listed(with: "or")), \
            q=, strip=, allow-formats=, background=, max-bytes=, effort=, animated=, keep-larger, linear, and \
            the steps of --transform. The rest has the flags' defaults. The plain flags make the \
            variant main.
            """, brief: "also store each image in this form, like web=jpeg,q=60",
        inProjects: .refusedWithOverlays
    ) { try $0.encoding.define(variants: $1) }

    let storesOriginal = RunFlag<Bool>(
        "store-original",
        help: """
            Also store the downloaded bytes as the variant original. Other variants can then be \
            made later without a download.
            """
    ) { $0.encoding.storesOriginal = $1 }

    let check = RunFlag<SourceCheck>(
        "check", value: "how", sets: \.run.images.check,
        help: """
            How --encode original checks images: decode them, or parse their structure, which is \
            much faster but misses flipped bits in JPEG data.
            """)

    let otherFormats = RunFlag<OtherFormats>(
        "other-formats", value: "what", sets: \.run.images.otherFormats,
        help: """
            Formats that are not decoded (SVG, PDF, PSD, …): fail them, store complete files \
            unchanged for every variant, or skip (exclude) them.
            """)

    let omitsPlaceholders = RunFlag<Bool>(
        "no-placeholders",
        help: """
            Make no placeholders (the attributes prefetch.thumbhash and prefetch.color), which \
            every decoded image gets otherwise.
            """
    ) { $0.run.images.makesPlaceholders = !$1 }

    /// The settings of all flags. Files of overlays are read here, once.
    static func combined(_ flags: Flags<EncodingFlags>) throws -> EncodingSettings {
        var settings = RunSettings(RunFlags.defaults)
        try flags.apply(to: &settings)
        let encoding = settings.encoding
        let main = encoding.mainRecipe
        let variants = try encoding.variantSet()
        if flags.format.encode == .original, !main.transformations.isEmpty {
            throw ValidationError(
                """
                --encode original stores the downloaded bytes, so it cannot be combined with \
                --resize, --transform or --scale-down-pixels
                """)
        }
        if flags.steps.linear, !main.resizes {
            throw ValidationError("--linear needs a size, for example --resize 800x600")
        }
        for variant in variants {
            if let format = EncodedFormats.missing(for: variant.recipe).first {
                throw ValidationError(
                    "variant \(variant.name): this build cannot encode \(format.rawValue); see --version"
                )
            }
        }
        if flags.check == .structure, !variants.contains(where: { $0.recipe.encoding == .original })
        {
            throw ValidationError("--check structure needs --encode original")
        }
        if flags.format.strip == .all, flags.format.encode == .original {
            throw ValidationError(
                "--encode original cannot be combined with --strip all: it stores the metadata, too"
            )
        }
        if flags.format.animated != .keep, flags.format.encode == .original {
            throw ValidationError(
                "--encode original cannot be combined with --animated \(flags.format.animated.rawValue): "
                    + "it stores animations")
        }
        return encoding
    }
}

/// Flags about the format of the variant `main`.
struct FormatFlags: FlagRows {
    static let flags = FlagTable(FormatFlags())

    let encode = RunFlag<Recipe.Encoding>(
        "encode", value: "format", sets: \.encoding.main.encoding,
        help: """
            Stored format. same keeps the source's format (BMP and icons become PNG), auto takes \
            the smallest of --allow-formats, original stores the downloaded bytes.
            """, brief: "stored format: same, jpeg, png, webp, avif, …")

    let allowedFormats = RunFlag<AllowedFormats>(
        "allow-formats", value: "formats",
        default: AllowedFormats(formats: Recipe().allowedFormats),
        help: """
            Formats that --encode auto picks from, comma-separated: \
            \(EncodedImageFormat.allCases.map(\.rawValue).joined(separator: ", ")).
            """
    ) { $0.encoding.main.allowedFormats = $1.formats }

    let quality = RunFlag<Int>(
        "quality", value: "n", sets: \.encoding.main.quality,
        help: """
            Quality of JPEG, WebP and AVIF, 1 to 100, on one scale. A JPEG made from a JPEG never \
            gets a higher quality than its source.
            """, brief: "quality of jpeg, webp and avif, 1 to 100",
        check: .between(1, 100))

    let keepsLarger = RunFlag<Bool>(
        "keep-larger",
        help: """
            Keep re-encodings that are not smaller than their source. Otherwise the source is \
            stored, without its metadata.
            """
    ) { $0.encoding.main.keepsLarger = $1 }

    let effort = RunFlag<EncodingEffort>(
        "effort", value: "effort", sets: \.encoding.main.effort,
        help: """
            Processor time to spend on smaller PNG, WebP and AVIF files. PNG stays lossless.
            """)

    let maximumStoredSize = RunFlag<ByteCount?>(
        "max-stored-bytes", value: "size",
        help: """
            Lower the quality of JPEG, WebP and AVIF, to 30 at least, to fit this size. A file \
            that stays larger is stored and marked in the report; PNG and auto are not reduced.
            """, check: .atLeast(ByteCount(1), "1")
    ) { $0.encoding.main.maximumStoredBytes = $1.bytes }

    let strip = RunFlag<Recipe.Stripping>(
        "strip", value: "what", sets: \.encoding.main.stripping,
        help: """
            Metadata to remove: safe keeps colour information, all removes everything, none keeps \
            everything, including GPS positions.
            """)

    let background = RunFlag<RGBColor>(
        "background", value: "colour", sets: \.encoding.main.background,
        help: "Colour behind transparent pixels in a JPEG: #rgb, #rrggbb or a basic CSS colour.")

    let animated = RunFlag<Recipe.Animation>(
        "animated", value: "what", sets: \.encoding.main.animation,
        help: """
            Animations: keep stores all frames, first stores the first frame, refuse fails them.
            """)
}

/// Flags about the size and the other steps of the variant `main`.
struct StepFlags: FlagRows {
    static let flags = FlagTable(StepFlags())

    let resize = RunFlag<String?>(
        "resize", value: "size",
        help: """
            Size in pixels: 800x600 fits within, 800 and x600 fit one side, 800x600^ covers and \
            crops, 800x600~#fff pads, 800x600! is exact, 50% halves each side. Only ! enlarges.
            """
    ) { try $0.encoding.resize(to: $1) }

    let transform = RunFlag<String?>(
        "transform", value: "steps",
        help: """
            Steps before --resize, in this order and comma-separated: crop=WxH+X+Y or \
            crop=WxH:north, rotate=90, flip=h, blur=2, tint=#rrggbbaa, grey, border=4,#rrggbb, \
            round=8, circle, overlay=FILE@south-east, resize=SIZE.
            """, inProjects: .refusedWithOverlays
    ) { try $0.encoding.transform(by: $1) }

    let scaleDownPixels = RunFlag<Int?>(
        "scale-down-pixels", value: "n",
        help: "Scale larger images down to this many pixels, before every other step.",
        check: .between(1, 1_000_000_000)
    ) { $0.encoding.scaleDownPixels = $1 }

    let linear = RunFlag<Bool>(
        "linear",
        help: "Resize in linear light: slower, and more accurate along sharp contrasts."
    ) { $0.encoding.main.isLinear = $1 }
}

extension Flags<EncodingFlags> {
    /// Applies the flags, again to ``combined``: it has the files that the parser's validation has
    /// read. Each effect replaces a value.
    func applyVariants(to settings: inout RunSettings) throws {
        settings.encoding = combined
        try apply(to: &settings)
        settings.run.images.variants = try settings.encoding.variantSet()
        settings.run.images.overlayFiles = settings.encoding.overlays.decoded
    }
}

/// Flags of `put` and `import`, which store images by the rules of a run.
struct StoringOptions: ParsableArguments {
    @OptionGroup(title: FlagHeading.freshness.rawValue) var lifetimes: Flags<StoredLifetimeFlags>
    @OptionGroup(title: FlagHeading.limits.rawValue) var limits: Flags<ImageLimitFlags>
    @OptionGroup(title: FlagHeading.encoding.rawValue) var encoding: Flags<EncodingFlags>

    /// The variants to store of each image.
    var variants: VariantSet { get throws { try encoding.combined.variantSet() } }

    /// The rules of a run with the same flags.
    func configuration() throws -> RunConfiguration {
        var settings = RunSettings()
        try limits.apply(to: &settings)
        try encoding.applyVariants(to: &settings)
        try lifetimes.apply(to: &settings)
        return settings.run
    }
}

/// The settings of the flags about encoding. Together they are the stored variants.
struct EncodingSettings: Sendable {
    /// The variant `main` without ``size`` and ``scaleDownPixels``, which follow its other steps.
    var main = Recipe()
    private var size: ResizeGeometry?
    var scaleDownPixels: Int?
    private var variants: [RequestedVariant] = []
    var storesOriginal = false
    private(set) var overlays = OverlayArguments()

    mutating func resize(to text: String) throws {
        guard let geometry = ResizeGeometry(text: text) else {
            throw ValidationError(
                "--resize takes \(Transformation.StepName.resize.form), not '\(text)'")
        }
        size = geometry
    }

    mutating func transform(by steps: String) throws {
        main.transformations = try validated("--transform: ") {
            try Recipe.steps(in: steps) { file throws(UserError) in try overlays.read(file) }
        }
    }

    mutating func define(variants texts: [String]) throws {
        variants = try texts.map { try variant($0) }
    }

    var mainRecipe: Recipe {
        var recipe = main
        if let size { recipe.transformations.append(.resize(size)) }
        if let scaleDownPixels { recipe.scaleDown(toPixels: scaleDownPixels) }
        return recipe
    }

    /// The variants to store of each image.
    ///
    /// - Throws: `ValidationError` that names the flag, for an invalid variant.
    func variantSet() throws -> VariantSet {
        var requested = [RequestedVariant(name: .main, recipe: mainRecipe)] + variants
        for variant in requested
        where variant.name == .original && variant.recipe.encoding != .original {
            throw ValidationError(
                "--variant original: this name is reserved; --store-original stores the downloaded bytes"
            )
        }
        if storesOriginal {
            guard !requested.contains(where: { $0.name == .original }) else {
                throw ValidationError("--variant original cannot be combined with --store-original")
            }
            requested.append(RequestedVariant(name: .original, recipe: Recipe(encoding: .original)))
        }
        return try validated { try VariantSet(requested) }
    }

    private mutating func variant(_ text: String) throws -> RequestedVariant {
        guard let equals = text.firstIndex(of: "=") else {
            throw ValidationError("--variant takes NAME=SPEC, like web=jpeg,q=60, not '\(text)'")
        }
        let name = String(text[..<equals])
        guard let variantName = VariantName(name), !variantName.isNumbered else {
            throw ValidationError(
                """
                --variant: invalid name '\(name)': a name has 1 to \(VariantName.maximumBytes) \
                letters, digits, '-', '_' or '.', and begins with a letter or digit
                """)
        }
        guard variantName != .main else {
            throw ValidationError(
                "--variant main: the plain flags, like --encode and --quality, make this variant"
            )
        }
        let recipe = try validated("--variant \(name): ") {
            try Recipe(specification: String(text[text.index(after: equals)...])) {
                file throws(UserError) in try overlays.read(file)
            }
        }
        return RequestedVariant(name: variantName, recipe: recipe)
    }
}

/// The files that `overlay=` names. Each is read once, since it may be a pipe.
struct OverlayArguments: Sendable {
    private var digests: [String: ContentDigest] = [:]
    private(set) var decoded = OverlayFiles()

    var paths: [String] { digests.keys.map(OverlayArguments.path) }

    /// A name like `-` is never standard input.
    private static func path(_ file: String) -> String { file == "-" ? "./-" : file }

    /// Reads and decodes a file, and returns its digest.
    mutating func read(_ file: String) throws(UserError) -> ContentDigest {
        if let digest = digests[file] { return digest }
        let path = OverlayArguments.path(file)
        let digest = try reporting(as: {
            $0 = UserError(.usage, "overlay=\(file): \($0.message)")
        }) {
            try decoded.add(InputFile(path).read(limit: OverlayFiles.mostBytes + 1))
        }
        digests[file] = digest
        return digest
    }
}
