import ArgumentParser
import CacheStorage
import Pipeline
import PrefetchModel

extension Recipe.Encoding: ExpressibleByArgument {}
extension Recipe.Stripping: ExpressibleByArgument {}
extension PNGEffort: ExpressibleByArgument {}
extension MetadataWriter.Durability: ExpressibleByArgument {}
extension SourceCheck: ExpressibleByArgument {}

/// Flags of `run` about what is made of images.
struct StoringOptions: ParsableArguments {
    @Option(
        help: """
            Stored format: same keeps JPEG as JPEG and PNG as PNG (a BMP becomes PNG), original stores the bytes as they \
            came.
            """)
    var encode: Recipe.Encoding = .same

    @Option(
        help: ArgumentHelp(
            "JPEG quality, 1 to 100; never finer than the source.", valueName: "n"))
    var quality = Recipe.defaultQuality

    @Flag(
        name: .customLong("keep-larger"),
        help: """
            Keep re-encodings that are not smaller than their source. Otherwise the source is stored, \
            without its metadata.
            """)
    var keepsLarger = false

    @Option(
        name: .customLong("png-effort"),
        help: "Time to spend on making PNGs small; their pixels are the same.")
    var pngEffort: PNGEffort = .balanced

    @Option(
        name: .customLong("max-stored-bytes"),
        help: ArgumentHelp(
            """
            Lower JPEG quality, to 30 at least, to fit this size; those that stay larger are stored, and \
            the report says so.
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
        let variants = try variantSet()
        if check == .structure, !variants.contains(where: { $0.recipe.encoding == .original }) {
            throw ValidationError("--check structure needs --encode original")
        }
        if strip == .all, encode == .original {
            throw ValidationError(
                "--encode original strips nothing, so it cannot be combined with --strip all")
        }
    }

    func apply(to configuration: inout RunConfiguration) throws {
        configuration.images.variants = try variantSet()
        configuration.images.check = check
        configuration.images.makesPlaceholders = !omitsPlaceholders
    }

    /// What is made of each image.
    ///
    /// - Throws: `ValidationError` for a variant that is not good; it names the flag.
    func variantSet() throws -> VariantSet {
        var requested = [RequestedVariant(name: .main, recipe: mainRecipe)]
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

    private var mainRecipe: Recipe {
        var recipe = Recipe(encoding: encode, quality: quality, keepsLarger: keepsLarger)
        recipe.stripping = strip
        recipe.background = background.colour
        recipe.pngEffort = pngEffort
        recipe.maximumStoredBytes = maximumStoredSize?.size.bytes
        return recipe
    }

    private static let specificationItems =
        "same, jpeg, png or original, q=, strip=, background=, max-bytes=, effort=, keep-larger"

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

    func apply(to configuration: inout RunConfiguration) {
        configuration.storing.writesFileAttributes = fileAttributes
        configuration.storing.durability = sync
    }
}
