internal import PrefetchModel

/// One encoded format: its limits, its memory and its encoder.
///
/// Each format declares its value in its folder, as ``ImageCodec/encoder`` of its codec.
struct ImageEncoder: Sendable {
    var sideLimit = SideLimit.none
    var hasAlpha = true
    /// Whether a grey picture stays grey, so a profile of grey describes it.
    var carriesGreyProfiles = true
    var isLossless = false
    /// The metadata that the format holds.
    var room = MetadataRoom()
    /// The encoder's own quality for each of libjpeg's; nil where it has none or that very scale.
    var curve: QualityCurve?
    /// Upper estimate of encoding a raster with the header's samples.
    let estimate: @Sendable (EstimateBasis) -> MemoryEstimate
    /// Makes a file of a raster with its orientation applied, and of metadata within ``room``.
    /// Without ``hasAlpha`` the raster must be opaque.
    let encode:
        @Sendable (
            _ raster: consuming Raster, _ metadata: CarriedMetadata, _ recipe: Recipe,
            _ interruption: Interruption
        ) throws(CodecError) -> ImageBytes
}

/// The longest side that a format can store.
struct SideLimit {
    static let none = SideLimit(subject: "", pixels: .max)

    /// The subject of the message: `a GIF`.
    let subject: String
    let pixels: Int

    func check(_ width: Int, _ height: Int) throws(CodecError) {
        guard max(width, height) <= pixels else {
            throw .unsupported("\(subject) has at most \(pixels) pixels a side")
        }
    }
}

extension EncodedImageFormat {
    /// Nil where this build does not encode the format, which its package traits decide.
    var encoder: ImageEncoder? { ImageFormat(rawValue: rawValue)?.codec?.encoder }

    package var isMade: Bool { encoder != nil }

    var builtEncoder: ImageEncoder {
        get throws(CodecError) {
            guard let encoder else { throw .unsupported("this build makes no \(self)") }
            return encoder
        }
    }

    /// Makes an image of a raster, see ``ImageEncoder/encode``.
    func image(
        of raster: consuming Raster, metadata: CarriedMetadata, by recipe: Recipe,
        _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage {
        let encoder = try builtEncoder
        guard let format = ImageFormat(rawValue: rawValue) else {
            throw .encodingFailed("no format")
        }
        let begin = ThreadClock.now
        let (width, height) = ExifOrientation.displayedSize(
            raster.widthInPixels, raster.heightInPixels, raster.orientation)
        let (metadata, leftOut) = metadata.fitting(encoder.room)
        let made = try encoder.encode(raster, metadata, recipe, interruption)
        return ProcessedImage(
            output: .encoded(made), format: format, widthInPixels: width, heightInPixels: height,
            encodeDuration: ThreadClock.now - begin, leftOut: leftOut)
    }
}
