internal import Foundation
internal import GRDB
package import PrefetchModel

/// What the cache holds for one recipe, in memory: a run asks it for every entry, and SQLite never.
package struct CacheIndex: Sendable {
    /// A stored variant and until when it is fresh.
    package struct Record: Sendable {
        package let image: StoredImage
        package let expiresAt: Timestamp

        package func isFresh(at time: Timestamp) -> Bool { time < expiresAt }
    }

    private var records: [KeyFingerprint: Record] = [:]

    package var count: Int { records.count }

    package subscript(fingerprint: KeyFingerprint) -> Record? { records[fingerprint] }

    /// Reads the variants of one recipe in one scan.
    ///
    /// A row that names an unknown format is left out, so that its entry is fetched again.
    package init(_ database: CacheDatabase, recipe: Recipe) throws(StorageError) {
        records = try database.read("reading the index") { database in
            var records: [KeyFingerprint: Record] = [:]
            let hasher = SHA256Hasher()
            let rows = try Row.fetchCursor(
                database,
                sql: """
                    SELECT key, expires_at, sha256, format, width, height, bytes
                    FROM variant JOIN resource ON id = resource_id WHERE recipe = ?
                    """,
                arguments: [recipe.canonicalText])
            while let row = try rows.next() {
                guard let image = StoredImage(row, from: 2) else { continue }
                let fingerprint = KeyFingerprint(row[0] as String, hasher: hasher)
                records[fingerprint] = Record(
                    image: image, expiresAt: Timestamp(milliseconds: row[1]))
            }
            return records
        }
    }
}

extension StoredImage {
    /// Reads `sha256, format, width, height, bytes` from the columns that begin at `column`; nil
    /// when a value is not one that we write.
    init?(_ row: Row, from column: Int) {
        let digest = (row[column] as Data?).flatMap { bytes in
            bytes.withUnsafeBytes { ContentDigest(bytes: $0) }
        }
        guard let digest, let format = ImageFormat(rawValue: row[column + 1] as String),
            let size = Int(exactly: row[column + 4] as Int64), size >= 0
        else { return nil }
        self.init(
            digest: digest, format: format, widthInPixels: row[column + 2],
            heightInPixels: row[column + 3], size: ByteCount(size))
    }
}
