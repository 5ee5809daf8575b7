internal import PrefetchModel

/// The registry: what has an entry here is decoded, everything else is known by its signature alone.
extension ImageFormat {
    /// Nil for a format that is not decoded.
    var codec: (any ImageCodec.Type)? {
        switch self {
        case .jpeg: JPEGCodec.self
        case .png: PNGCodec.self
        case .bmp: BMPCodec.self
        case .webp:
            #if WebP
                WebPCodec.self
            #else
                nil
            #endif
        case .gif:
            #if GIF
                GIFCodec.self
            #else
                nil
            #endif
        case .avif:
            #if AVIF
                AVIFCodec.self
            #else
                nil
            #endif
        case .icon: ICOCodec.self
        case .tiff, .heif, .jpegXL, .jpeg2000: nil
        }
    }
}

/// The codec of the format that the first bytes announce.
///
/// - Throws: `notAnImage`, `unsupported`.
func codec(of source: UnsafeRawBufferPointer) throws(CodecError) -> any ImageCodec.Type {
    guard !source.isEmpty else { throw .notAnImage("no bytes") }
    guard let format = sniffed(source) else { throw .notAnImage("no image's signature") }
    guard let codec = format.codec else {
        throw .unsupported("\(format.rawValue) is not decoded")
    }
    return codec
}
