internal import PrefetchModel

/// One decoded format: its facts, and how its files are read.
///
/// Each format declares its value in its own folder and has one line in
/// ``PrefetchModel/ImageFormat/codec``. A codec has no state; any thread may use it.
struct ImageCodec: Sendable {
    /// Name and version of the decoder, for example `png/1.6.39`. Stored failures apply to this
    /// decoder only. So once more files are accepted, `-2` and so on follow a library's version.
    ///
    /// Evaluated on demand: the version of libavif is known only once the library is loaded, which
    /// takes longer than a run over fresh images.
    let decoder: @Sendable () -> String
    /// The meaning of ``Recipe/Encoding/same`` for a source.
    let same: SameRule
    let source: any ImageDecoding.Type
    /// Nil for a format that is only decoded.
    var encoder: ImageEncoder?
    /// Makes the animations of ``Recipe/Encoding/same``; nil for a format without animations.
    var animationEncoder: AnimationEncoder?

    /// The decoder of single frames; nil for a format without one.
    var animations: (any AnimationDecoding.Type)? { source as? any AnimationDecoding.Type }

    /// Reads the structure of a whole file. The bytes must outlive the result.
    func open(
        _ bytes: UnsafeRawBufferPointer, _ header: ImageHeader, _ limits: CodecLimits
    ) throws(CodecError) -> any ImageDecoding {
        try source.init(bytes, header: header, limits: limits)
    }
}

/// The possible headers of a file with an unknown rest.
struct HeaderOutlook {
    /// Every header that the file may turn out to have, as far as the memory differs; one or more.
    let headers: [ImageHeader]
    /// Whether nothing that follows changes the estimates.
    let isFinal: Bool
}
