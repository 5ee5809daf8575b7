internal import Hashing
import PrefetchModel

/// The key by which an app-side loader stores a variant.
///
/// The key of the image as fetched is the URL as the app writes it. A loader that transforms images
/// adds the transformer's identifier.
struct LoaderKey: Sendable {
    enum Style: Sendable {
        /// SDWebImage's `SDTransformedKeyForKey`: before the path's extension, after a hyphen.
        case beforeExtension
        /// Kingfisher's `computedKey(with:)`: after an at sign.
        case afterAtSign
        /// Nuke's `makeDataCacheKey`: appended.
        case appended
    }

    let style: Style
    let identifiers: [String: String]

    func key(of image: ExportedImage) -> String {
        guard let identifier = identifiers[image.variant] else { return image.url }
        switch style {
        case .beforeExtension: return LoaderKey.transformed(image.url, identifier)
        case .afterAtSign: return "\(image.url)@\(identifier)"
        case .appended: return image.url + identifier
        }
    }

    private static func transformed(_ url: String, _ identifier: String) -> String {
        let parts = URLParts(url)
        let path = parts.path.percentDecoded
        let start = path.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
        let (stem, ending) = path[start...].stemAndExtension
        guard let ending else { return "\(url)-\(identifier)" }
        let changed = path[..<start] + stem + Array("-\(identifier).".utf8) + ending
        return String(url[..<parts.path.startIndex]) + URLParts.encoded(path: Array(changed))
            + url[parts.path.endIndex...]
    }
}

struct DigestName: Sendable {
    let digest: NameDigest
    let key: LoaderKey
    var keepsExtension = false

    func path(of image: ExportedImage) -> String { path(ofKey: key.key(of: image)) }

    func path(ofKey key: String) -> String {
        let name = digest.hexadecimal(of: key)
        guard keepsExtension, let ending = DigestName.pathExtension(ofKey: key) else { return name }
        return "\(name).\(ending)"
    }

    /// SDWebImage's limit, `SD_MAX_FILE_EXTENSION_LENGTH` in `SDDiskCache.m`: `NAME_MAX` less an
    /// MD5 in hexadecimal and a dot, in units of UTF-16.
    private static let maximumExtensionUnits = 222

    /// The extension of the URL's decoded path, without NUL bytes and colons; nil without one.
    private static func pathExtension(ofKey key: String) -> String? {
        let path = URLParts(key).path.percentDecoded
        guard let name = path.split(separator: UInt8(ascii: "/")).last,
            let ending = name.stemAndExtension.extension
        else { return nil }
        let text = String(
            decoding: ending.filter { $0 != 0 && $0 != UInt8(ascii: ":") }, as: UTF8.self)
        guard !text.isEmpty, text.utf16.count <= maximumExtensionUnits else { return nil }
        return text
    }
}
