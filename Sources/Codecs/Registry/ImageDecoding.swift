internal import PrefetchModel

/// One file of a decoded format, its structure read. For errors and interruption see
/// ``ImageProcessor``.
protocol ImageDecoding: SendableMetatype {
    /// Reads the header of a file or of its beginning, without a limit on its size.
    ///
    /// - Throws: `corrupt`, with `isTruncated` if more bytes may complete the header;
    ///   `unsupported`; `tooManyPixels` if the pixels cannot be counted.
    static func header(of source: UnsafeRawBufferPointer) throws(CodecError) -> ImageHeader

    /// Reads the structure of a whole file. The bytes must outlive the value.
    init(
        _ source: UnsafeRawBufferPointer, header: ImageHeader, limits: CodecLimits
    ) throws(CodecError)

    /// The colours that the file declares for the samples of its raster.
    var colours: SourceColours { get }

    /// Takes faults and losses that cost no pixel, despite which the file is accepted.
    var note: WarningNote { get }

    /// Decodes the picture to its own samples, where a raster can have them; for a JPEG to 8-bit
    /// grey or RGB. Of an animation the first frame, with every frame verified. Colours are as the
    /// file declares them, except that inks (CMYK) become sRGB.
    func raster(
        at scale: DecodingScale, _ interruption: Interruption
    ) throws(CodecError) -> Raster

    /// Throws damage that it finds, and keeps nothing. `memoryBytes` may be used for whole image
    /// data; 0 for the least.
    func check(
        _ depth: CheckDepth, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError)

    // MARK: Upper estimates of memory, in bytes, without the source

    /// For decoding a raster, including the raster.
    static func rasterMemory(of header: ImageHeader, for recipe: Recipe) -> ByteEstimate

    /// For making one result.
    static func memory(of header: ImageHeader, for recipe: Recipe) -> MemoryEstimate

    /// For ``CheckDepth/structure`` within a budget.
    static func structureMemoryBytes(of header: ImageHeader, within budget: Int) -> Int

    /// For ``CheckDepth/pixels`` within a budget, for the recipe `original`.
    static func verificationMemoryBytes(
        of header: ImageHeader, for recipe: Recipe, within budget: Int
    ) -> Int

    // MARK: Only some formats

    /// Whether the decoder makes the sizes of ``DecodingScale`` for less than the whole picture.
    static var decodesAtScales: Bool { get }

    /// The possible headers of a file, given its beginning; only for formats with metadata after
    /// the header.
    static func outlook(
        on header: ImageHeader, of beginning: UnsafeRawBufferPointer
    ) throws(CodecError) -> HeaderOutlook

    /// The faults and losses that opening, checking, decoding or encoding has found so far.
    var warning: ImageWarning? { get }

    /// The metadata that can be copied into a new file, as it is.
    var metadata: CarriedMetadata { get }

    /// The companions of the picture that new bytes lose.
    var companions: Set<Companion> { get }

    /// Decodes a raster at each of several scales, for less than one by one and with the same
    /// pixels.
    ///
    /// - Throws: Why not; each is then decoded alone.
    func rasters(
        at scales: [DecodingScale], _ interruption: Interruption
    ) throws(CodecError) -> ScaledRasters

    /// The way to make the source's own format by a recipe; nil if the ordinary encoder of pixels
    /// does it.
    func ownWay(by recipe: Recipe) throws(CodecError) -> OwnWay?

    /// Starts collecting the data of a placeholder during work without pixels.
    ///
    /// - Returns: A function that makes the placeholder; nil if nothing has been collected by then.
    func notePlaceholder() -> () -> Placeholder?
}

extension ImageDecoding {
    /// The decoder allocates ``DecoderMemory/libraryBytes`` in addition to the rows.
    static func memory(of header: ImageHeader, for recipe: Recipe) -> MemoryEstimate {
        EstimateBasis(header, recipe).ofDecoded
    }

    static func rasterMemory(of header: ImageHeader, for recipe: Recipe) -> ByteEstimate {
        EstimateBasis(header, recipe).ofRaster
    }

    static func structureMemoryBytes(of header: ImageHeader, within budget: Int) -> Int { 0 }

    static func verificationMemoryBytes(
        of header: ImageHeader, for recipe: Recipe, within budget: Int
    ) -> Int { memory(of: header, for: recipe).peak.count }

    static var decodesAtScales: Bool { false }

    static func outlook(
        on header: ImageHeader, of beginning: UnsafeRawBufferPointer
    ) throws(CodecError) -> HeaderOutlook { HeaderOutlook(headers: [header], isFinal: true) }

    var colours: SourceColours { .undeclared }

    var warning: ImageWarning? { note.warning }

    var metadata: CarriedMetadata { .none }

    var companions: Set<Companion> { [] }

    func rasters(
        at scales: [DecodingScale], _ interruption: Interruption
    ) throws(CodecError) -> ScaledRasters { throw .unsupported("one scale") }

    func ownWay(by recipe: Recipe) throws(CodecError) -> OwnWay? { nil }

    func notePlaceholder() -> () -> Placeholder? { { nil } }

    /// The metadata of a file of new pixels, with the orientation applied.
    func metadata(keptBy recipe: Recipe) -> CarriedMetadata {
        recipe.stripping == .none ? metadata.upright(note) : .none
    }
}

/// How far a file is checked for damage.
enum CheckDepth {
    /// Only damage that decoding would ignore, and limits of animations. Runs once, before anything
    /// is decoded.
    case ignoredByDecoder
    /// The structure to its end, without decoding more than necessary.
    case structure
    /// Everything is decoded.
    case pixels
}

/// Keeps the source's own data as a result, see ``PrefetchModel/SameRule/Keeping``.
protocol DataKeeping: ImageDecoding {
    /// Returns the file without the metadata that the recipe strips.
    func pieces(keptBy recipe: Recipe) -> [ImagePiece]

    /// Returns whether the file has metadata that the encoder of its format does not write.
    func hasUnwrittenMetadata() -> Bool

    /// Whether the data keeps its profile under every recipe.
    var keepsProfileAlways: Bool { get }
}

extension DataKeeping {
    func hasUnwrittenMetadata() -> Bool { false }

    var keepsProfileAlways: Bool { false }
}

/// A way to make the source's own format. It gives the same picture for less.
enum OwnWay {
    /// From the source's data, without pixels. The whole source is decoded, at least as for
    /// ``CheckDepth/pixels``.
    case shortcut((_ interruption: Interruption) throws(CodecError) -> ProcessedImage)
    /// From the native raster, with metadata that only this format has.
    case rewriting(
        (_ raster: consuming Raster, _ interruption: Interruption) throws(CodecError) ->
            ProcessedImage)
}
