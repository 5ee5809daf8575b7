import ArgumentParser
import Pipeline
import PrefetchModel

/// Flags of `run` and `put` about the stored variants.
struct StoringOptions: ParsableArguments {
    @Option(RunFlags.encode) var encode: Recipe.Encoding
    @Option(RunFlags.allowFormats) var allowedFormats: AllowedFormats
    @Option(RunFlags.quality) var quality: Int
    @Flag(RunFlags.keepLarger) var keepsLarger: Bool
    @Option(RunFlags.effort) var effort: EncodingEffort
    @Option(RunFlags.maximumStoredBytes) var maximumStoredSize: SizeArgument?
    @Option(RunFlags.strip) var strip: Recipe.Stripping
    @Option(RunFlags.background) var background: ColourArgument
    @Option(RunFlags.animated) var animated: Recipe.Animation
    @Option(RunFlags.resize) var resize: String?
    @Option(RunFlags.transform) var transform: String?
    @Option(RunFlags.scaleDownPixels) var scaleDownPixels: Int?
    @Flag(RunFlags.linear) var linear: Bool
    @Option(RunFlags.variant) var variants: [String]
    @Flag(RunFlags.storeOriginal) var storesOriginal: Bool
    @Option(RunFlags.check) var check: SourceCheck
    @Option(RunFlags.otherFormats) var otherFormats: OtherFormats
    @Flag(RunFlags.noPlaceholders) var omitsPlaceholders: Bool

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
                --encode original stores the downloaded bytes, so it cannot be combined with \
                --resize, --transform or --scale-down-pixels
                """)
        }
        if linear, !main.resizes {
            throw ValidationError("--linear needs a size, for example --resize 800x600")
        }
        let variants = try variantSet()
        for variant in variants {
            if let format = EncodedFormats.missing(for: variant.recipe).first {
                throw ValidationError(
                    "variant \(variant.name): this build cannot encode \(format.rawValue); see --version"
                )
            }
        }
        if check == .structure, !variants.contains(where: { $0.recipe.encoding == .original }) {
            throw ValidationError("--check structure needs --encode original")
        }
        if strip == .all, encode == .original {
            throw ValidationError(
                "--encode original cannot be combined with --strip all: it stores the metadata, too"
            )
        }
        if animated != .keep, encode == .original {
            throw ValidationError(
                "--encode original cannot be combined with --animated \(animated.rawValue): "
                    + "it stores animations")
        }
    }

    func apply(to configuration: inout RunConfiguration) throws {
        configuration.images.variants = try variantSet()
        configuration.images.overlayFiles = OverlayArguments.decoded
        configuration.images.check = check
        configuration.images.otherFormats = otherFormats
        configuration.images.makesPlaceholders = !omitsPlaceholders
    }

    /// The variants to store of each image.
    ///
    /// - Throws: `ValidationError` that names the flag, for an invalid variant.
    func variantSet() throws -> VariantSet {
        var requested = [RequestedVariant(name: .main, recipe: try mainRecipe())]
        requested += try variants.map(StoringOptions.variant)
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
            requested.append(
                RequestedVariant(name: .original, recipe: Recipe(encoding: .original)))
        }
        do {
            return try VariantSet(requested)
        } catch {
            throw ValidationError(error.message)
        }
    }

    private func mainRecipe() throws -> Recipe {
        var recipe = Recipe(encoding: encode, quality: quality, keepsLarger: keepsLarger)
        recipe.stripping = strip
        recipe.background = background.colour
        recipe.animation = animated
        recipe.effort = effort
        recipe.allowedFormats = allowedFormats.formats
        recipe.maximumStoredBytes = maximumStoredSize?.size.bytes
        do {
            if let transform {
                recipe.transformations = try Recipe.steps(
                    in: transform, overlay: OverlayArguments.read)
            }
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

    private static func variant(_ text: String) throws -> RequestedVariant {
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
        do {
            return RequestedVariant(
                name: variantName,
                recipe: try Recipe(
                    specification: String(text[text.index(after: equals)...]),
                    overlay: OverlayArguments.read))
        } catch {
            throw ValidationError("--variant \(name): \(error.message)")
        }
    }
}
