import ArgumentParser
import CacheStorage
import PrefetchModel
import Reporting
import URLParsing
import Upkeep

/// The URL or cache key that a user gives for a cached image.
struct ImageName: ExpressibleByArgument {
    let text: String
    /// Parameters that keys leave out.
    private var ignoredQuery = IgnoredQuery.none

    init(argument: String) { text = argument }

    /// The name of the image with the key that a run with the same flag makes.
    func leavingOut(_ keys: Flags<KeyFlags>) -> ImageName {
        var name = self
        name.ignoredQuery = keys.ignoredQuery ?? .none
        return name
    }

    var shown: String { RedactedURL(text).description }

    /// Looks up the text unchanged, since a manifest's field `key` may have set it, else the key of
    /// the normalized URL, and else the key that `keyOfURL` returns for that URL.
    ///
    /// - Returns: nil if `lookUp` returns nil for each key.
    /// - Throws: the errors of the closures, and `UserError` if libcurl, which normalizes URLs,
    ///   can't be loaded.
    func find<Value>(
        _ lookUp: (String) throws -> Value?, keyOfURL: (String) throws -> String? = { _ in nil }
    ) throws -> Value? {
        if let value = try lookUp(text) { return value }
        guard let url = try self.url else { return nil }
        let key = key(of: url)
        if key != text, let value = try lookUp(key) { return value }
        return try keyOfURL(url).flatMap(lookUp)
    }

    /// Looks up the text like ``find(_:keyOfURL:)``.
    ///
    /// - Throws: also `UserError` with status 1 for an image that is not in the cache.
    func found<Value>(
        _ lookUp: (String) throws -> Value?, keyOfURL: (String) throws -> String?
    ) throws -> Value {
        if let value = try find(lookUp, keyOfURL: keyOfURL) { return value }
        throw UserError(.incomplete, "\(shown): not in the cache")
    }

    /// The failure of the named image, by its key or else by its URL.
    func failure(in catalog: CacheCatalog) throws -> FailureRecord? {
        if let failure = try find(catalog.failure(of:)) { return failure }
        return try url.flatMap { try catalog.failure(ofURL: $0) }
    }

    /// The normalized URL without user information; nil if the text isn't a URL.
    var url: String? {
        get throws {
            do {
                let parser = try URLParser(baseURL: nil, allowing: [.data, .file])
                return try parser.parse(text.utf8).withoutCredentials.text
            } catch {
                guard case .invalid = error else { throw error }
                return nil
            }
        }
    }

    /// The key of the text's URL; nil if the text isn't a URL.
    var canonicalKey: String? { get throws { try url.map { key(of: $0) } } }

    private func key(of url: String) -> String {
        ignoredQuery.removed(from: url.utf8).map { String(decoding: $0, as: UTF8.self) } ?? url
    }
}

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
