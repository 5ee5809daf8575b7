internal import CColour
internal import CInterruption
internal import CPNG
internal import Glibc
internal import PrefetchModel

/// A file in memory, its header read.
struct SandboxedFile {
    let source: UnsafeRawBufferPointer
    let header: ImageHeader
    /// As the library reads it.
    let picture: ccodec_header
    let note = WarningNote()
}

/// A file of a format that a ``SandboxedLibrary`` decodes.
protocol SandboxedSource: DataKeeping {
    static var library: SandboxedLibrary { get }

    /// Whether its pictures are frames of an animation, and not pages.
    static var hasFrames: Bool { get }

    var file: SandboxedFile { get }

    init(_ file: SandboxedFile) throws(CodecError)
}

extension SandboxedSource {
    static var hasFrames: Bool { false }

    var source: UnsafeRawBufferPointer { file.source }
    var header: ImageHeader { file.header }
    var picture: ccodec_header { file.picture }
    var note: WarningNote { file.note }

    var whole: [ImagePiece] { [.source(0..<source.count)] }

    /// The orientation that the library leaves to readers.
    var rasterOrientation: Int { Int(picture.orientation) }

    init(
        _ source: UnsafeRawBufferPointer, header: ImageHeader, limits: CodecLimits
    ) throws(CodecError) {
        let picture = try Self.library.header(of: source)
        try self.init(SandboxedFile(source: source, header: header, picture: picture))
        if picture.pictures > 1, !Self.hasFrames {
            note.note(ImageWarning(text: "only the first page is decoded"))
        }
    }

    /// A whole file that the library refuses by its header is stored unchanged.
    static func header(of source: UnsafeRawBufferPointer) throws(CodecError) -> ImageHeader {
        let picture = Result { () throws(CodecError) in try library.header(of: source) }
        switch picture {
        case .success(let picture): return header(of: source, picture)
        case .failure(.outOfMemory): _ = try picture.get()
        case .failure(let error):
            let container = library.format.container
            _ = try container?.check(source, memoryBytes: 0, Interruption(CodecLimits(), nil))
            // Only the library finds the end of some.
            guard case .corrupt(_, isTruncated: true) = error,
                container?.statesItsEnd(source) == false
            else {
                return ImageHeader(
                    undecoded: library.format, source,
                    libraryRefusal: "\(library.name) \(library.version): \(error)")
            }
        }
        return header(of: source, try picture.get())
    }

    static func header(
        of source: UnsafeRawBufferPointer, _ picture: ccodec_header
    ) -> ImageHeader {
        plainHeader(of: source, picture, orientation: Int(picture.orientation))
    }

    static func plainHeader(
        of source: UnsafeRawBufferPointer, _ picture: ccodec_header, orientation: Int,
        isTurned: Bool = false
    ) -> ImageHeader {
        let (width, height) =
            isTurned
            ? ExifOrientation.displayedSize(
                Int(picture.width), Int(picture.height), orientation)
            : (Int(picture.width), Int(picture.height))
        var header = ImageHeader(
            format: library.format, widthInPixels: width, heightInPixels: height,
            bitDepth: Int(picture.depth), orientation: orientation,
            channels: Int(picture.channels),
            memory: DecoderMemory(hasPackedProfile: picture.has_profile),
            sourceBytes: source.count)
        header.memory.libraryBytes = Int(clamping: picture.library_bytes)
        if hasFrames {
            header.isAnimated = picture.pictures > 1
            header.frames = max(1, Int(picture.pictures))
        }
        return header
    }

    /// The container is checked before the library sees its data.
    func check(
        _ depth: CheckDepth, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) {
        switch depth {
        case .ignoredByDecoder, .structure:
            note.note(
                try header.format.container?.check(source, memoryBytes: 0, interruption))
        case .pixels: _ = try raster(at: .full, interruption)
        }
    }

    func raster(
        at scale: DecodingScale, _ interruption: Interruption
    ) throws(CodecError) -> Raster {
        let transform = try inkTransform
        var inks = ccodec_inks()
        if let transform {
            inks = ccodec_inks(
                context: UnsafeRawPointer(transform.pointer),
                convert: { context, inks, rgb, count in
                    ccolour_convert(OpaquePointer(context), CCOLOUR_FASTEST, 4, inks, rgb, count)
                })
        }
        var picture = picture
        var rows: UnsafeMutablePointer<UInt8>?
        let calls = Self.library.calls
        try withExtendedLifetime(transform) { () throws(CodecError) in
            try Self.library.check(source, interruption) { start, count, message in
                calls.decode(
                    start, count, &picture, &inks, interruption.pointer, &rows, message)
            }
        }
        guard let rows else { throw .outOfMemory("no pixels") }
        var image = cpng_image_of(
            rows, picture.width, picture.height, picture.channels, interruption.pointer)
        if picture.depth == 16 {
            image.bit_depth = 16
            image.row_bytes *= 2
            image.filter_distance *= 2
        }
        return Raster(owning: image, orientation: rasterOrientation)
    }

    /// The conversion of CMYK by its profile; nil without a usable one.
    private var inkTransform: ColourTransform? {
        get throws(CodecError) {
            guard case .inks(let profile?) = colours else { return nil }
            return try ColourTransforms.transform(from: profile, CCOLOUR_INKS)
        }
    }

    /// An ICC profile overrides code points.
    var colours: SourceColours {
        let channels = picture.has_inks ? 4 : picture.channels > 2 ? 3 : 1
        let fitting = profile.flatMap { profile in
            profile.count <= CodecLimits.maximumMetadataBytes
                && ICCProfile.applies(profile, toChannels: channels) ? profile : nil
        }
        if picture.has_inks { return .inks(profile: fitting) }
        let (primaries, transfer) = (Int(picture.primaries), Int(picture.transfer))
        // Profiles of PQ and HLG describe another picture than browsers show.
        if let fitting, transfer != 16, transfer != 18 { return SourceColours(fitting) }
        return SourceColours(primaries: primaries, transfer: transfer, ofA: "a picture")
    }

    private var profile: [UInt8]? {
        guard let start = source.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
            return nil
        }
        var count = 0
        guard let copy = Self.library.calls.copy_profile(start, source.count, &count) else {
            return nil
        }
        return ImageBytes(owning: copy, count: count).withUnsafeBytes { [UInt8]($0) }
    }

    var keepsProfileAlways: Bool { true }
}
