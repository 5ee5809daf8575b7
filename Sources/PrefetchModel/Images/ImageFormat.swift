/// A format that is recognised by its signature.
package enum ImageFormat: String, CaseIterable, Sendable {
    case jpeg
    case png
    case webp
    case gif
    case bmp
    case tiff
    case avif
    case heif
    case jpegXL = "jxl"
    case jpeg2000 = "jp2"
    case icon = "ico"
    case svg
    case pdf
    case psd
    case dds
    case qoi
    case pnm
    case icns
    case exr

    package var fileExtension: String {
        switch self {
        case .jpeg: "jpg"
        case .heif: "heic"
        default: rawValue
        }
    }

    package var mediaType: String {
        switch self {
        case .heif: "image/heic"
        case .icon: "image/vnd.microsoft.icon"
        case .svg: "image/svg+xml"
        case .pdf: "application/pdf"
        case .psd: "image/vnd.adobe.photoshop"
        case .dds: "image/vnd-ms.dds"
        case .pnm: "image/x-portable-anymap"
        case .icns: "image/x-icns"
        case .exr: "image/x-exr"
        default: "image/\(rawValue)"
        }
    }
}

/// The treatment of sources in a known format that is not decoded.
package enum OtherFormats: String, CaseIterable, Sendable {
    /// The entry fails with ``FailureReason/unsupportedImage``.
    case fail
    /// The source bytes are stored for every variant, if the container is complete.
    case store
    /// The entry is excluded for the reason ``FailureReason/otherFormat``.
    case skip
}
