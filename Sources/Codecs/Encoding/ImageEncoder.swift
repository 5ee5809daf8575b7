internal import PrefetchModel

/// One encoded format: its limits, its memory and its encoder.
///
/// Each format declares its value in its folder, as ``ImageCodec/encoder`` of its codec.
struct ImageEncoder: Sendable {
    let sideLimit: SideLimit
    let hasAlpha: Bool
    /// Whether a grey picture stays grey, so a profile of grey describes it.
    let carriesGreyProfiles: Bool
    let isLossless: Bool
    /// The encoder's own quality for each of libjpeg's; nil where it has none or that very scale.
    let curve: QualityCurve?
    /// Upper estimate of the encoder's memory without 8-bit rows and its output.
    let workingMemory: @Sendable (EstimateBasis) -> ByteEstimate
    /// Upper estimate of encoding a raster with the header's samples.
    let memory: @Sendable (EstimateBasis) -> MemoryEstimate
    /// Makes a file of a raster with its orientation applied, and of the TIFF structure of the EXIF
    /// to keep. Without ``hasAlpha`` the raster must be opaque.
    let encode:
        @Sendable (
            _ raster: consuming Raster, _ exif: [UInt8]?, _ recipe: Recipe,
            _ interruption: Interruption
        ) throws(CodecError) -> ProcessedImage

    init(
        sideLimit: SideLimit = .none, hasAlpha: Bool = true,
        carriesGreyProfiles: Bool = true, isLossless: Bool = false, curve: QualityCurve? = nil,
        workingMemory: @escaping @Sendable (EstimateBasis) -> ByteEstimate,
        memory: (@Sendable (EstimateBasis) -> MemoryEstimate)? = nil,
        encode:
            @escaping @Sendable (
                _ raster: consuming Raster, _ exif: [UInt8]?, _ recipe: Recipe,
                _ interruption: Interruption
            ) throws(CodecError) -> ProcessedImage
    ) {
        self.sideLimit = sideLimit
        self.hasAlpha = hasAlpha
        self.carriesGreyProfiles = carriesGreyProfiles
        self.isLossless = isLossless
        self.curve = curve
        self.workingMemory = workingMemory
        self.memory = memory ?? { $0.encodingPixels(beside: workingMemory($0)) }
        self.encode = encode
    }
}

/// The longest side that a format can store.
struct SideLimit {
    static let none = SideLimit("", .max)

    /// The subject of the message: `a GIF`.
    private let subject: String
    private let pixels: Int

    init(_ subject: String, _ pixels: Int) {
        self.subject = subject
        self.pixels = pixels
    }

    /// - Throws: `unsupported` for a longer side.
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

    /// The encoder.
    var builtEncoder: ImageEncoder {
        get throws(CodecError) {
            guard let encoder else { throw .unsupported("this build makes no \(self)") }
            return encoder
        }
    }
}
