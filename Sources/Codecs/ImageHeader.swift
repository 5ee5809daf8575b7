package import PrefetchModel

/// What an image says of itself before any pixel is decoded.
package struct ImageHeader: Hashable, Sendable {
    package let format: ImageFormat
    /// As stored, before ``orientation`` is applied.
    package let widthInPixels: Int
    package let heightInPixels: Int
    /// Bits a sample.
    package let bitDepth: Int
    package let isProgressiveOrInterlaced: Bool
    /// EXIF's, 1…8; 1 is upright.
    package let orientation: Int
    /// Samples a pixel, a palette's index counting as one.
    let channels: Int
    /// Bytes of all DCT coefficients of a JPEG, rows and columns of padding blocks included.
    let coefficientBytes: Int
    /// Length of the whole file.
    var sourceBytes: Int
    /// More than one picture, of which the size is that of all.
    var isAnimated = false
    /// A PNG's profile is unpacked to know what it says.
    var hasPackedProfile = false

    package var pixels: Int { widthInPixels * heightInPixels }

    /// Of a row with its filter type.
    func stride(_ pixels: ByteEstimate) -> ByteEstimate {
        (pixels * ByteEstimate(channels * bitDepth) + 7) / 8 + 1
    }

    /// An upper estimate, in bytes, of what decoding this image and making one result allocates, the source
    /// itself not counted: coefficients, pixels, and the output. `Int.max` for what cannot be counted.
    package func decodeMemoryBytes(for recipe: Recipe) -> Int {
        estimate(for: recipe).peak.count
    }

    /// The same of the check of the structure: nothing for a JPEG. A PNG of usual size is inflated as
    /// a whole where the budget has room for it, else row by row; one that is not made in the usual way is
    /// left to the decoder.
    package func structureMemoryBytes(within budget: Int) -> Int {
        format.codec?.structureMemoryBytes(of: self, within: budget) ?? containerMemoryBytes
    }

    func estimate(for recipe: Recipe) -> MemoryEstimate {
        format.codec?.memory(of: self, for: recipe)
            ?? MemoryEstimate(peak: ByteEstimate(containerMemoryBytes), result: 0, raster: 0)
    }

    /// Of a format that is not decoded.
    private var containerMemoryBytes: Int {
        format.container?.memoryBytes(ofSource: sourceBytes) ?? .max
    }
}

/// Reads the header, without decoding.
///
/// - Throws: `notAnImage` without a known signature; for formats that are not decoded what ``OtherFormats`` says of them;
///   `unsupported` for other kinds that are not, `tooManyPixels`, and `corrupt` where the header itself is damaged or
///   cut.
package func header(
    of source: UnsafeRawBufferPointer, limits: CodecLimits = CodecLimits(),
    others: OtherFormats = .fail
) throws(CodecError) -> ImageHeader {
    let result =
        switch try way(of: source, others) {
        case .decoded(let codec): try codec.header(of: source)
        case .asItCame(let format): ImageHeader(undecoded: format, source)
        }
    // Neither factor has more than 31 bits.
    if result.pixels > limits.maximumPixels {
        throw .tooManyPixels(
            "\(result.widthInPixels)×\(result.heightInPixels) pixels, more than --max-pixels "
                + "(\(limits.maximumPixels))")
    }
    return result
}

extension ImageHeader {
    /// Of a format that is not decoded; width and height are 0 where the bytes do not say them.
    fileprivate init(undecoded format: ImageFormat, _ source: UnsafeRawBufferPointer) {
        var (width, height) = (0, 0)
        if case .known(let declaredWidth, let declaredHeight)? = format.container?.size(in: source)
        {
            // Products of more bits would not fit; no picture that anything shows is larger.
            width = min(declaredWidth, Int(Int32.max))
            height = min(declaredHeight, Int(Int32.max))
        }
        self.init(
            format: format, widthInPixels: width, heightInPixels: height, bitDepth: 0,
            isProgressiveOrInterlaced: false, orientation: 1, channels: 0, coefficientBytes: 0,
            sourceBytes: source.count)
    }
}
