import ArgumentParser
import Pipeline
import PrefetchModel

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
