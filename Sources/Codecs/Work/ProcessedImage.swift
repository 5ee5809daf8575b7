package import PrefetchModel

/// An image ready to be stored.
package struct ProcessedImage: Sendable {
    package enum Output: Sendable {
        /// The source's own bytes, unchanged.
        case source
        case encoded(ImageBytes)
    }

    package internal(set) var output: Output
    package let format: ImageFormat
    /// False for a format that is not decoded; its bytes are stored unchanged.
    package private(set) var isDecoded = true
    /// As displayed, with the orientation applied; 0 if unknown, which only happens for formats
    /// that are not decoded.
    package let widthInPixels: Int
    package let heightInPixels: Int
    /// The EXIF orientation, 1…8, which the stored bytes leave to readers.
    package private(set) var orientation = ExifOrientation.upright
    /// The number of frames, if only the first one is stored although the recipe keeps animations;
    /// nil otherwise.
    package internal(set) var framesOfSource: Int?
    /// Processor time, like the encoding's; zero if the source was already decoded for another
    /// result.
    package internal(set) var decodeDuration = Duration.zero
    package internal(set) var encodeDuration: Duration
    /// Nil for sources that are stored unchanged without looking.
    package internal(set) var colour: ColourTreatment?
    /// Whether it is the source's own data, less the metadata that the recipe strips.
    var isKeptData = false
    /// The metadata that the recipe keeps, and the format does not hold.
    var leftOut: [CarriedMetadata.MetadataKind] = []

    /// Returns the length of the stored image, made from a source with this header.
    func byteCount(of source: ImageHeader) -> Int {
        switch output {
        case .source: source.sourceBytes
        case .encoded(let bytes): bytes.count
        }
    }
}

extension ProcessedImage {
    /// An image that another process made.
    package init(
        output: Output, format: ImageFormat, isDecoded: Bool, displayedSize: (Int, Int),
        orientation: Int, framesOfSource: Int?, durations: (Duration, Duration),
        colour: ColourTreatment?
    ) {
        self.init(
            output: output, format: format, isDecoded: isDecoded, widthInPixels: displayedSize.0,
            heightInPixels: displayedSize.1, orientation: orientation,
            framesOfSource: framesOfSource, decodeDuration: durations.0,
            encodeDuration: durations.1, colour: colour)
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
}

extension ProcessedImage.Output {
    /// A file made of a source; the source itself if it has the same bytes.
    init(_ made: ImageBytes, from source: UnsafeRawBufferPointer) {
        let isSame = made.count == source.count && made.withUnsafeBytes { $0.elementsEqual(source) }
        self = isSame ? .source : .encoded(made)
    }

    init(joining pieces: [ImagePiece], of source: UnsafeRawBufferPointer) throws(CodecError) {
        self =
            pieces.isWhole(source)
            ? .source : .init(try ImageBytes(joining: pieces, of: source), from: source)
    }
}
