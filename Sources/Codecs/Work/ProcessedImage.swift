package import PrefetchModel

/// An image ready to be stored.
package struct ProcessedImage: Sendable {
    package enum Output: Sendable {
        /// The source's own bytes, unchanged.
        case source
        case encoded(ImageBytes)
    }

    package let output: Output
    package let format: ImageFormat
    /// False for a format that is not decoded, whose bytes are stored as they are.
    package let isDecoded: Bool
    /// The stored size, with an applied orientation; 0 if unknown, which only happens for formats
    /// that are not decoded.
    package let widthInPixels: Int
    package let heightInPixels: Int
    /// The number of frames, if only the first one is stored although the recipe keeps animations;
    /// nil otherwise.
    package internal(set) var framesOfSource: Int?
    /// Processor time, like the encoding's; zero if the source was already decoded for another
    /// result.
    package internal(set) var decodeDuration: Duration
    package internal(set) var encodeDuration: Duration
    /// Nil for sources that are stored unchanged without looking.
    package internal(set) var colour: ColourTreatment?

    init(
        output: Output, format: ImageFormat, isDecoded: Bool = true, widthInPixels: Int,
        heightInPixels: Int, decodeDuration: Duration, encodeDuration: Duration
    ) {
        self.output = output
        self.format = format
        self.isDecoded = isDecoded
        self.widthInPixels = widthInPixels
        self.heightInPixels = heightInPixels
        self.decodeDuration = decodeDuration
        self.encodeDuration = encodeDuration
    }

    /// Returns the length of the stored image, made from a source with this header.
    func byteCount(of source: ImageHeader) -> Int {
        switch output {
        case .source: source.sourceBytes
        case .encoded(let bytes): bytes.count
        }
    }
}
