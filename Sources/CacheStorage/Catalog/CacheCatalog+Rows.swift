import Glibc
package import PrefetchModel
internal import SQLite

// Queries of `list`.

extension CacheCatalog {
    /// One line of a listing. Its bytes are valid only during the call that receives it.
    package struct ListRow {
        /// UTF-8, unless the database is damaged.
        package let key: UnsafeRawBufferPointer
        /// The digest's 32 bytes; a ``PrefetchModel/ContentDigest`` per line would cost time.
        package let digest: UnsafeRawBufferPointer
        package let format: ImageFormat
        /// 0 where neither width nor height is known.
        package let widthInPixels: Int
        package let heightInPixels: Int
        package let sizeInBytes: Int
        package let validatedAt: Timestamp
        package let expiresAt: Timestamp
        package let name: String?
        package let isSuperseded: Bool
    }

    private static let rowColumns = """
        key, sha256, format, width, height, bytes, validated_at, expires_at, superseded, name
        """

    /// Calls `body` for every selected variant, in the order of the selection; it ends the listing
    /// by throwing. The rows are streamed and their text is not copied: a million take about a
    /// second. Large sorts use a temporary file of SQLite's.
    package func forEachRow(
        of selection: ListSelection = ListSelection(), _ body: (ListRow) throws -> Void
    ) throws {
        try database.stream("listing") { database in
            let names = try CacheCatalog.names(database)
            let rows = try selection.statement(reading: CacheCatalog.rowColumns, in: database)
            var formats = FormatNames()
            while try rows.step() {
                if let row = try ListRow(rows, names: names, formats: &formats) { try body(row) }
            }
        }
    }

    private static func names(_ database: Connection) throws -> [Int64: String] {
        let rows = try database.all("SELECT id, name FROM variant_name") {
            (try $0.integer(0), try $0.text(1))
        }
        return Dictionary(rows) { first, _ in first }
    }

    /// Calls `body` for every selected variant, with attributes and failures, in the selection's
    /// order; it ends the listing by throwing. The rows are streamed: memory use is constant.
    package func forEachItem(of selection: ListSelection, _ body: (Item) throws -> Void) throws {
        try database.stream("listing") { database in
            let hasFailures = try FailureLog.isAny(in: database)
            func finish(_ item: Item) throws {
                var item = item
                if hasFailures {
                    item.failure = try CacheCatalog.failure(of: item.resource, in: database)
                }
                try body(item)
            }
            if selection.isEverything {
                return try CacheCatalog.forEachItemWithAttributes(in: database, finish)
            }
            let rows = try selection.statement(reading: CacheCatalog.columns, in: database)
            while try rows.step() {
                guard var item = try Item(rows) else { continue }
                item.attributes = try AttributeStore.fetch(
                    resource: item.resource.id, in: database)
                try finish(item)
            }
        }
    }
}

extension CacheCatalog.ListRow {
    /// Reads the columns of ``CacheCatalog/rowColumns``; nil for an unknown format.
    fileprivate init?(
        _ row: borrowing Statement, names: [Int64: String], formats: inout FormatNames
    ) throws {
        guard let format = formats.format(of: try row.textBytes(2)) else { return nil }
        let digest = try row.blobBytes(1)
        // Throws an error that describes the damage.
        if digest.count != ContentDigest.byteCount { _ = try row.digest(1) }
        let name = try row.integer(9)
        self.init(
            key: try row.textBytes(0), digest: digest, format: format,
            widthInPixels: try row.count(3), heightInPixels: try row.count(4),
            sizeInBytes: try row.count(5), validatedAt: try row.time(6), expiresAt: try row.time(7),
            name: name == VariantNames.main ? VariantName.main.text : names[name],
            isSuperseded: try row.integer(8) != 0)
    }
}

/// Looks up formats by the bytes of their names, without creating a string for each row.
struct FormatNames {
    private let formats = ImageFormat.allCases.map { (name: Array($0.rawValue.utf8), format: $0) }
    /// The index of the previous row's format, which is usually repeated.
    private var last = 0

    mutating func format(of name: UnsafeRawBufferPointer) -> ImageFormat? {
        if !isEqual(name, formats[last].name) {
            guard let found = formats.firstIndex(where: { isEqual(name, $0.name) }) else {
                return nil
            }
            last = found
        }
        return formats[last].format
    }

    private func isEqual(_ left: UnsafeRawBufferPointer, _ right: [UInt8]) -> Bool {
        guard left.count == right.count, let start = left.baseAddress else { return false }
        return right.withUnsafeBytes { right in
            right.baseAddress.map { memcmp(start, $0, right.count) == 0 } ?? false
        }
    }
}
