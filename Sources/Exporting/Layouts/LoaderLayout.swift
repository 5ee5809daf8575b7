internal import Hashing
import PrefetchModel

/// The disk cache of a loader that names a file by the digest of its key: SDWebImage
/// (`SDDiskCache`), Kingfisher (`DiskStorage`) or Nuke (`DataCache`).
///
/// The key of the image as fetched is the URL as the app writes it, in Foundation's spelling
/// (``URLParts/foundationText(of:normalized:)``). A loader that transforms images
/// adds the transformer's identifier.
struct LoaderLayout: LayoutMaking {
    enum KeyStyle: Sendable {
        /// SDWebImage's `SDTransformedKeyForKey`: before the path's extension, after a hyphen.
        case beforeExtension
        /// Kingfisher's `computedKey(with:)`: after an at sign.
        case afterAtSign
        /// Nuke's `makeDataCacheKey`: appended.
        case appended
    }

    enum Time: Sendable {
        /// SDWebImage removes files that were neither read nor changed for a week.
        case present
        /// Kingfisher takes the modification time for the expiry.
        case expiry
        case download
    }

    let digest: NameDigest
    let style: KeyStyle
    let time: Time
    var keepsExtension = false
    /// By the names of variants.
    let identifiers: [String: String]

    static func sdwebimage(_ identifiers: [String: String]) -> LoaderLayout {
        LoaderLayout(
            digest: .md5, style: .beforeExtension, time: .present, keepsExtension: true,
            identifiers: identifiers)
    }

    func files(of rows: [ExportPlan.Row], missing: [MissingEntry]) -> [PlannedFile] {
        imageFiles(of: rows) { image in
            switch time {
            case .present: .present
            case .expiry: .fixed(min(image.expiresAt, .farFuture))
            case .download: .fixed(image.fetchedAt)
            }
        }
    }

    func path(of image: ExportedImage) -> String { path(ofKey: key(of: image)) }

    func path(ofKey key: String) -> String {
        let name = digest.hexadecimal(of: key)
        guard keepsExtension, let ending = LoaderLayout.pathExtension(ofKey: key) else {
            return name
        }
        return "\(name).\(ending)"
    }

    private func key(of image: ExportedImage) -> String {
        let url = URLParts.foundationText(of: image.url, normalized: image.normalizedURL)
        guard let identifier = identifiers[image.variant] else { return url }
        switch style {
        case .beforeExtension: return LoaderLayout.transformed(url, identifier)
        case .afterAtSign: return "\(url)@\(identifier)"
        case .appended: return url + identifier
        }
    }

    private static func transformed(_ url: String, _ identifier: String) -> String {
        let parts = URLParts(url)
        let path = parts.path.percentDecoded
        let start = path.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
        let (stem, ending) = path[start...].stemAndExtension
        guard let ending else { return "\(url)-\(identifier)" }
        let changed = path[..<start] + stem + Array("-\(identifier).".utf8) + ending
        // `pchar` and slashes stay (RFC 3986 §3.3).
        return String(url[..<parts.path.startIndex])
            + changed.percentEncoded(except: "-._~!$&'()*+,;=:@/") + url[parts.path.endIndex...]
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
