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
    /// - Throws: what `lookUp` throws, and when libcurl cannot be loaded, which tells the key of a URL
    ///   that is not written as keys are.
    func find<Value>(_ lookUp: (String) throws -> Value?) throws -> Value? {
        if let value = try lookUp(text) { return value }
        guard let key = try canonicalKey, key != text else { return nil }
        return try lookUp(key)
    }

    /// Looks the text up as ``find(_:)`` does, and else as the URL of an image whose key is another text.
    ///
    /// - Throws: what `lookUp` throws, and when the cache cannot be read.
    func find<Value>(
        in catalog: CacheCatalog, _ lookUp: (String) throws -> Value?
    ) throws -> Value? {
        if let value = try find(lookUp) { return value }
        guard let url = try canonicalKey, let key = try catalog.key(ofURL: url) else { return nil }
        return try lookUp(key)
    }

    /// How what the text names failed, by its key or else by its URL.
    func failure(in catalog: CacheCatalog) throws -> FailureRecord? {
        if let failure = try find(catalog.failure(of:)) { return failure }
        return try canonicalKey.flatMap { try catalog.failure(ofURL: $0) }
    }

    /// The key of the URL that the text is; nil where it is none.
    var canonicalKey: String? {
        get throws(CommandFailure) {
            do throws(URLParsingError) {
                return try URLParser().parse(text.utf8).withoutCredentials.text
            } catch {
                switch error {
                case .invalid: return nil
                case .missingLibrary(let missing):
                    throw .unusable(missing.description, hint: missing.hint)
                }
            }
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
