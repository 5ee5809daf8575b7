package import PrefetchModel
internal import SQLite

/// The variants to list, and their order. By default all, ordered by key.
package struct ListSelection: Sendable {
    package enum Order: String, CaseIterable, Sendable {
        case key
        /// Largest first.
        case bytes
        /// Earliest download first.
        case age
        /// Earliest expiry first.
        case expiry
        case host
    }

    package struct FreshnessTest: Sendable {
        /// A fresh image was validated at this time or earlier…
        let latestValidation: Timestamp
        /// …and expires later than this.
        let latestExpired: Timestamp
        let isFresh: Bool

        package init(latestValidation: Timestamp, latestExpired: Timestamp, isFresh: Bool) {
            self.latestValidation = latestValidation
            self.latestExpired = latestExpired
            self.isFresh = isFresh
        }

        package func holds(validatedAt: Timestamp, expiresAt: Timestamp) -> Bool {
            // Comparing timestamps is a cross-module call, which adds up over a million rows.
            let isFreshNow =
                validatedAt.milliseconds <= latestValidation.milliseconds
                && expiresAt.milliseconds > latestExpired.milliseconds
            return isFreshNow == isFresh
        }
    }

    /// Any of these hosts; all if empty.
    package var hosts: [HostName] = []
    /// Any of these formats; all if empty.
    package var formats: [ImageFormat] = []
    /// Limits of the content file's size, inclusive.
    package var minimumBytes: ByteCount?
    package var maximumBytes: ByteCount?
    /// Limits of the time when the body arrived, exclusive.
    package var fetchedBefore: Timestamp?
    package var fetchedAfter: Timestamp?
    /// All of these tests must pass.
    package var freshness: [FreshnessTest] = []
    package var variant: VariantSelector?
    package var order = Order.key
    package var isReversed = false
    /// The number of variants to list, from the start of the order; nil for all.
    package var limit: Int?

    package init() {}

    private var isFiltered: Bool {
        !hosts.isEmpty || !formats.isEmpty || minimumBytes != nil || maximumBytes != nil
            || fetchedBefore != nil || fetchedAfter != nil || !freshness.isEmpty || variant != nil
    }

    var isEverything: Bool { !isFiltered && order == .key && !isReversed && limit == nil }

    /// The statement that reads these columns of the tables `resource` and `variant`.
    func statement(reading columns: String, in database: Connection) throws -> Statement {
        let (conditions, values) = conditions
        // Ordered by key, rows are read from an index, the first ones immediately. Any other
        // selection reads every row, in table order so that each page is read once. SQLite would
        // prefer an index as soon as it must sort.
        let source =
            isFiltered || order != .key
            ? "resource NOT INDEXED CROSS JOIN variant" : "resource JOIN variant"
        let statement = try database.prepare(
            """
            SELECT \(columns) FROM \(source) ON id = resource_id
            \(conditions.isEmpty ? "" : "WHERE \(conditions.joined(separator: " AND "))")
            ORDER BY \(sorting) LIMIT ?
            """)
        try statement.bind(values + [.init(limit ?? -1)])
        return statement
    }

    private var sorting: String {
        let (up, down) = isReversed ? (" DESC", "") : ("", " DESC")
        let first =
            switch order {
            case .key: ""
            case .bytes: "bytes\(down), "
            case .age: "fetched_at\(up), "
            case .expiry: "expires_at\(up), "
            case .host: "host\(up), "
            }
        return "\(first)key\(up), recipe\(up)"
    }

    private var conditions: (texts: [String], values: [Statement.Value]) {
        var texts: [String] = []
        var values: [Statement.Value] = []
        func add(_ text: String, _ new: [Statement.Value]) {
            texts.append("(\(text))")
            values += new
        }
        if !hosts.isEmpty {
            let conditions = hosts.map(\.condition)
            add(conditions.map(\.text).joined(separator: " OR "), conditions.flatMap(\.values))
        }
        if !formats.isEmpty {
            let parameters = Array(repeating: "?", count: formats.count).joined(separator: ", ")
            add("format IN (\(parameters))", formats.map { .text($0.rawValue) })
        }
        if let minimumBytes { add("bytes >= ?", [.init(minimumBytes.bytes)]) }
        if let maximumBytes { add("bytes <= ?", [.init(maximumBytes.bytes)]) }
        if let fetchedBefore { add("fetched_at < ?", [.init(fetchedBefore)]) }
        if let fetchedAfter { add("fetched_at > ?", [.init(fetchedAfter)]) }
        for test in freshness {
            add(
                "(validated_at <= ? AND expires_at > ?) = ?",
                [
                    .init(test.latestValidation), .init(test.latestExpired),
                    .integer(test.isFresh ? 1 : 0),
                ])
        }
        if let variant {
            add(variant.condition(parameter: "?"), variant.parameters)
        }
        return (texts, values)
    }
}

extension HostName {
    /// ``matches(origin:)`` in SQL: origins have lower case names and one of the schemes below.
    fileprivate var condition: (text: String, values: [Statement.Value]) {
        var values: [Statement.Value] = [.text(text)]
        var conditions = ["host = ?"]
        for scheme in ["http", "https"] {
            let origin = "\(scheme)://\(text)"
            conditions.append("host = ?")
            values.append(.text(origin))
            // Matches a port, not the rest of an IPv6 address. The character after `:` is `;`.
            guard text.hasPrefix("[") == text.hasSuffix("]") else { continue }
            conditions.append("host > ? AND host < ? AND substr(host, ?) NOT GLOB '*[^0-9]*'")
            values += [
                .text(origin + ":"), .text(origin + ";"), .init(origin.unicodeScalars.count + 2),
            ]
        }
        return (conditions.joined(separator: " OR "), values)
    }
}
