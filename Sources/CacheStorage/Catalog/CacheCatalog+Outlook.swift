package import Hashing
package import PrefetchModel
internal import SQLite

extension CacheCatalog {
    /// The size of the cache, expiries by day, and bytes stored by day.
    package struct Outlook: Sendable {
        package let images: Int
        package let contentBytes: Int
        /// Images by the UTC ``Timestamp/day`` of their expiry; 1970 for always stale ones.
        package let expiries: [(day: Int64, images: Int)]
        /// Bytes stored by runs, by the UTC day of their start.
        package let storedByDay: [Int64: Int]
    }

    /// Returns the totals of one moment, with the runs since `start`.
    package func outlook(ofRunsSince start: Timestamp) throws(StorageError) -> Outlook {
        try database.read("counting") { database in
            let usage = try database.first("SELECT resources, file_bytes FROM usage") {
                (try $0.count(0), try $0.count(1))
            }
            let expiries = try database.all(
                "SELECT expires_at / 86400000, count(*) FROM resource GROUP BY 1"
            ) { (day: try $0.integer(0), images: try $0.count(1)) }
            var storedByDay: [Int64: Int] = [:]
            try database.forEach(
                """
                SELECT started_at / 86400000, json_extract(counters, '$.bytes_stored') FROM run
                WHERE started_at >= ? AND json_valid(counters)
                    AND json_type(counters, '$.bytes_stored') = 'integer'
                """, .init(start)
            ) { row in
                let (sum, isTooLarge) = storedByDay[try row.integer(0), default: 0]
                    .addingReportingOverflow(max(0, Int(try row.integer(1))))
                storedByDay[try row.integer(0)] = isTooLarge ? .max : sum
            }
            return Outlook(
                images: usage?.0 ?? 0, contentBytes: usage?.1 ?? 0, expiries: expiries,
                storedByDay: storedByDay)
        }
    }

    /// The bytes of a content file; nil if it is missing, unreadable or damaged.
    package func bytes(of image: StoredImage, hasher: borrowing SHA256Hasher) -> [UInt8]? {
        directory.bytes(of: image, hasher: hasher).whole
    }

    package func crashes(at now: Timestamp) throws(StorageError) -> CrashLog {
        try CrashLog(directory: directory, at: now)
    }

    /// The hosts with images, in the order of ``ListSelection/Order/host``.
    package func imagesByHost() throws(StorageError) -> [(host: String, images: Int)] {
        try database.read("counting") { database in
            try database.all(
                """
                SELECT host, count(*) FROM resource
                WHERE EXISTS (SELECT 1 FROM variant WHERE resource_id = resource.id)
                GROUP BY host ORDER BY host
                """
            ) { (host: try $0.text(0), images: try $0.count(1)) }
        }
    }
}
