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
    /// False for a format that is not decoded; its bytes are stored unchanged.
    package let isDecoded: Bool
    /// As displayed, with the orientation applied; 0 if unknown, which only happens for formats
    /// that are not decoded.
    package let widthInPixels: Int
    package let heightInPixels: Int
    /// The EXIF orientation, 1…8, which the stored bytes leave to readers.
    package let orientation: Int
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
        heightInPixels: Int, orientation: Int = ExifOrientation.upright,
        decodeDuration: Duration, encodeDuration: Duration
    ) {
        self.output = output
        self.format = format
        self.isDecoded = isDecoded
        self.widthInPixels = widthInPixels
        self.heightInPixels = heightInPixels
        self.orientation = orientation
        self.decodeDuration = decodeDuration
        self.encodeDuration = encodeDuration
    }

    /// An image with the source's own rows and orientation.
    init(
        keeping header: ImageHeader, as output: Output, isDecoded: Bool = true,
        decodeDuration: Duration, encodeDuration: Duration
    ) {
        let (width, height) = header.displayedSize
        self.init(
            output: output, format: header.format, isDecoded: isDecoded, widthInPixels: width,
            heightInPixels: height, orientation: header.orientation,
            decodeDuration: decodeDuration, encodeDuration: encodeDuration)
    }

    /// Returns the length of the stored image, made from a source with this header.
    func byteCount(of source: ImageHeader) -> Int {
        switch output {
        case .source: source.sourceBytes
        case .encoded(let bytes): bytes.count
        }
    }
}
