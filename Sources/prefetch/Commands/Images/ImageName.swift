import CacheStorage
import PrefetchModel
import URLParsing

/// The URL or cache key that a user gives for a cached image.
struct ImageName {
    let text: String

    init(_ text: String) {
        self.text = text
    }

    /// The text in messages, redacted.
    var shown: String { RedactedURL(text).description }

    /// Looks up the text unchanged, since a manifest's field `key` may have set it, and else the
    /// normalized URL.
    ///
    /// - Parameter lookUp: returns nil for an unknown key.
    /// - Returns: nil if neither key is known.
    /// - Throws: the errors of `lookUp`, and `UserError` if libcurl, which normalizes URLs,
    ///   can't be loaded.
    func find<Value>(_ lookUp: (String) throws -> Value?) throws -> Value? {
        if let value = try lookUp(text) { return value }
        guard let key = try canonicalKey, key != text else { return nil }
        return try lookUp(key)
    }

    /// Looks up the text like ``find(_:)``, and else as the URL of an image with another key.
    ///
    /// - Throws: the errors of `lookUp`, and of reading the cache.
    func find<Value>(
        in catalog: CacheCatalog, _ lookUp: (String) throws -> Value?
    ) throws -> Value? {
        try find(lookUp, keyOfURL: catalog.key(ofURL:))
    }

    /// Looks up the text like ``find(_:)``, and else by the key that `keyOfURL` returns.
    func find<Value>(
        _ lookUp: (String) throws -> Value?, keyOfURL: (String) throws -> String?
    ) throws -> Value? {
        if let value = try find(lookUp) { return value }
        return try canonicalKey.flatMap(keyOfURL).flatMap(lookUp)
    }

    /// The failure of the named image, by its key or else by its URL.
    func failure(in catalog: CacheCatalog) throws -> FailureRecord? {
        if let failure = try find(catalog.failure(of:)) { return failure }
        return try canonicalKey.flatMap { try catalog.failure(ofURL: $0) }
    }

    /// The key of the text's URL; nil if the text isn't a URL.
    var canonicalKey: String? {
        get throws {
            do {
                return try URLParser().parse(text.utf8).withoutCredentials.text
            } catch {
                guard case .invalid = error else { throw error }
                return nil
            }
        }
    }

    var isNotInTheCache: UserError {
        UserError(.incomplete, "\(shown): not in the cache")
    }
}
