internal import PrefetchModel

/// What a format brings that is decoded: one type in a folder of its own, entered once, in
/// ``PrefetchModel/ImageFormat/codec``. It has no state; any number of threads may use it at once.
protocol ImageCodec {
    /// Name and version of what decodes it: `png/1.6.39`. Failures are remembered for as long as it stays.
    static var decoder: String { get }

    /// What ``Recipe/Encoding/same`` makes of it, and what an animation stays.
    static var same: EncodedFormat { get }

    /// What ``Recipe/Encoding/same`` makes of pixels that show something else than the source.
    static var sameOfPixels: EncodedFormat { get }

    /// Whether it makes right away what ``DecodingScale`` says, for less than all of it.
    static var decodesAtScales: Bool { get }

    /// Whether a file begins in this way. No more than ``signatureBytes`` of it are there for sure.
    static func isAnnounced(by bytes: UnsafeRawBufferPointer) -> Bool

    /// Reads the header, whatever size it says.
    ///
    /// - Throws: `corrupt`, truncated where bytes that are still to come may bring the rest; `unsupported`;
    ///   `tooManyPixels` where they cannot be counted.
    static func header(of source: UnsafeRawBufferPointer) throws(CodecError) -> ImageHeader

    /// What the beginning of a file, of which this is the header, leaves open.
    static func outlook(
        on header: ImageHeader, of beginning: UnsafeRawBufferPointer
    ) throws(CodecError) -> HeaderOutlook

    /// An upper estimate of what making one result allocates, the source not counted.
    static func memory(of header: ImageHeader, for recipe: Recipe) -> MemoryEstimate

    /// The same of ``ImageSource/checkStructure(memoryBytes:_:)``, out of a budget of so many bytes.
    static func structureMemoryBytes(of header: ImageHeader, within budget: Int) -> Int

    /// The same of ``ImageSource/verify(memoryBytes:_:)``.
    static func verificationMemoryBytes(
        of header: ImageHeader, for recipe: Recipe, within budget: Int
    ) -> Int

    /// Reads the structure of the whole file, of which this is the header. The bytes are valid as long as the result
    /// is used.
    ///
    /// - Returns: the file, ready to be decoded.
    /// - Throws: what ``header(of:)`` does, and `limitExceeded`.
    static func source(
        _ source: UnsafeRawBufferPointer, header: ImageHeader, limits: CodecLimits
    ) throws(CodecError) -> any ImageSource
}

extension ImageCodec {
    static var decodesAtScales: Bool { false }

    static var sameOfPixels: EncodedFormat { same }

    static func verificationMemoryBytes(
        of header: ImageHeader, for recipe: Recipe, within budget: Int
    ) -> Int {
        memory(of: header, for: recipe).peak.count
    }

    static func outlook(
        on header: ImageHeader, of beginning: UnsafeRawBufferPointer
    ) throws(CodecError) -> HeaderOutlook {
        HeaderOutlook(headers: [header], isFinal: true)
    }
}

/// What the whole of a file may still say that has begun with a header.
struct HeaderOutlook {
    /// All that it may come to, where that makes a difference to the memory; one or more.
    let headers: [ImageHeader]
    /// Whether nothing that follows changes what is estimated.
    let isFinal: Bool
}

/// One image, of which the structure has been read. What it throws, and whether it looks at the
/// interruption, is as ``ImageProcessor`` says.
protocol ImageSource {
    /// How a result is made.
    func way(to format: EncodedFormat, by recipe: Recipe) throws(CodecError) -> CodecWay

    /// Follows the structure to its end without decoding what need not be decoded.
    ///
    /// `memoryBytes` is what was reserved, from ``ImageCodec/structureMemoryBytes(of:within:)``.
    ///
    /// - Throws: what is wrong with the file.
    func checkStructure(memoryBytes: Int, _ interruption: Interruption) throws(CodecError)

    /// Looks for damage that decoding would pass over in silence: called once, before anything is decoded.
    func checkSilentDamage() throws(CodecError)

    /// Looks whether pixels mean elsewhere what they mean in this file: called before a result is made of them.
    ///
    /// - Throws: `unsupported` for colours that no profile says, since pixels for sRGB would be others.
    func checkColours() throws(CodecError)

    /// Decodes all that the file has, and keeps nothing of it.
    ///
    /// - Returns: the processor time.
    func verify(_ interruption: Interruption) throws(CodecError) -> Duration

    /// The same, with ``ImageCodec/verificationMemoryBytes(of:for:within:)`` reserved for it.
    func verify(memoryBytes: Int, _ interruption: Interruption) throws(CodecError) -> Duration

    /// Decodes into pixels.
    func raster(
        _ request: RasterRequest, _ interruption: Interruption
    ) throws(CodecError) -> Raster

    /// Decodes into pixels at several scales at once, for less than one by one, with the same pixels.
    ///
    /// The requests are at different scales; of the rasters the first has the time.
    ///
    /// - Returns: nil for a source that has no way to do that.
    /// - Throws: why not; each is then decoded by itself.
    func rasters(
        _ requests: [RasterRequest], _ interruption: Interruption
    ) throws(CodecError) -> ScaledRasters?

    /// Makes a result of the source's own format without pixels, for ``CodecWay/shortcut``. The whole source is
    /// decoded, at least as far as ``verify(_:)`` does it.
    func shortcut(
        by recipe: Recipe, _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage

    /// Makes a result for ``CodecWay/rewriting``, of the source's native raster.
    func rewritten(
        _ raster: consuming Raster, by recipe: Recipe, _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage

    /// The file as it is, without the metadata that goes, where it has at most so many bytes: in place of a new
    /// encoding. Nil for formats that see to that themselves.
    ///
    /// - Throws: `outOfMemory`.
    func kept(by recipe: Recipe, within count: Int) throws(CodecError) -> ProcessedImage?

    /// The TIFF structure of EXIF; nil without one.
    var exif: [UInt8]? { get }

    /// Has what a placeholder is made of noted from now on, wherever it is come by without pixels.
    func notePlaceholder()

    /// Made of what was noted; nil where nothing was.
    var placeholder: Placeholder? { get }
}

extension ImageSource {
    func verify(memoryBytes: Int, _ interruption: Interruption) throws(CodecError) -> Duration {
        try verify(interruption)
    }

    func checkSilentDamage() throws(CodecError) {}
    func checkColours() throws(CodecError) {}

    func rasters(
        _ requests: [RasterRequest], _ interruption: Interruption
    ) throws(CodecError) -> ScaledRasters? {
        nil
    }

    /// - Precondition: a format that never answers ``CodecWay/shortcut`` is not asked for one.
    func shortcut(
        by recipe: Recipe, _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage {
        preconditionFailure("a shortcut of a format that offers none")
    }

    /// - Precondition: a format that never answers ``CodecWay/rewriting`` is not asked for it.
    func rewritten(
        _ raster: consuming Raster, by recipe: Recipe, _ interruption: Interruption
    ) throws(CodecError) -> ProcessedImage {
        preconditionFailure("a rewriting of a format that offers none")
    }

    func kept(by recipe: Recipe, within count: Int) throws(CodecError) -> ProcessedImage? { nil }

    var exif: [UInt8]? { nil }

    func notePlaceholder() {}

    var placeholder: Placeholder? { nil }
}

/// How a result is made. The first two stay inside one format, and are offered where they give the same picture
/// for less.
enum CodecWay {
    /// From the source's own data: a JPEG's coefficients, an animation's chunks.
    case shortcut
    /// From the native raster, by the source's own format, with metadata that no other knows.
    case rewriting
    /// From a raster, by whatever encoder.
    case raster(RasterForm)

    /// Nil where no raster is needed.
    var rasterForm: RasterForm? {
        switch self {
        case .shortcut: nil
        case .rewriting: .native
        case .raster(let form): form
        }
    }
}

extension ImageSource {
    /// What goes along with pixels into a new file. What has no header of a TIFF is no EXIF: libpng complains of it, and
    /// libavif refuses the picture.
    func exif(keptBy recipe: Recipe) -> [UInt8]? {
        guard recipe.stripping == .none, let exif else { return nil }
        return ["II*\0", "MM\0*"].contains { exif.starts(with: $0.utf8) } ? exif : nil
    }

    /// The result of ``shortcut(by:_:)`` that is put together from pieces of the source.
    ///
    /// - Throws: `outOfMemory`.
    func keepingContainer(
        _ pieces: [ImagePiece], of source: UnsafeRawBufferPointer, _ header: ImageHeader,
        decodeDuration: Duration
    ) throws(CodecError) -> ProcessedImage {
        let begin = ThreadClock.now
        var output = ProcessedImage.Output.source
        if !pieces.isWhole(source) {
            guard let copy = ImageBytes(joining: pieces, of: source) else {
                throw .outOfMemory("no memory for the output")
            }
            let isSame =
                copy.count == source.count && copy.withUnsafeBytes { $0.elementsEqual(source) }
            if !isSame { output = .encoded(copy) }
        }
        return ProcessedImage(
            output: output, format: header.format, widthInPixels: header.widthInPixels,
            heightInPixels: header.heightInPixels, decodeDuration: decodeDuration,
            encodeDuration: ThreadClock.now - begin)
    }
}
