package import PrefetchModel
internal import SQLite

/// Removes images from a cache, or estimates a removal. For one thread.
package protocol ImageRemoving: AnyObject {
    /// The totals so far. They include files still being removed only after ``finish()``.
    var totals: RemovalTotals { get }

    var database: CacheDatabase { get }

    /// The disk usage of the content files without the removed ones.
    var usage: DiskUsage { get throws(StorageError) }

    /// The variants to remove; nil for whole images.
    var variant: VariantSelector? { get }

    /// Removes the selected variants of images, at most one batch, without duplicates. Returns for
    /// each image whether any of it was removed.
    func remove(
        _ batch: [RemovalCandidate], only selector: VariantSelector?
    ) throws(StorageError) -> [Bool]

    /// Removes variants of images by identifier. Some may no longer exist. At most
    /// ``RemovalCandidate/largestBatch``.
    func remove(images ids: [Int64], only selector: VariantSelector?) throws(StorageError)

    /// Removes old failures, hosts, runs and partial downloads that are not in force at `now`.
    func removeHistory(before time: Timestamp, at now: Timestamp) throws(StorageError)

    /// Removes a failure without an image, unless a variant is selected. Returns whether any.
    func removeFailure(key: String) throws(StorageError) -> Bool

    /// Removes the selected failures of URLs without an image. Call after removing images.
    func removeFailures(where isWanted: (FailureRecord) -> Bool) throws(StorageError)

    func finish() throws(StorageError)
}

extension ImageRemoving {
    package func remove(_ batch: [RemovalCandidate]) throws(StorageError) -> [Bool] {
        try remove(batch, only: variant)
    }

    /// Finds an image by its key; with a URL, only if the image is that URL's.
    package func candidate(
        key: String, of url: RequestURL? = nil
    ) throws(StorageError) -> RemovalCandidate? {
        let candidate = try RemovalCandidate.find(key: key, in: database)
        guard let candidate, let url else { return candidate }
        let stored = try database.read("looking up") { database in
            try database.first(
                "SELECT url, coalesce(listed_url, url) FROM resource WHERE id = ?",
                .integer(candidate.id)
            ) { StoredURLs(requested: try $0.text(0), listed: try $0.text(1)) }
        }
        return stored?.areOfImage(at: url) == true ? candidate : nil
    }

    /// Finds an image by its URL without user information, for images with another text as key.
    package func candidate(url: String) throws(StorageError) -> RemovalCandidate? {
        let key = try database.read("looking up") { try CacheCatalog.key(ofURL: url, in: $0) }
        return try key.flatMap { key throws(StorageError) in try candidate(key: key) }
    }

    /// Removes the selected images and reports the totals after each batch.
    package func removeAll(
        where isWanted: (RemovalCandidate) -> Bool, _ report: (RemovalTotals) -> Void
    ) throws(StorageError) {
        var last: RemovalCandidate?
        while true {
            let candidates = try RemovalCandidate.next(after: last, in: database)
            guard !candidates.isEmpty else { return }
            last = candidates.last
            _ = try remove(candidates.filter(isWanted))
            report(totals)
        }
    }
}

package struct RemovalCandidate: Sendable {
    /// Images read and removed together: one or two seconds of work.
    package static let batchSize = 65_536

    /// The batch size where only identifiers are in memory. Index pages are written once a batch.
    /// Removing 500,000 of a million images took 9.8 s of CPU and 134 MB, twice this size 10.0 s
    /// and 162 MB, and 65,536 candidates 12.9 s and 167 MB (docs/benchmarks.md).
    static let largestBatch = 131_072

    static func batchSize(of selector: VariantSelector?) -> Int {
        selector == nil ? largestBatch : batchSize
    }

    let id: Int64
    package let key: String
    /// Scheme, host and port.
    package let host: String
    package let hasFailed: Bool

    private static let columns = """
        id, key, host, EXISTS (SELECT 1 FROM failure WHERE failure.key = resource.key)
        """

    private init(_ row: borrowing Statement) throws {
        id = try row.integer(0)
        key = try row.text(1)
        host = try row.text(2)
        hasFailed = try row.integer(3) != 0
    }

    static func find(
        key: String, in database: CacheDatabase
    ) throws(StorageError) -> RemovalCandidate? {
        try database.read("looking up") { database in
            try database.first("SELECT \(columns) FROM resource WHERE key = ?", .text(key)) {
                try RemovalCandidate($0)
            }
        }
    }

    /// Returns the candidates that still exist, in the order of the identifiers.
    static func find(
        ids: some Sequence<Int64>, in database: CacheDatabase
    ) throws(StorageError) -> [RemovalCandidate] {
        try database.read("looking up") { database in
            let statement = try database.prepare("SELECT \(columns) FROM resource WHERE id = ?")
            return try ids.compactMap { id in
                try statement.first([.integer(id)]) { try RemovalCandidate($0) }
            }
        }
    }

    static func next(
        after last: RemovalCandidate?, in database: CacheDatabase
    ) throws(StorageError) -> [RemovalCandidate] {
        try database.read("looking for images") { database in
            try database.all(
                "SELECT \(columns) FROM resource WHERE id > ? ORDER BY id LIMIT ?",
                .integer(last?.id ?? .min), .init(batchSize)
            ) { try RemovalCandidate($0) }
        }
    }
}

package enum VariantSelector: Hashable, Sendable {
    /// Variants of this name, in use or superseded.
    case name(String)
    case recipe(String)
    /// Superseded variants of images that still have a current one.
    case superseded
    /// Variants not used since a time, by a run or by `get`: either superseded before it, or no run
    /// has used their name since, nor another name with that recipe.
    case unused(since: Timestamp)

    /// An SQL condition over `variant`; `parameter` is the placeholder of ``parameters``.
    func condition(parameter: String) -> String {
        switch self {
        case .name: "name = (SELECT id FROM variant_name WHERE variant_name.name = \(parameter))"
        case .recipe: "recipe = \(parameter)"
        case .superseded:
            """
            superseded <> 0 AND EXISTS (SELECT 1 FROM variant AS other
                WHERE other.resource_id = variant.resource_id AND other.superseded = 0)
            """
        case .unused:
            """
            last_access_at < \(parameter) AND (superseded <> 0
                OR name IN (SELECT id FROM variant_name WHERE used_at < \(parameter))
                    AND recipe NOT IN (
                        SELECT recipe FROM variant_name WHERE used_at >= \(parameter)))
            """
        }
    }

    /// The value of the condition's parameter, if it has one.
    var parameters: [Statement.Value] {
        switch self {
        case .name(let text), .recipe(let text): [.text(text)]
        case .superseded: []
        case .unused(let time): [.init(time)]
        }
    }

    /// The selected variants of a resource, or all; without an image where a row is damaged.
    static func variants(
        _ selector: VariantSelector?, of resource: Int64, in database: Connection
    ) throws -> [(image: StoredImage?, recipe: String)] {
        try database.prepare(
            """
            SELECT sha256, format, width, height, bytes, recipe FROM variant
            WHERE resource_id = ?1\(selector.map { " AND \($0.condition(parameter: "?2"))" } ?? "")
            """
        ).all([.integer(resource)] + (selector?.parameters ?? [])) {
            (image: try $0.storedImage(from: 0), recipe: try $0.text(5))
        }
    }
}
