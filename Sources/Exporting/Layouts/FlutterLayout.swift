import CacheStorage
internal import Hashing
import PrefetchModel
import Reporting
import SQLite

/// The cache of flutter_cache_manager.
///
/// ```
/// libCachedImageData/<name>.<extension>   the images
/// libCachedImageData.db                   SQLite, user_version 3: for Android, iOS and macOS
/// libCachedImageData.json                 the same rows in a JSON array: other systems
/// ```
///
/// Times are in milliseconds since 1970. The manager removes images that were not touched for its
/// stale period, so an image was touched when it was exported. Sources: `cache_object.dart` and
/// `cache_object_provider.dart`.
struct FlutterLayout: LayoutMaking {
    let now: Timestamp
    var hasSharedFiles: Bool { true }

    private static let name = "libCachedImageData"

    func path(of image: ExportedImage) -> String {
        let name = NameDigest.sha256.hexadecimal(of: image.url).prefix(32)
        return "\(FlutterLayout.name)/\(name).\(image.stored.format.fileExtension)"
    }

    func files(of rows: [ExportPlan.Row], missing: [Int]) -> [PlannedFile] {
        let rows = rows.filter { !$0.isRepeated }
        let objects = rows.enumerated().map { CacheObject(number: $0 + 1, row: $1) }
        let identity = ContentIdentity(
            of: objects.flatMap { $0.json(touched: Timestamp(milliseconds: 0)).bytes })
        let rowsInJSON = objects.map { $0.json(touched: now).bytes }
        let json = Array("[".utf8) + rowsInJSON.joined(separator: ",".utf8) + "]".utf8
        return imageFiles(of: rows) { .fixed($0.fetchedAt) } + [
            PlannedFile(
                path: FlutterLayout.name + ".json", content: .bytes(json), modified: .present,
                identity: identity),
            PlannedFile(
                path: FlutterLayout.name + ".db", content: .bytes(database(of: objects)),
                modified: .present, identity: identity),
        ]
    }

    private struct CacheObject {
        let number: Int
        let row: ExportPlan.Row

        var url: String { row.image.url }
        var file: String { String(row.path.dropFirst(FlutterLayout.name.count + 1)) }
        var entityTag: String? { row.image.source?.entityTag }
        var validTill: Timestamp { min(row.image.expiresAt, .farFuture) }
        var length: Int { row.image.stored.size.bytes }

        func json(touched: Timestamp) -> JSONObject {
            var object = JSONObject()
            object.add("_id", number)
            object.add("url", url)
            object.add("key", url)
            object.add("relativePath", file)
            object.add("eTag", entityTag)
            object.add("validTill", Int(validTill.milliseconds))
            object.add("touched", Int(touched.milliseconds))
            object.add("length", length)
            return object
        }
    }

    private func database(of objects: [CacheObject]) -> [UInt8] {
        do {
            let database = try Connection(path: ":memory:", access: .readWrite)
            try database.execute(
                """
                PRAGMA user_version = 3;
                CREATE TABLE cacheObject (
                    _id INTEGER PRIMARY KEY, url TEXT, key TEXT, relativePath TEXT, eTag TEXT,
                    validTill INTEGER, touched INTEGER, length INTEGER
                );
                CREATE UNIQUE INDEX cacheObjectkey ON cacheObject (key);
                """)
            try database.transaction(.immediate) {
                let insertion = try Statement(
                    database,
                    sql: "INSERT OR IGNORE INTO cacheObject VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
                for object in objects {
                    try insertion.execute(
                        .integer(Int64(object.number)), .text(object.url), .text(object.url),
                        .text(object.file), object.entityTag.map { .text($0) } ?? .null,
                        .integer(object.validTill.milliseconds), .integer(now.milliseconds),
                        .integer(Int64(object.length)))
                }
            }
            return try database.serialized()
        } catch {
            preconditionFailure("a database in memory: \(error)")
        }
    }
}
