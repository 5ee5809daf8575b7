package import CacheStorage
package import PrefetchModel

/// Opens lists by their URLs. One thread at a time calls it.
package protocol ListOpening: Sendable {
    /// Opens a list at its beginning. If the list cannot be fetched, its copy is opened; without a
    /// copy this fails.
    ///
    /// `allowsEmpty` says whether a list without an entry replaces its copy. `count` counts the
    /// entries of a list, up to a number, and throws for a file that is not a list.
    func open(
        _ request: ListRequest, allowsEmpty: Bool,
        count: (ListFile, _ most: Int) throws(Failure) -> Int
    ) throws(MissingList) -> OpenedList

    /// Tells which lists are opened next, in this order: their requests need not wait for
    /// one another.
    func expect(_ requests: [ListRequest])

    /// Ends the running transfers, and lets every later list fail. Any thread may call it.
    func cancel()

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

/// A list that cannot be opened.
package struct MissingList: Error {
    package let failure: Failure
    /// Whether the last run could not open it either.
    package let isKnown: Bool
    /// For the decision about another attempt.
    let httpStatus: Int?
    let retryAfter: Duration?
    /// Whether the run's deadline came first.
    package var isLate: Bool { failure == MissingList.late }

    static let late = Failure(.notSelected, "not complete at the run's deadline")

    package init(
        _ failure: Failure, isKnown: Bool = false, httpStatus: Int? = nil,
        retryAfter: Duration? = nil
    ) {
        self.failure = failure
        self.isKnown = isKnown
        self.httpStatus = httpStatus
        self.retryAfter = retryAfter
    }
}

/// An open list.
package struct OpenedList: Sendable {
    package enum ListSource: Sendable {
        case fetched(Duration)
        /// The origin confirmed the copy.
        case notModified(Duration)
        /// The copy, without a request.
        case stored
        /// The copy, since the request failed.
        case copy(Failure)
    }

    package let file: ListFile
    package let source: ListSource
    /// Whether its requests have begun to fail, or to succeed again.
    package let isNews: Bool
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
        _ request: ListRequest, allowsEmpty: Bool,
        count: (ListFile, _ most: Int) throws(Failure) -> Int
    ) throws(MissingList) -> OpenedList {
        guard let file = store?.open(request.name) else {
            throw MissingList(
                Failure(
                    .notSelected, "not in the cache; `prefetch run` without --offline fetches it"))
        }
        return OpenedList(file: file, source: .stored, isNews: false, ruleOfSitemaps: nil)
    }

    package func expect(_ requests: [ListRequest]) {}
    package func cancel() {}

    package func finish() {}

    package var counts: ListCounts? { nil }
}
