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
    let sourceBytes: Int
    /// More than one picture, of which the size is that of all.
    var isAnimated = false
    /// A PNG's profile is unpacked to know what it says.
    var hasPackedProfile = false

    /// Whether a result of the same format may be upright where the source is not.
    private func isTurned(by recipe: Recipe) -> Bool {
        orientation != ExifOrientation.upright && recipe.stripping != .none
    }

    package var pixels: Int { widthInPixels * heightInPixels }

    /// Up to which a PNG may become a JPEG of 4:4:4.
    static let mostPixelsOfWholeChroma = 16_000_000

    /// An upper estimate, in bytes, of what ``process(_:header:recipe:limits:)`` allocates for this image, the source itself not
    /// counted: coefficients, pixels, and the output.
    package func decodeMemoryBytes(for recipe: Recipe) -> Int {
        let isSmall = recipe.pngEffort == .small
        // The libraries' own state and tables; libdeflate's compressor is most of it, of which the
        // highest levels have 9 MB.
        var fixed = isSmall ? 12 << 20 : 3 << 20
        if hasPackedProfile { fixed += 2 * CodecLimits().maximumMetadataBytes }
        // Taken out of the source and put together.
        if recipe.stripping == .none { fixed += 2 * sourceBytes }
        func stride(_ pixels: Int) -> Int { (pixels * channels * bitDepth + 7) / 8 + 1 }
        let isTurned = isTurned(by: recipe)
        // Rows in work, and those on which ways to write them are tried: in two forms, filtered and
        // compressed.
        let longest = isTurned ? max(widthInPixels, heightInPixels) : widthInPixels
        let rows = heightInPixels * stride(widthInPixels)
        // Those of a small picture are all of them.
        let margin =
            fixed + min((isSmall ? 1100 : 300) * stride(longest), 5 * rows + 8 * stride(longest))
        let turnedRows = isTurned ? max(widthInPixels * stride(heightInPixels), rows) : 0
        // An output buffer grows by doubling, up to the source's length unless a larger output is kept.
        var output = recipe.keepsLarger ? 4 * sourceBytes : 2 * sourceBytes
        // The first result is kept while smaller ones are looked for.
        if recipe.maximumStoredBytes != nil { output *= 2 }
        switch (format, recipe.encoding) {
        case (.jpeg, .original):
            return margin + (isProgressiveOrInterlaced ? coefficientBytes : 0)
        case (.jpeg, .same), (.jpeg, .jpeg):
            // Turned ones lie beside those as read.
            return margin + coefficientBytes * (isTurned ? 2 : 1) + output
        case (.jpeg, .png):
            let decoded = pixels * min(channels, 3) + max(widthInPixels, heightInPixels)
            let coefficients = isProgressiveOrInterlaced ? coefficientBytes : 0
            // Beside the rows there are first coefficients, then turned rows, then the output; with
            // more effort a copy of the rows and two outputs.
            return margin + decoded + max(coefficients, (isSmall ? 3 : 1) * decoded)
        case (_, .original):
            // An animation's frames are each put together to be decoded.
            return margin + (isAnimated ? sourceBytes : 0)
        case (_, .same) where isAnimated, (_, .png) where isAnimated:
            return margin + 2 * sourceBytes
        case (_, .jpeg):
            // Grey or RGB, before with alpha, and beside it turned, or all coefficients and a JPEG.
            let coefficients = (pixels > ImageHeader.mostPixelsOfWholeChroma ? 3 : 6) * pixels
            let jpeg = recipe.quality > 90 ? 6 * pixels : 3 * pixels / 2
            let trials = min(recipe.maximumStoredBytes ?? 0, 3 * pixels)
            return margin + 3 * pixels + heightInPixels
                + coefficients + jpeg + 2 * trials
        default:
            let written = max(rows, turnedRows)
            let file = recipe.keepsLarger ? written + written / 64 : sourceBytes
            // With more effort two files, one in work, from a copy of the rows.
            let again = isSmall ? written + 2 * max(written, file) - file : 0
            return margin + rows + turnedRows + file + again
        }
    }
}

/// Reads the header, without decoding.
///
/// - Throws: `notAnImage` without a known signature, `unsupported` for kinds that are not decoded,
///   `tooManyPixels`, and `corrupt` where the header itself is damaged or cut.
package func header(
    of source: UnsafeRawBufferPointer, limits: CodecLimits = CodecLimits()
) throws(CodecError) -> ImageHeader {
    guard !source.isEmpty else { throw .notAnImage("no bytes") }
    let result: ImageHeader
    switch sniffed(source) {
    case .jpeg: result = try JPEGFile(headerOf: source).imageHeader(of: source)
    case .png: result = try PNGFile(source).imageHeader(of: source)
    case let format?: throw .unsupported("\(format.rawValue) is not decoded")
    case nil: throw .notAnImage("no image's signature")
    }
    // Neither factor has more than 31 bits.
    if result.pixels > limits.maximumPixels {
        throw .tooManyPixels(
            "\(result.widthInPixels)×\(result.heightInPixels) pixels, more than "
                + "\(limits.maximumPixels)")
    }
    return result
}
