internal import PrefetchModel

/// The registry: what has an entry here is decoded, everything else by its container alone, see
/// ``PrefetchModel/ImageFormat/container``.
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
        case .tiff, .heif, .jpegXL, .jpeg2000, .svg, .pdf: nil
        }
    }
}

/// What becomes of a source.
enum SourceWay {
    case decoded(any ImageCodec.Type)
    /// By its container alone.
    case asItCame(ImageFormat)
}

/// What becomes of a source of the format that the first bytes announce.
///
/// - Throws: `notAnImage`; `unsupported` or `leftOut` for a format that is not decoded, if it is not to be stored.
func way(
    of source: UnsafeRawBufferPointer, _ others: OtherFormats
) throws(CodecError) -> SourceWay {
    guard !source.isEmpty else { throw .notAnImage("no bytes") }
    guard let format = sniffed(source) else { throw .notAnImage("no image's signature") }
    if let codec = format.codec { return .decoded(codec) }
    switch others {
    case .fail: throw .unsupported("\(format.rawValue) is not decoded")
    case .store: return .asItCame(format)
    case .skip: throw .leftOut(.otherFormat, "\(format.rawValue) is not decoded")
    }
}
