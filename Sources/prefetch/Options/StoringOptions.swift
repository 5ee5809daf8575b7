import ArgumentParser
import CacheStorage
import Pipeline
import PrefetchModel

extension Recipe.Encoding: ExpressibleByArgument {}
extension Recipe.Stripping: ExpressibleByArgument {}
extension Recipe.Animation: ExpressibleByArgument {}
extension EncodingEffort: ExpressibleByArgument {}

/// The value of `--allow-formats`: names with commas between them.
struct AllowedFormats: ExpressibleByArgument {
    let formats: Set<EncodedImageFormat>

    init(formats: Set<EncodedImageFormat>) {
        self.formats = formats
    }

    init?(argument: String) {
        guard let formats = EncodedImageFormat.formats(in: argument, separator: ",") else {
            return nil
        }
        self.formats = formats
    }

    var defaultValueDescription: String {
        EncodedImageFormat.text(of: formats).replacing("+", with: ",")
    }
}
extension MetadataWriter.Durability: ExpressibleByArgument {}
extension SnapshotRule: ExpressibleByArgument {}
extension SourceCheck: ExpressibleByArgument {}
extension OtherFormats: ExpressibleByArgument {}

/// Flags of `run` about what is made of images.
struct StoringOptions: ParsableArguments {
    @Option(
        help: """
            Stored format: same keeps the source's (a BMP or an icon becomes PNG), auto takes the smallest of \
            --allow-formats, original stores the bytes as they came.
            """)
    var encode: Recipe.Encoding = .same

    @Option(
        name: .customLong("allow-formats"),
        help: ArgumentHelp(
            "What --encode auto picks from: jpeg, png, webp and avif, with commas between them.",
            valueName: "formats"))
    var allowedFormats = AllowedFormats(formats: Recipe.defaultFormats)

    @Option(
        help: ArgumentHelp(
            """
            Quality of JPEG, WebP and AVIF, 1 to 100: one scale for all of them. A JPEG made of a JPEG is never finer.
            """, valueName: "n"))
    var quality = Recipe.defaultQuality

    @Flag(
        name: .customLong("keep-larger"),
        help: """
            Keep re-encodings that are not smaller than their source. Otherwise the source is stored, \
            without its metadata.
            """)
    var keepsLarger = false

    @Option(help: "Time to spend on making PNG, WebP and AVIF small; a PNG's pixels are the same.")
    var effort: EncodingEffort = .balanced

    /// What `--effort` was called when it was about PNG alone.
    @Option(name: .customLong("png-effort"), help: .hidden)
    var pngEffort: EncodingEffort?

    @Option(
        name: .customLong("max-stored-bytes"),
        help: ArgumentHelp(
            """
            Lower the quality of JPEG, WebP and AVIF, to 30 at least, to fit this size. What stays larger, as PNG and \
            what auto picks do, is stored, and the report says so.
            """, valueName: "size"))
    var maximumStoredSize: SizeArgument?

    @Option(
        help: ArgumentHelp(
            """
            Metadata to remove: safe keeps colour information, all removes everything, none keeps \
            everything, positions included.
            """, valueName: "what"))
    var strip: Recipe.Stripping = .safe

    @Option(
        help: ArgumentHelp(
            """
            Colour behind transparent pixels in a JPEG: #rgb, #rrggbb or a basic colour name of CSS.
            """, valueName: "colour"))
    var background = ColourArgument(.white)

    @Option(
        help: ArgumentHelp(
            """
            Pictures of several frames: keep stores them as animations, whatever the format asked for, first makes the \
            first frame the picture, refuse lets them fail.
            """, valueName: "what"))
    var animated: Recipe.Animation = .keep

    @Option(
        help: ArgumentHelp(
            """
            Size in pixels: 800x600 fits into it, 800 and x600 into one side, 800x600^ covers it and is cut, 800x600! \
            is exactly that, 50% is half of each side. Only ! enlarges.
            """, valueName: "size"))
    var resize: String?

    @Option(
        help: ArgumentHelp(
            """
            Steps in this order, before --resize: crop=WxH+X+Y or crop=WxH:north, rotate=90, flip=h, blur=2, \
            tint=#rrggbbaa, round=8, resize=SIZE, with commas between them.
            """, valueName: "steps"))
    var transform: String?

    @Option(
        name: .customLong("scale-down-pixels"),
        help: ArgumentHelp(
            "Scale pictures of more pixels down to so many, before every other step.",
            valueName: "n"))
    var scaleDownPixels: Int?

    @Flag(
        help: "Resize in linear light: slower, and truer where light and dark lie close together.")
    var linear = false

    @Option(
        name: .customLong("variant"),
        help: ArgumentHelp(
            """
            Also keep each image in this form; repeatable. SPEC is a list like jpeg,q=60: \
            \(StoringOptions.specificationItems). What it leaves out has that flag's default; the plain \
            flags are for the variant main.
            """, valueName: "name=spec"))
    var variants: [String] = []

    @Flag(
        name: .customLong("store-original"),
        help: """
            Also keep the bytes as they came, as the variant original, from which others can be made \
            later without a download.
            """)
    var storesOriginal = false

    @Option(
        help: ArgumentHelp(
            """
            How --encode original checks images: decode them, or follow their structure, which is much \
            faster but misses flipped bits in JPEG data.
            """, valueName: "how"))
    var check: SourceCheck = .decode

    @Option(
        name: .customLong("other-formats"),
        help: """
            What to do with formats that are known by their bytes and not decoded (SVG, HEIC, JPEG XL, TIFF, …): fail; \
            store them as they came, for every variant, if the file is whole; or skip (exclude) them.
            """)
    var otherFormats: OtherFormats = .store

    @Flag(
        name: .customLong("no-placeholders"),
        help: """
            Make no placeholders: the attributes prefetch.thumbhash and prefetch.color, which come with what is \
            decoded anyway.
            """)
    var omitsPlaceholders = false

    func validate() throws {
        guard (1...100).contains(quality) else {
            throw ValidationError("--quality must be between 1 and 100")
        }
        if let size = maximumStoredSize?.size, size.bytes < 1 {
            throw ValidationError("--max-stored-bytes must be at least 1")
        }
        if let scaleDownPixels, !(1...1_000_000_000).contains(scaleDownPixels) {
            throw ValidationError("--scale-down-pixels must be between 1 and 1000000000")
        }
        let main = try mainRecipe()
        if encode == .original, !main.transformations.isEmpty {
            throw ValidationError(
                """
                --encode original keeps the bytes as they came, so --resize, --transform and \
                --scale-down-pixels have no effect
                """)
        }
        if linear, !main.resizes {
            throw ValidationError("--linear is about resizing; give a size with --resize")
        }
        let variants = try variantSet()
        for variant in variants {
            if let format = EncodedFormats.missing(for: variant.recipe).first {
                throw ValidationError(
                    "this build of prefetch makes no \(format.rawValue) (variant \(variant.name)); see --version"
                )
            }
        }
        if check == .structure, !variants.contains(where: { $0.recipe.encoding == .original }) {
            throw ValidationError("--check structure needs --encode original")
        }
        if strip == .all, encode == .original {
            throw ValidationError(
                "--encode original strips nothing, so it cannot be combined with --strip all")
        }
        if animated != .keep, encode == .original {
            throw ValidationError(
                "--encode original keeps animations, so it cannot be combined with --animated "
                    + animated.rawValue)
        }
    }

    func apply(to configuration: inout RunConfiguration) throws {
        configuration.images.variants = try variantSet()
        configuration.images.check = check
        configuration.images.otherFormats = otherFormats
        configuration.images.makesPlaceholders = !omitsPlaceholders
    }

    /// What is made of each image.
    ///
    /// - Throws: `ValidationError` for a variant that is not good; it names the flag.
    func variantSet() throws -> VariantSet {
        var requested = [RequestedVariant(name: .main, recipe: try mainRecipe())]
        requested += try variants.map(StoringOptions.variant)
        for variant in requested
        where variant.name == .original && variant.recipe.encoding != .original {
            throw ValidationError(
                "--variant original: that name is for the bytes as they came, which --store-original keeps"
            )
        }
        if storesOriginal {
            requested.append(
                RequestedVariant(name: .original, recipe: Recipe(encoding: .original)))
        }
        do throws(VariantSet.Problem) {
            return try VariantSet(requested)
        } catch {
            switch error {
            case .duplicate(.original) where storesOriginal:
                throw ValidationError(
                    "--store-original keeps the variant original, so --variant cannot have that name"
                )
            case .duplicate(let name):
                throw ValidationError("--variant \(name) is given twice")
            case .empty, .tooMany:
                throw ValidationError(
                    "--variant: a run keeps at most \(VariantSet.maximumCount) variants, with main")
            }
        }
    }

    private func mainRecipe() throws -> Recipe {
        var recipe = Recipe(encoding: encode, quality: quality, keepsLarger: keepsLarger)
        recipe.stripping = strip
        recipe.background = background.colour
        recipe.animation = animated
        recipe.effort = pngEffort ?? effort
        recipe.allowedFormats = allowedFormats.formats
        recipe.maximumStoredBytes = maximumStoredSize?.size.bytes
        do throws(Recipe.SpecificationProblem) {
            recipe.transformations = try transform.map(Recipe.steps(in:)) ?? []
        } catch {
            throw ValidationError("--transform: \(error.message)")
        }
        if let resize {
            guard let geometry = ResizeGeometry(text: resize) else {
                throw ValidationError(
                    "--resize takes \(Transformation.Name.resize.form), not '\(resize)'")
            }
            recipe.transformations.append(.resize(geometry))
        }
        if let scaleDownPixels { recipe.scaleDown(toPixels: scaleDownPixels) }
        recipe.isLinear = linear
        return recipe
    }

    private static let specificationItems =
        """
        a size like 256x256, same, jpeg, png, webp, avif, auto or original, q=, strip=, allow-formats=, background=, \
        max-bytes=, effort=, animated=, keep-larger, linear, and the steps of --transform
        """

    private static func variant(_ text: String) throws -> RequestedVariant {
        guard let equals = text.firstIndex(of: "=") else {
            throw ValidationError("--variant takes NAME=SPEC, like web=jpeg,q=60, not '\(text)'")
        }
        let name = String(text[..<equals])
        guard let variantName = VariantName(name) else {
            throw ValidationError(
                """
                --variant: a name is 1 to \(VariantName.maximumBytes) letters, digits, '-', '_' or \
                '.', the first a letter or digit, not '\(name)'
                """)
        }
        guard variantName != .main else {
            throw ValidationError(
                "--variant main: that is the variant of the plain flags, like --encode and --quality"
            )
        }
        do throws(Recipe.SpecificationProblem) {
            return RequestedVariant(
                name: variantName,
                recipe: try Recipe(specification: String(text[text.index(after: equals)...])))
        } catch {
            throw ValidationError("--variant \(name): \(error.message)")
        }
    }
}

/// Flags of `run` about how images reach the disk.
struct DiskOptions: ParsableArguments {
    @Flag(
        name: .customLong("file-attributes"),
        help: """
            Set the extended attributes user.xdg.origin.url and user.mime_type on content files; on \
            many file systems they take a block per file.
            """)
    var fileAttributes = false

    @Option(
        help: ArgumentHelp(
            """
            What a power cut may cost: the last seconds (normal), nothing that was reported (full), \
            or whole images of this run (off).
            """, valueName: "how"))
    var sync: MetadataWriter.Durability = .normal

    @Option(
        help: ArgumentHelp(
            """
            Keep the content files within this size on the disk: images that this run's lists do not name \
            make room, the one that was listed the longest time ago first. When none is left, what is not \
            there yet fails. The lists are read to their end before anything is downloaded.
            """, valueName: "size"))
    var maxSize: SizeLimitArgument?

    @Option(
        help: ArgumentHelp(
            """
            Prune by these rules at the end of the run, at most once a day: any of \
            \(PruneRule.allCases.map(\.example).joined(separator: ",")). See `prefetch prune`.
            """, valueName: "rules"))
    var prune: String?

    @Option(
        help: ArgumentHelp(
            """
            Whether a run that changed something leaves a copy of the database in the cache, once a \
            day, from which a later run takes what a damaged one has lost: daily or off.
            """, valueName: "when"))
    var snapshot: SnapshotRule = .daily

    @Option(
        help: """
            Permissions of new files, whatever the umask; folders get the execute bits that go with them. The cache \
            remembers it (default: what it remembers, else 0600); prefetch chmod changes what is there.
            """)
    var mode: ModeArgument?

    func validate() throws {
        if let prune { _ = try PruneRules(specification: prune) }
    }

    func apply(to configuration: inout RunConfiguration) throws {
        configuration.storing.writesFileAttributes = fileAttributes
        configuration.storing.durability = sync
        configuration.storing.maximumSize = maxSize?.size
        configuration.storing.pruning = try prune.map { try PruneRules(specification: $0) }
        configuration.storing.snapshots = snapshot
    }
}
