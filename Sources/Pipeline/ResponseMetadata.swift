import CacheStorage
import Codecs
import HTTPSemantics
import PrefetchModel
import Transfers

/// What a response and its entry contribute to the metadata row.
struct ResponseMetadata: Sendable {
    let key: String
    /// Without user information, as all URLs that are stored.
    let url: String
    let finalURL: String
    let fields: [HeaderField]
    let receivedAt: Timestamp
    let expiresAt: Timestamp

    init(key: String, url: String, finalURL: String, response: Response, expiresAt: Timestamp) {
        self.key = key
        self.url = RequestTarget.withoutUserInformation(url)
        self.finalURL = RequestTarget.withoutUserInformation(finalURL)
        fields = response.fields
        receivedAt = response.receivedAt
        self.expiresAt = expiresAt
    }

    func row(
        image: StoredImage, recipe: Recipe, header: ImageHeader, sourceSize: Int,
        sourceDigest: ContentDigest
    ) -> ImageRow {
        let cacheControl = fields.values(of: "cache-control").joined(separator: ", ")
        let vary = fields.values(of: "vary").joined(separator: ", ")
        return ImageRow(
            key: key, url: url, finalURL: finalURL == url ? nil : finalURL,
            host: RequestTarget.origin(of: url), entityTag: fields.first("etag"),
            lastModified: fields.first("last-modified"),
            cacheControl: cacheControl.isEmpty ? nil : cacheControl,
            vary: vary.isEmpty ? nil : vary,
            date: fields.first("date").flatMap(HTTPDate.parse), fetchedAt: receivedAt,
            expiresAt: expiresAt, sourceSize: ByteCount(sourceSize), sourceFormat: header.format,
            sourceDigest: sourceDigest, sourceWidthInPixels: header.widthInPixels,
            sourceHeightInPixels: header.heightInPixels, recipe: recipe, image: image)
    }
}

/// Takes canonical http and https URLs apart; they come from libcurl's parser, so that plain
/// searches for the delimiters are exact.
enum RequestTarget {
    /// Scheme, host and port, without user information: `https://example.com:8443`.
    static func origin(of url: String) -> String {
        let plain = withoutUserInformation(url)
        guard let authority = authority(of: plain) else { return plain }
        return String(plain[..<authority.upperBound])
    }

    static func withoutUserInformation(_ url: String) -> String {
        guard let authority = authority(of: url),
            let at = url.utf8[authority].lastIndex(of: UInt8(ascii: "@"))
        else { return url }
        return String(url[..<authority.lowerBound] + url[url.utf8.index(after: at)...])
    }

    static func withoutFragment(_ url: String) -> String {
        guard let hash = url.utf8.firstIndex(of: UInt8(ascii: "#")) else { return url }
        return String(url[..<hash])
    }

    /// In lower case, without the colon.
    static func scheme(of url: String) -> String {
        String(url.prefix { $0 != ":" }).lowercased()
    }

    private static func authority(of url: String) -> Range<String.Index>? {
        guard let colon = url.utf8.firstIndex(of: UInt8(ascii: ":")),
            let start = url.utf8.index(colon, offsetBy: 3, limitedBy: url.utf8.endIndex)
        else { return nil }
        let delimiters = [UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#")]
        let end = url.utf8[start...].firstIndex(where: delimiters.contains) ?? url.endIndex
        return start..<end
    }
}
