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
        _ entry: PendingEntry, finalURL: RequestURL, response: StoredResponse,
        receivedAt: Timestamp, expiresAt: Timestamp
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
            permanentURL: location.permanentURL, redirects: location.redirects, host: location.host,
            response: response, fetchedAt: receivedAt, expiresAt: expiresAt, source: source,
            recipe: recipe, image: image, attributes: attributes)
    }
}

extension ResourceLocation {
    /// Without user information, as all URLs that are stored.
    init(_ entry: PendingEntry, finalURL: RequestURL) {
        let url = entry.url.withoutCredentials
        let target = finalURL.withoutCredentials
        self.init(
            url: url.text, finalURL: target == url ? nil : target.text,
            permanentURL: entry.progress?.permanentURL?.text,
            redirects: entry.progress?.redirects ?? 0, host: url.origin)
    }
}
