package import PrefetchModel
internal import SQLite

/// Which variants are listed and in what order; by itself all of them, by their keys.
package struct ListSelection: Sendable {
    package enum Order: String, CaseIterable, Sendable {
        case key
        /// The largest first.
        case bytes
        /// What was downloaded first comes first.
        case age
        /// What expires first comes first.
        case expiry
        case host
    }

    /// Whether images are wanted that are fresh, or those that are not; made of a run's rules.
    package struct FreshnessTest: Sendable {
        /// Fresh is what was validated then or earlier…
        let latestValidation: Timestamp
        /// …and expires later than this.
        let latestExpired: Timestamp
        let isFresh: Bool

        package init(latestValidation: Timestamp, latestExpired: Timestamp, isFresh: Bool) {
            self.latestValidation = latestValidation
            self.latestExpired = latestExpired
            self.isFresh = isFresh
        }

        /// Whether it holds of a copy.
        package func holds(validatedAt: Timestamp, expiresAt: Timestamp) -> Bool {
            // As numbers: the comparison of timestamps is a call of another module, a million times.
            let isFreshNow =
                validatedAt.milliseconds <= latestValidation.milliseconds
                && expiresAt.milliseconds > latestExpired.milliseconds
            return isFreshNow == isFresh
        }
    }

    /// Of any of them; of all when there is none.
    package var hosts: [HostName] = []
    /// In any of them; in all when there is none.
    package var formats: [ImageFormat] = []
    /// Of the content file, both inclusive.
    package var minimumBytes: ByteCount?
    package var maximumBytes: ByteCount?
    /// When the body arrived; then is not included.
    package var fetchedBefore: Timestamp?
    package var fetchedAfter: Timestamp?
    /// All have to hold.
    package var freshness: [FreshnessTest] = []
    package var variant: VariantSelector?
    package var order = Order.key
    package var isReversed = false
    /// So many of them, the first by their order; nil for all.
    package var limit: Int?

    package init() {}

    private var isFiltered: Bool {
        !hosts.isEmpty || !formats.isEmpty || minimumBytes != nil || maximumBytes != nil
            || fetchedBefore != nil || fetchedAfter != nil || !freshness.isEmpty || variant != nil
    }

    /// Whether all variants are listed, by their keys.
    var isEverything: Bool { !isFiltered && order == .key && !isReversed && limit == nil }

    /// The statement that reads these columns of the tables `resource` and `variant`.
    func statement(
        reading columns: String, in database: Connection
    ) throws -> Statement {
        let (conditions, values) = conditions
        // By their keys, all come from an index, and the first ones at once. Anything else looks at every
        // row: in the order of the tables, by which pages are read once, and not in that of an index, which
        // SQLite prefers as soon as something is to be sorted.
        let source =
            isFiltered || order != .key
            ? "resource NOT INDEXED CROSS JOIN variant" : "resource JOIN variant"
        let statement = try Statement(
            database,
            sql: """
                SELECT \(columns) FROM \(source) ON id = resource_id
                \(conditions.isEmpty ? "" : "WHERE \(conditions.joined(separator: " AND "))")
                ORDER BY \(sorting) LIMIT ?
                """)
        for (index, value) in (values + [.init(limit ?? -1)]).enumerated() {
            try statement.bind(value, at: Int32(index + 1))
        }
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

    /// What the rows have to be; the values are those of the parameters in the texts, in their order.
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
            add(variant.condition(parameter: "?"), [variant.parameter].compactMap(\.self))
        }
        return (texts, values)
    }
}

extension HostName {
    /// The condition that ``matches(origin:)`` is, of the column `host`, in whose origins names are in
    /// lower case and have these schemes.
    fileprivate var condition: (text: String, values: [Statement.Value]) {
        var values: [Statement.Value] = [.text(text)]
        var conditions = ["host = ?"]
        for scheme in ["http", "https"] {
            let origin = "\(scheme)://\(text)"
            conditions.append("host = ?")
            values.append(.text(origin))
            // A port, and not the rest of an IPv6 address. What follows a colon is `;`.
            guard text.hasPrefix("[") == text.hasSuffix("]") else { continue }
            conditions.append("host > ? AND host < ? AND substr(host, ?) NOT GLOB '*[^0-9]*'")
            values += [
                .text(origin + ":"), .text(origin + ";"), .init(origin.unicodeScalars.count + 2),
            ]
        }
        return (conditions.joined(separator: " OR "), values)
    }
}
