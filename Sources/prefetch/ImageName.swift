import CacheStorage
import PrefetchModel
import URLParsing

/// What the user calls a cached image: its URL, or its cache key.
struct ImageName {
    let text: String

    init(_ text: String) {
        self.text = text
    }

    /// For messages.
    var shown: String { RedactedURL(text).description }

    /// Looks the text up as a key as it is, which may be one given by the field `key` of a manifest,
    /// and else as the key of the URL that it is.
    ///
    /// - Parameter lookUp: returns nil for a key that is not known.
    /// - Returns: nil when neither is known.
    /// - Throws: what `lookUp` throws.
    func find<Value>(_ lookUp: (String) throws -> Value?) throws -> Value? {
        if let value = try lookUp(text) { return value }
        guard let key = canonicalKey, key != text else { return nil }
        return try lookUp(key)
    }

    /// Looks the text up as ``find(_:)`` does, and else as the URL of an image whose key is another text.
    ///
    /// - Throws: what `lookUp` throws, and when the cache cannot be read.
    func find<Value>(
        in catalog: CacheCatalog, _ lookUp: (String) throws -> Value?
    ) throws -> Value? {
        if let value = try find(lookUp) { return value }
        guard let url = canonicalKey, let key = try catalog.key(ofURL: url) else { return nil }
        return try lookUp(key)
    }

    /// How what the text names failed, by its key or else by its URL.
    func failure(in catalog: CacheCatalog) throws -> FailureRecord? {
        if let failure = try find(catalog.failure(of:)) { return failure }
        return try canonicalKey.flatMap { try catalog.failure(ofURL: $0) }
    }

    private var canonicalKey: String? {
        do throws(EntryBatch.Problem) {
            return try URLParser().parse(text.utf8).withoutCredentials.text
        } catch {
            return nil
        }
    }

    var isNotInTheCache: CommandFailure {
        CommandFailure(exitStatus: 1, message: "\(shown): is not in the cache")
    }
}

extension CacheOptions {
    /// Opens the cache for reading what it says of an image.
    ///
    /// - Throws: with exit status 1 where there is no cache.
    func catalogOfImages() throws -> CacheCatalog {
        try catalog(missingStatus: 1)
    }
}
