package import CacheStorage
package import PrefetchModel

/// Opens lists by their URLs. One thread at a time calls it.
package protocol ListOpening: Sendable {
    /// Opens a list.
    ///
    /// - Parameters:
    ///   - request: names the list.
    ///   - check: returns why a new file is no list, which then replaces nothing.
    /// - Returns: the list, at its beginning.
    /// - Throws: a failure without any copy to use in its place.
    func open(
        _ request: ListRequest, check: (ListFile) -> Failure?
    ) throws(Failure) -> OpenedList

    /// Called after the last list.
    func finish()

    /// The lists so far; nil if lists are never requested. Called from any thread.
    var counts: ListCounts? { get }
}

/// The request for a list.
package struct ListRequest: Sendable {
    /// May have credentials.
    package let url: RequestURL
    /// The fields for its host.
    package let fields: [HeaderField]
    /// The addresses that it may have; nil for the rule of listed URLs.
    package let rule: AddressRule?

    package init(_ url: RequestURL, fields: [HeaderField] = [], by rule: AddressRule? = nil) {
        self.url = url
        self.fields = fields
        self.rule = rule
    }

    /// The URL that names its copy.
    var name: String { url.withoutCredentials.text }
}

/// An open list.
package struct OpenedList: Sendable {
    package enum Source: Sendable {
        case fetched(Duration)
        /// The origin confirmed the copy.
        case notModified(Duration)
        /// The copy, without a request.
        case stored
        /// The copy, since the request failed.
        case copy(Failure)
    }

    package let file: ListFile
    package let source: Source
    /// The rule for the URLs of lists that this one names.
    package let ruleOfSitemaps: AddressRule?
}

/// Opens the lists that runs have stored, for commands that send nothing.
package struct StoredLists: ListOpening {
    /// Nil without a cache.
    private let store: ListStore?

    package init(_ directory: CacheDirectory?) {
        store = directory.map(ListStore.init)
    }

    package func open(
        _ request: ListRequest, check: (ListFile) -> Failure?
    ) throws(Failure) -> OpenedList {
        guard let file = store?.open(request.name) else {
            throw Failure(
                .notSelected, "not in the cache; `prefetch run` without --offline fetches it")
        }
        return OpenedList(file: file, source: .stored, ruleOfSitemaps: nil)
    }

    package func finish() {}

    package var counts: ListCounts? { nil }
}
