internal import CPNG
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

    /// Whether a result of the same format may be upright where the source is not.
    private func isTurned(by recipe: Recipe) -> Bool {
        orientation != ExifOrientation.upright && recipe.stripping != .none
    }

    package var pixels: Int { widthInPixels * heightInPixels }

    /// Up to which a PNG may become a JPEG of 4:4:4.
    static let mostPixelsOfWholeChroma = 16_000_000

    /// An upper estimate, in bytes, of what ``process(_:header:recipe:limits:cancellation:)`` allocates for this image, the source
    /// itself not counted: coefficients, pixels, and the output. `Int.max` for what cannot be counted.
    package func decodeMemoryBytes(for recipe: Recipe) -> Int {
        estimatedBytes(for: recipe).count
    }

    /// The same of ``checkedStructure(of:header:limits:memoryBytes:cancellation:)``: nothing for a JPEG. A
    /// PNG of usual size is inflated as a whole where the budget has room for it, else row by row; one that
    /// is not made in the usual way is left to the decoder.
    package func structureMemoryBytes(within budget: Int) -> Int {
        guard format != .jpeg else { return 0 }
        let least = estimatedBytes(for: Recipe(encoding: .original))
        // The passes of an interlaced image have twice as many rows.
        let rows = ByteEstimate(heightInPixels) * (stride(ByteEstimate(widthInPixels)) + 4) + 16
        guard rows.count <= Int(CPNG_MOST_BYTES_AT_ONCE) else { return least.count }
        let most = least + rows + ByteEstimate(sourceBytes)
        return most.count <= budget ? most.count : least.count
    }

    /// What the work on this image allocates at most, out of a budget of so many bytes: decoding it by
    /// the recipe, or the check of its structure.
    package func memoryBytes(for recipe: Recipe, check: SourceCheck, within budget: Int) -> Int {
        switch check {
        case .decode: decodeMemoryBytes(for: recipe)
        case .structure: structureMemoryBytes(within: budget)
        }
    }

    /// Of a row with its filter type.
    private func stride(_ pixels: ByteEstimate) -> ByteEstimate {
        (pixels * ByteEstimate(channels * bitDepth) + 7) / 8 + 1
    }

    private func estimatedBytes(for recipe: Recipe) -> ByteEstimate {
        let isSmall = recipe.pngEffort == .small
        let width = ByteEstimate(widthInPixels)
        let height = ByteEstimate(heightInPixels)
        let pixels = ByteEstimate(pixels)
        let source = ByteEstimate(sourceBytes)
        let allCoefficients = ByteEstimate(coefficientBytes)
        // The libraries' own state and tables; libdeflate's compressor is most of it, of which the
        // highest levels have 9 MB.
        var fixed = ByteEstimate(isSmall ? 12 << 20 : 3 << 20)
        if hasPackedProfile { fixed = fixed + 2 * ByteEstimate(CodecLimits().maximumMetadataBytes) }
        // Taken out of the source and put together.
        if recipe.stripping == .none { fixed = fixed + 2 * source }
        let isTurned = isTurned(by: recipe)
        // Rows in work, and those on which ways to write them are tried: in two forms, filtered and
        // compressed.
        let longest = isTurned ? max(width, height) : width
        let rows = height * stride(width)
        // Those of a small picture are all of them.
        let margin =
            fixed + min((isSmall ? 1100 : 300) * stride(longest), 5 * rows + 8 * stride(longest))
        let turnedRows = isTurned ? max(width * stride(height), rows) : 0
        // An output buffer grows by doubling, up to the source's length unless a larger output is kept.
        var output = recipe.keepsLarger ? 4 * source : 2 * source
        // The first result is kept while smaller ones are looked for.
        if recipe.maximumStoredBytes != nil { output = 2 * output }
        switch (format, recipe.encoding) {
        case (.jpeg, .original):
            return margin + (isProgressiveOrInterlaced ? allCoefficients : 0)
        case (.jpeg, .same), (.jpeg, .jpeg):
            // Turned ones lie beside those as read.
            return margin + allCoefficients * (isTurned ? 2 : 1) + output
        case (.jpeg, .png):
            let decoded = pixels * ByteEstimate(min(channels, 3)) + max(width, height)
            let coefficients = isProgressiveOrInterlaced ? allCoefficients : 0
            // Beside the rows there are first coefficients, then turned rows, then the output; with
            // more effort a copy of the rows and two outputs.
            return margin + decoded + max(coefficients, (isSmall ? 3 : 1) * decoded)
        case (_, .original):
            // An animation's frames are each put together to be decoded.
            return margin + (isAnimated ? source : 0)
        case (_, .same) where isAnimated, (_, .png) where isAnimated:
            return margin + 2 * source
        case (_, .jpeg):
            // Grey or RGB, before with alpha, and beside it turned, or all coefficients and a JPEG.
            let isLarge = pixels > ByteEstimate(ImageHeader.mostPixelsOfWholeChroma)
            let coefficients = (isLarge ? 3 : 6) * pixels
            let jpeg = recipe.quality > 90 ? 6 * pixels : 3 * pixels / 2
            let trials = min(ByteEstimate(recipe.maximumStoredBytes ?? 0), 3 * pixels)
            return margin + 3 * pixels + height + coefficients + jpeg + 2 * trials
        default:
            let written = max(rows, turnedRows)
            let file = recipe.keepsLarger ? written + written / 64 : source
            // With more effort two files, one in work, from a copy of the rows.
            let again = isSmall ? written + 2 * max(written, file) : 0
            return margin + rows + turnedRows + (isSmall ? again : file)
        }
    }
}

/// A number of bytes that saturates: a header of 100 bytes may say anything, and whatever is beyond
/// `Int.max` is beyond every budget.
private struct ByteEstimate: Comparable, ExpressibleByIntegerLiteral {
    let count: Int

    /// - Precondition: `count` is zero or more.
    init(_ count: Int) {
        self.count = count
    }

    init(integerLiteral count: Int) {
        self.init(count)
    }

    static func + (left: ByteEstimate, right: ByteEstimate) -> ByteEstimate {
        let (sum, overflows) = left.count.addingReportingOverflow(right.count)
        return ByteEstimate(overflows ? .max : sum)
    }

    static func * (left: ByteEstimate, right: ByteEstimate) -> ByteEstimate {
        let (product, overflows) = left.count.multipliedReportingOverflow(by: right.count)
        return ByteEstimate(overflows ? .max : product)
    }

    static func / (left: ByteEstimate, right: Int) -> ByteEstimate {
        ByteEstimate(left.count / right)
    }

    static func < (left: ByteEstimate, right: ByteEstimate) -> Bool { left.count < right.count }
}

/// Reads the header, without decoding.
///
/// - Throws: `notAnImage` without a known signature, `unsupported` for kinds that are not decoded,
///   `tooManyPixels`, and `corrupt` where the header itself is damaged or cut.
package func header(
    of source: UnsafeRawBufferPointer, limits: CodecLimits = CodecLimits()
) throws(CodecError) -> ImageHeader {
    let result: ImageHeader
    switch try decodableFormat(of: source) {
    case .jpeg: result = try JPEGFile(headerOf: source).imageHeader(of: source)
    case .png: result = try PNGFile(source).imageHeader(of: source)
    }
    // Neither factor has more than 31 bits.
    if result.pixels > limits.maximumPixels {
        throw .tooManyPixels(
            "\(result.widthInPixels)×\(result.heightInPixels) pixels, more than --max-pixels "
                + "(\(limits.maximumPixels))")
    }
    return result
}

/// A format that is decoded.
enum DecodableFormat {
    case jpeg
    case png
}

/// The format that the first bytes announce, as far as it is decoded.
///
/// - Throws: `notAnImage`, `unsupported`.
func decodableFormat(of source: UnsafeRawBufferPointer) throws(CodecError) -> DecodableFormat {
    guard !source.isEmpty else { throw .notAnImage("no bytes") }
    switch sniffed(source) {
    case .jpeg: return .jpeg
    case .png: return .png
    case let format?: throw .unsupported("\(format.rawValue) is not decoded")
    case nil: throw .notAnImage("no image's signature")
    }
}
