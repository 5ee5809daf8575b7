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
    /// False for the bytes of a format that is not decoded.
    package let isDecoded: Bool
    /// Of what is stored, so after the orientation where that was applied; 0 where that is not known, which takes a
    /// format that is not decoded.
    package let widthInPixels: Int
    package let heightInPixels: Int
    /// Processor time, as the encoding's; zero where it was decoded for another result already.
    package internal(set) var decodeDuration: Duration
    package internal(set) var encodeDuration: Duration

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

    /// The length of what is stored, of a source with this header.
    func byteCount(of source: ImageHeader) -> Int {
        switch output {
        case .source: source.sourceBytes
        case .encoded(let bytes): bytes.count
        }
    }
}
