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
    /// What a library allocates at most to decode it, beside the rows that it fills.
    var libraryBytes = 0
    /// More than one picture, of which the size is that of all.
    package internal(set) var isAnimated = false
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
        format.codec?.structureMemoryBytes(of: self, within: budget) ?? .max
    }

    func estimate(for recipe: Recipe) -> MemoryEstimate {
        // A header without a codec is none that was read.
        format.codec?.memory(of: self, for: recipe)
            ?? MemoryEstimate(peak: ByteEstimate(.max), result: 0, raster: 0)
    }
}

/// Reads the header, without decoding.
///
/// - Throws: `notAnImage` without a known signature, `unsupported` for kinds that are not decoded,
///   `tooManyPixels`, and `corrupt` where the header itself is damaged or cut.
package func header(
    of source: UnsafeRawBufferPointer, limits: CodecLimits = CodecLimits()
) throws(CodecError) -> ImageHeader {
    let result = try codec(of: source).header(of: source)
    // Neither factor has more than 31 bits.
    if result.pixels > limits.maximumPixels {
        throw .tooManyPixels(
            "\(result.widthInPixels)×\(result.heightInPixels) pixels, more than --max-pixels "
                + "(\(limits.maximumPixels))")
    }
    return result
}
