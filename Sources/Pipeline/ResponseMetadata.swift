import CacheStorage
import PrefetchModel

/// What a response and its entry contribute to the metadata row.
struct ResponseMetadata: Sendable {
    let key: String
    let location: ResourceLocation
    let response: StoredResponse
    let receivedAt: Timestamp
    let expiresAt: Timestamp
    let attributes: [EntryAttribute]

    init(
        _ entry: PendingEntry, finalURL: String, response: StoredResponse, receivedAt: Timestamp,
        expiresAt: Timestamp
    ) {
        key = entry.key
        location = ResourceLocation(entry, finalURL: finalURL)
        self.response = response
        self.receivedAt = receivedAt
        self.expiresAt = expiresAt
        attributes = entry.extras?.attributes ?? []
    }

    func row(image: StoredImage, recipe: Recipe, source: SourceImage) -> ImageRow {
        ImageRow(
            key: key, url: location.url, finalURL: location.finalURL,
            permanentURL: location.permanentURL, host: location.host, response: response,
            fetchedAt: receivedAt, expiresAt: expiresAt, source: source,
            recipe: recipe, image: image, attributes: attributes)
    }
}

extension ResourceLocation {
    /// Without user information, as all URLs that are stored.
    init(_ entry: PendingEntry, finalURL: String) {
        let url = RequestTarget.withoutUserInformation(entry.url)
        let target = RequestTarget.withoutUserInformation(finalURL)
        self.init(
            url: url, finalURL: target == url ? nil : target,
            permanentURL: entry.progress?.permanentURL, host: RequestTarget.origin(of: url))
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
        // Few URLs have any, and every entry's is looked at several times.
        guard url.withBytes({ $0.contains(UInt8(ascii: "@")) }), let authority = authority(of: url),
            let at = url.utf8[authority].lastIndex(of: UInt8(ascii: "@"))
        else { return url }
        return String(url[..<authority.lowerBound] + url[url.utf8.index(after: at)...])
    }

    /// The URL with the user information of another one of the same origin, if it has none itself.
    static func withUserInformation(of other: String, _ url: String) -> String {
        guard let otherAuthority = authority(of: other),
            let at = other.utf8[otherAuthority].lastIndex(of: UInt8(ascii: "@")),
            let authority = authority(of: url),
            !url.utf8[authority].contains(UInt8(ascii: "@"))
        else { return url }
        let information = other[otherAuthority.lowerBound...at]
        return String(url[..<authority.lowerBound] + information + url[authority.lowerBound...])
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
        let end =
            url.utf8[start...].firstIndex {
                $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#")
            } ?? url.endIndex
        return start..<end
    }
}
