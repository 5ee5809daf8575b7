import PrefetchModel
import SQLite

// Values of ours as SQLite's, and back.

extension Statement.Value {
    init(_ time: Timestamp) { self = .integer(time.milliseconds) }

    static func digest(_ digest: ContentDigest) -> Statement.Value { .blob(digest.bytes) }
}

extension Statement {
    func time(_ column: Int32) throws(SQLiteError) -> Timestamp {
        Timestamp(milliseconds: try integer(column))
    }

    /// Nil for NULL.
    func optionalTime(_ column: Int32) throws(SQLiteError) -> Timestamp? {
        isNull(column) ? nil : try time(column)
    }

    func digest(_ column: Int32) throws(SQLiteError) -> ContentDigest {
        try blob(column, orDamage: "a digest of another length") { ContentDigest(bytes: $0) }
    }
}
