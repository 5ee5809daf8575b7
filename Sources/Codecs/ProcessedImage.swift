package import PrefetchModel

/// An image as it is to be stored.
package struct ProcessedImage: Sendable {
    package enum Output: Sendable {
        /// The source's own bytes, unchanged.
        case source
        case encoded(ImageBytes)
    }

    package let output: Output
    package let format: ImageFormat
    /// Of what is stored, so after the orientation where that was applied.
    package let widthInPixels: Int
    package let heightInPixels: Int
    /// Processor time, as the encoding's.
    package let decodeDuration: Duration
    package let encodeDuration: Duration
}

/// Decodes the whole source, so that damage is found, and makes what the recipe asks for.
///
/// Synchronous, without shared state; any number of threads may call it at once. It allocates at
/// most about ``ImageHeader/decodeMemoryBytes(for:)``.
///
/// Within one format, a result that is not smaller than the source without its metadata gives way to those bytes, unless the
/// recipe keeps it. Another format that was asked for is made at any size.
///
/// A cancellation ends it within a few tenths of a second, whatever it is doing.
package func process(
    _ source: UnsafeRawBufferPointer, header: ImageHeader, recipe: Recipe,
    limits: CodecLimits = CodecLimits(), cancellation: Cancellation? = nil
) throws(CodecError) -> ProcessedImage {
    let interruption = Interruption(limits, cancellation)
    try interruption.look()
    guard header.format == .jpeg else {
        let processing = try PNGProcessing(
            source: source, header: header, recipe: recipe, limits: limits,
            interruption: interruption)
        return switch recipe.encoding {
        case .original: try processing.verified()
        case .same, .png: try processing.rewritten()
        case .jpeg: try processing.converted()
        }
    }
    let processing = try JPEGProcessing(
        source: source, header: header, recipe: recipe, limits: limits, interruption: interruption)
    return switch recipe.encoding {
    case .original: try processing.verified()
    case .same, .jpeg: try processing.requantised()
    case .png: try processing.converted()
    }
}
