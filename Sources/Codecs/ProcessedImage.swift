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
    /// Processor time, as the encoding's; zero where it was decoded for another result already.
    package internal(set) var decodeDuration: Duration
    package internal(set) var encodeDuration: Duration
}
