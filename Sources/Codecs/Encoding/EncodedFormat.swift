internal import PrefetchModel

/// What is made of a source.
enum EncodedFormat {
    case jpeg
    case png
    case webp
    case avif
    /// Whichever of several is smallest, see ``FormatChoice``.
    case smallest
    /// The source's own format with the source's own data: always ``CodecWay/shortcut``.
    case container

    /// What a recipe makes of a source; nil where its bytes stay as they came.
    init?(_ recipe: Recipe, of header: ImageHeader, by codec: any ImageCodec.Type) {
        switch recipe.encoding {
        case .original: return nil
        case _ where header.isAnimated && recipe.animation != .first: self = codec.same
        case .same: self = header.isAnimated ? codec.sameOfPixels : codec.same
        case .jpeg, .png, .webp, .avif, .auto: self.init(transforming: recipe, by: codec)
        }
    }

    /// What a recipe makes of pixels that show something else than the source.
    init(transforming recipe: Recipe, by codec: any ImageCodec.Type) {
        switch recipe.encoding {
        case .jpeg: self = .jpeg
        case .png: self = .png
        case .webp: self = .webp
        case .avif: self = .avif
        case .auto: self = .smallest
        case .same, .original: self = codec.sameOfPixels
        }
    }
}

extension EncodedFormat {
    /// Of a format whose only shortcut keeps its own data.
    ///
    /// - Throws: `unsupported` for what the format cannot hold, or this build does not make.
    func way(from header: ImageHeader, by recipe: Recipe) throws(CodecError) -> CodecWay {
        try check(header.widthInPixels, header.heightInPixels)
        switch self {
        case .container: return .shortcut
        case .jpeg: return .raster(.opaque(recipe.background))
        case .png, .webp, .avif, .smallest: return .raster(.native)
        }
    }

    /// Looks whether pictures of that size can be made, be it upright or not.
    ///
    /// - Throws: `unsupported` for more pixels a side than the format has, and for a format that this build does not
    ///   make.
    func check(_ width: Int, _ height: Int) throws(CodecError) {
        let (name, most): (String, Int)
        switch self {
        case .jpeg: (name, most) = ("JPEG", JPEGEncoding.mostPixelsOfSide)
        case .webp: (name, most) = ("WebP", WebPEncoding.mostPixelsOfSide)
        case .avif: (name, most) = ("AVIF", AVIFEncoding.mostPixelsOfSide)
        case .png, .smallest, .container: return
        }
        if let format = EncodedImageFormat(self), !format.isMade {
            throw .unsupported("this build makes no \(name)")
        }
        guard max(width, height) <= most else {
            throw .unsupported(
                "\(self == .avif ? "an" : "a") \(name) has at most \(most) pixels a side")
        }
    }

    /// Makes a file of a raster, upright unless it takes the whole EXIF along. For a JPEG the raster is opaque.
    ///
    /// `exif` is the TIFF structure that the recipe keeps.
    ///
    /// - Throws: `outOfMemory`, `encodingFailed`, or that it was interrupted.
    /// - Precondition: it is no ``container``.
    func encoded(
        _ raster: consuming Raster, exif: [UInt8]?, by recipe: Recipe, _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage {
        switch self {
        case .jpeg: try JPEGEncoding.encoded(raster, exif: exif, by: recipe, interruption)
        case .png: try PNGEncoding.encoded(raster, exif: exif, by: recipe, interruption)
        case .webp: try WebPEncoding.encoded(raster, exif: exif, by: recipe, interruption)
        case .avif: try AVIFEncoding.encoded(raster, exif: exif, by: recipe, interruption)
        case .smallest:
            try FormatChoice(recipe, interruption).smallest(of: raster, exif: exif, beside: nil)
        case .container: preconditionFailure("a container's own data needs no pixels")
        }
    }
}

extension EncodedFormat {
    init(_ format: EncodedImageFormat) {
        switch format {
        case .jpeg: self = .jpeg
        case .png: self = .png
        case .webp: self = .webp
        case .avif: self = .avif
        }
    }
}

extension EncodedImageFormat {
    /// Nil for what is no single format.
    init?(_ format: EncodedFormat) {
        switch format {
        case .jpeg: self = .jpeg
        case .png: self = .png
        case .webp: self = .webp
        case .avif: self = .avif
        case .smallest, .container: return nil
        }
    }

    /// Whether this build encodes it, which its traits decide.
    package var isMade: Bool {
        switch self {
        case .jpeg, .png: true
        case .webp:
            #if WebP
                true
            #else
                false
            #endif
        case .avif:
            #if AVIF
                true
            #else
                false
            #endif
        }
    }
}
