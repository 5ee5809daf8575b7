import CacheStorage
import PrefetchModel
import Reporting
import Upkeep

extension JSONObject {
    /// A variant as `get` and `list` print it; `name` is the requested name, nil for the current
    /// one.
    init(
        _ item: CacheCatalog.Item, as name: String? = nil, attributes: [EntryAttribute],
        at time: Timestamp
    ) {
        self.init()
        add("key", item.resource.key)
        add("url", item.resource.url)
        add("final_url", item.download.finalURL.map { RedactedURL($0).description })
        add("content_type", item.download.contentType)
        add("redirects", item.download.redirects)
        add("variant", name ?? item.name)
        add("recipe", item.recipe)
        add("format", item.image.format.rawValue)
        add("decoded", item.image.isDecoded)
        add("width", item.image.knownWidth)
        add("height", item.image.knownHeight)
        if let orientation = item.image.remainingOrientation { add("orientation", orientation) }
        add("bytes", item.image.size)
        add("sha256", item.image.digest.description)
        add("source_bytes", item.download.size)
        add("source_format", item.download.format)
        add("fetched_at", item.download.fetchedAt)
        add("expires_at", item.isValidatedAtEveryUse ? nil : item.expiresAt)
        add("fresh", item.standing(at: time) == .fresh)
        add("attributes", JSONObject(attributes))
    }

    /// Attributes by name: text, or an object with the member `base64` for other bytes.
    init(_ attributes: [EntryAttribute]) {
        self.init()
        for attribute in attributes {
            if let text = attribute.text {
                add(attribute.name, text)
            } else {
                var object = JSONObject()
                object.add("base64", base64: attribute.value)
                add(attribute.name, object)
            }
        }
    }
}

extension EntryAttribute {
    /// The value as text, or nil when it is not UTF-8.
    var text: String? { String(validating: value, as: UTF8.self) }
}
