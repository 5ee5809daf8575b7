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

    /// The extension of content files, without the dot.
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
        default: "image/\(rawValue)"
        }
    }
}
