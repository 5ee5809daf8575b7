import PrefetchModel
internal import SQLite

extension Schema {
    /// Moves placeholders from attributes, two rows each, into the rows of their resources.
    ///
    /// Values that are none of ours go; their images count as without a placeholder.
    static func makeVersion8(_ database: Connection) throws {
        try database.execute(
            """
            ALTER TABLE resource ADD COLUMN thumbhash BLOB
                CHECK (length(thumbhash) BETWEEN 5 AND 25);
            ALTER TABLE resource ADD COLUMN color INTEGER;
            """)
        let rows = try Statement(
            database,
            sql: """
                SELECT hash.resource_id, hash.value, colour.value
                FROM attribute AS hash LEFT JOIN attribute AS colour
                    ON colour.resource_id = hash.resource_id AND colour.name = 'prefetch.color'
                WHERE hash.name = 'prefetch.thumbhash'
                """)
        let update = try Statement(
            database, sql: "UPDATE resource SET thumbhash = ?2, color = ?3 WHERE id = ?1")
        while try rows.step() {
            guard let hash = bytes(ofBase64: try rows.blob(1)), (5...25).contains(hash.count) else {
                continue
            }
            let colour = rows.isNull(2) ? nil : colour(of: try rows.blob(2))
            // Without a colour it is one of a picture that is transparent everywhere.
            guard rows.isNull(2) || colour != nil else { continue }
            try update.execute(.integer(try rows.integer(0)), .blob(hash), .init(colour))
        }
        try database.execute(
            """
            DELETE FROM attribute WHERE name IN ('prefetch.thumbhash', 'prefetch.color')
            """)
    }

    /// Of a text with padding (RFC 4648, section 4); nil for any other.
    private static func bytes(ofBase64 text: [UInt8]) -> [UInt8]? {
        guard text.count % 4 == 0 else { return nil }
        var (bytes, bits, count): ([UInt8], UInt32, Int) = ([], 0, 0)
        for digit in text.prefix(while: { $0 != UInt8(ascii: "=") }) {
            let value: UInt8
            switch digit {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = digit - UInt8(ascii: "A")
            case UInt8(ascii: "a")...UInt8(ascii: "z"): value = digit - UInt8(ascii: "a") + 26
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0") + 52
            case UInt8(ascii: "+"): value = 62
            case UInt8(ascii: "/"): value = 63
            default: return nil
            }
            (bits, count) = (bits << 6 | UInt32(value), count + 6)
            guard count >= 8 else { continue }
            count -= 8
            bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
        }
        return bytes
    }

    /// Of `#rrggbb`; nil for any other text.
    private static func colour(of text: [UInt8]) -> Int64? {
        guard text.count == 7, text[0] == UInt8(ascii: "#") else { return nil }
        return Int64(String(decoding: text[1...], as: UTF8.self), radix: 16)
    }
}
