internal import PrefetchModel

extension ImageFormat {
    /// The codec of the format; nil if this build does not decode it. Such sources are handled by
    /// ``PrefetchModel/ImageFormat/container`` alone.
    var codec: ImageCodec? {
        switch self {
        case .jpeg: .jpeg
        case .png: .png
        case .bmp: .bmp
        case .webp: .webP
        case .gif: .gif
        case .avif: .avif
        case .icon: .ico
        case .tiff, .heif, .jpegXL, .jpeg2000:
            SandboxedDecoders.allows(CodecLibrarySet(decoding: self)) ? sandboxedCodec : nil
        default: nil
        }
    }

    /// The codec of a format that is decoded in a worker only, or with `--sandbox off`; nil if this
    /// build does not decode it anywhere.
    var sandboxedCodec: ImageCodec? {
        switch self {
        case .tiff: .tiff
        case .heif: .heif
        case .jpegXL: .jpegXL
        case .jpeg2000: .jpeg2000
        default: nil
        }
    }

    /// The library of such a codec.
    var sandboxedLibrary: SandboxedLibrary? {
        (sandboxedCodec?.source as? any SandboxedSource.Type)?.library
    }

    /// The meaning of ``PrefetchModel/Recipe/Encoding/same``; nil for a format that no build
    /// decodes. A build without a trait may read a cache that another one made.
    var sameRule: SameRule? {
        switch self {
        case .webp: .webP
        case .gif: .gif
        case .avif: .avif
        case .tiff: .tiff
        case .heif: .heif
        case .jpegXL: .jpegXL
        case .jpeg2000: .jpeg2000
        default: codec?.same
        }
    }
}

extension ImageFormat {
    /// Whether headers are read without the decoder's library. The others are read in workers only.
    package var hasOwnReader: Bool { CodecLibrarySet(decoding: self).isEmpty }
}

extension SameRule {
    static let webP = keptUnlessFiner(encodedAs: .webp)
    static let gif = kept(orEncodedAs: .png)
    static let avif = keptUnlessFiner(encodedAs: .avif)
    static let tiff = kept(orEncodedAs: .png)
    static let heif = kept(orEncodedAs: .jpeg)
    static let jpegXL = kept(orEncodedAs: .webp)
    static let jpeg2000 = kept(orEncodedAs: .png)
}

/// Returns the format of the first bytes.
///
/// - Throws: `notAnImage`; `unsupported` or `leftOut` for a format that is not decoded, if the rule
///   refuses it.
func acceptedFormat(
    of source: UnsafeRawBufferPointer, _ others: OtherFormats
) throws(CodecError) -> ImageFormat {
    guard !source.isEmpty else { throw .notAnImage("no bytes") }
    guard let format = sniffed(source) else { throw .notAnImage(foreignContent(source)) }
    if [.avif, .heif].contains(format), let text = HEIFContainer.refusal(of: source) {
        throw .unsupported(text)
    }
    if format.codec == nil, !CodecLibraries.isLeftToWorkers(format) {
        try others.check("\(format.rawValue) is not decoded")
    }
    return format
}

/// The kind of a file that is no image: a page in its place is the most frequent one.
private func foreignContent(_ source: UnsafeRawBufferPointer) -> String {
    let head = String(decoding: source.prefix(1024), as: UTF8.self).lowercased()
    let text = head.drop { $0.isWhitespace || $0 == "\u{FEFF}" }
    guard text.first == "<" else { return "unrecognised file signature" }
    let isPage = ["<!doctype html", "<html", "<head", "<body"].contains(where: text.contains)
    return isPage ? "an HTML page" : "unrecognised file signature"
}

extension OtherFormats {
    /// Returns if a file that is not decoded may be stored.
    ///
    /// - Throws: `unsupported` or `leftOut`, with this reason.
    func check(_ reason: String) throws(CodecError) {
        switch self {
        case .fail: throw .unsupported(reason)
        case .store: return
        case .skip: throw .leftOut(.otherFormat, reason)
        }
    }
}
