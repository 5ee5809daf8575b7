internal import PrefetchModel

/// The kind of result that a recipe makes of a source.
enum EncodedFormat: Equatable {
    case encoded(EncodedImageFormat)
    /// The smallest of several formats, see ``FormatChoice``.
    case smallest
    /// The source's own data, in its own format.
    case container

    /// The result of a recipe; nil where the source is stored unchanged.
    init?(_ recipe: Recipe, of header: ImageHeader, by codec: ImageCodec) {
        if recipe.encoding == .original { return nil }
        if header.keepsFrames(for: recipe) {
            self = codec.same.keeping == .never ? .encoded(codec.same.encoded) : .container
        } else if header.keepsData(for: recipe, codec.same) {
            self = .container
        } else {
            self.init(transforming: recipe, by: codec)
        }
    }

    /// The result of a recipe with other pixels than the source's.
    init(transforming recipe: Recipe, by codec: ImageCodec) {
        self =
            if let format = recipe.encoding.format {
                .encoded(format)
            } else {
                recipe.encoding == .auto ? .smallest : .encoded(codec.same.encoded)
            }
    }

    var encoder: ImageEncoder? {
        if case .encoded(let format) = self { format.encoder } else { nil }
    }

    /// Checks that pictures of this size, in either orientation, can be encoded.
    ///
    /// - Throws: `unsupported` for a side over the format's limit, and for a format that this build
    ///   does not encode.
    func check(_ width: Int, _ height: Int) throws(CodecError) {
        guard case .encoded(let format) = self else { return }
        try format.builtEncoder.sideLimit.check(width, height)
    }

    /// Makes a file of a raster, see ``ImageEncoder/encode``.
    ///
    /// - Precondition: Not ``container``.
    func encoded(
        _ raster: consuming Raster, metadata: CarriedMetadata, by recipe: Recipe,
        _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage {
        switch self {
        case .encoded(let format):
            return try format.image(of: raster, metadata: metadata, by: recipe, interruption)
        case .smallest:
            return try FormatChoice(recipe: recipe, interruption: interruption)
                .smallest(of: raster, metadata: metadata, beside: nil)
        case .container: preconditionFailure("a container's own data needs no pixels")
        }
    }
}
