internal import PrefetchModel

/// One decoded format: its facts, and how its files are read.
///
/// Each format declares its value in its own folder and has one line in
/// ``PrefetchModel/ImageFormat/codec``. A codec has no state; any thread may use it.
struct ImageCodec: Sendable {
    typealias Bytes = UnsafeRawBufferPointer

    /// Name and version of the decoder, for example `png/1.6.39`. Stored failures apply to this
    /// decoder only. So once more files are accepted, `-2` and so on follow a library's version.
    var decoder: String { readDecoder() }
    /// Evaluated on demand: the version of libavif is known only once the library is loaded, which
    /// takes longer than a run over fresh images.
    private let readDecoder: @Sendable () -> String
    /// The meaning of ``Recipe/Encoding/same`` for a source.
    let same: SameRule
    /// Compares the beginning of a file with the format's signature. At least ``signatureBytes``
    /// bytes are given, unless the file is shorter.
    let recognition: @Sendable (_ bytes: Bytes) -> Recognition
    /// See ``ImageDecoding/header(of:)``.
    let header: @Sendable (_ source: Bytes) throws(CodecError) -> ImageHeader
    /// Reads the structure of a whole file. The bytes must outlive the result.
    let open:
        @Sendable (_ source: Bytes, _ header: ImageHeader, _ limits: CodecLimits)
            throws(CodecError) -> any ImageDecoding
    /// The possible headers of a file, given its beginning.
    let outlook:
        @Sendable (_ header: ImageHeader, _ beginning: Bytes) throws(CodecError) ->
            HeaderOutlook
    let memory: DecodingMemory
    /// Whether the decoder makes the sizes of ``DecodingScale`` for less than the whole picture.
    let decodesAtScales: Bool
    /// Nil for a format that is only decoded.
    let encoder: ImageEncoder?
    /// Makes the animations of ``Recipe/Encoding/same``; nil for a format without animations.
    let animationEncoder: AnimationEncoder?
    /// The decoder of single frames; nil for a format without one.
    let animations: (any AnimationDecoding.Type)?

    /// `open` is the initialiser of the type that decodes the format, `outlook` only for formats
    /// with metadata after the header.
    init<Source: ImageDecoding>(
        decoder: @autoclosure @escaping @Sendable () -> String, same: SameRule,
        recognition: @escaping @Sendable (Bytes) -> Recognition,
        open: @escaping @Sendable (Bytes, ImageHeader, CodecLimits) throws(CodecError) -> Source,
        outlook: @escaping @Sendable (ImageHeader, Bytes) throws(CodecError) -> HeaderOutlook = {
            header, _ in HeaderOutlook(headers: [header], isFinal: true)
        },
        memory: DecodingMemory = .decoded(), decodesAtScales: Bool = false,
        encoder: ImageEncoder? = nil, animationEncoder: AnimationEncoder? = nil
    ) {
        readDecoder = decoder
        self.same = same
        self.recognition = recognition
        header = { source throws(CodecError) in try Source.header(of: source) }
        self.open = { source, header, limits throws(CodecError) in
            try open(source, header, limits)
        }
        self.outlook = outlook
        self.memory = memory
        self.decodesAtScales = decodesAtScales
        self.encoder = encoder
        self.animationEncoder = animationEncoder
        animations = Source.self as? any AnimationDecoding.Type
    }
}

/// The possible headers of a file with an unknown rest.
struct HeaderOutlook {
    /// Every header that the file may turn out to have, as far as the memory differs; one or more.
    let headers: [ImageHeader]
    /// Whether nothing that follows changes the estimates.
    let isFinal: Bool
}
