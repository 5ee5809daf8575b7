import CacheStorage
import Glibc
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
/// stale period of 30 days. Apps are installed later than that, so images count as touched
/// ``lead`` after the export. Sources: `cache_object.dart` and `cache_object_provider.dart`.
struct FlutterLayout: LayoutMaking {
    let now: Timestamp
    var hasSharedFiles: Bool { true }

    static let name = "libCachedImageData"
    /// The stale period: exported images stay for two of them.
    static let lead = Duration.seconds(30 * 86_400)

    func path(of image: ExportedImage) -> String {
        let name = NameDigest.sha256.hexadecimal(of: image.url).prefix(32)
        return "\(FlutterLayout.name)/\(name).\(image.stored.format.fileExtension)"
    }

    func files(of rows: [ExportPlan.Row], missing: [MissingEntry]) -> [PlannedFile] {
        let rows = rows.filter { !$0.isRepeated }
        let objects = rows.enumerated().map { CacheObject(number: $0 + 1, row: $1) }
        let identity = ContentIdentity(
            of: objects.flatMap { $0.json(touched: Timestamp(milliseconds: 0)).bytes })
        let touched = now.advanced(by: FlutterLayout.lead)
        return imageFiles(of: rows) { .fixed($0.fetchedAt) }
            + FlutterLayout.indexes(of: objects, touched).map { path, bytes in
                PlannedFile(
                    path: path, content: .bytes(bytes), modified: .present, identity: identity
                ).hiding(rows.lazy.map(\.image.url))
            }
    }

    fileprivate struct CacheObject {
        let number: Int64
        let url: String
        let file: String
        let entityTag: String?
        /// In milliseconds.
        let validTill: Int64
        let length: Int64

        func json(touched: Timestamp) -> JSONObject {
            var object = JSONObject()
            object.add("_id", Int(number))
            object.add("url", url)
            object.add("key", url)
            object.add("relativePath", file)
            object.add("eTag", entityTag)
            object.add("validTill", Int(validTill))
            object.add("touched", Int(touched.milliseconds))
            object.add("length", Int(length))
            return object
        }
    }

    /// The files about all images.
    private static func indexes(
        of objects: [CacheObject], _ touched: Timestamp
    ) -> [(path: String, bytes: [UInt8])] {
        let rows = objects.map { $0.json(touched: touched).bytes }
        return [
            (name + ".json", Array("[".utf8) + rows.joined(separator: ",".utf8) + "]".utf8),
            (name + ".db", database(of: objects, touched)),
        ]
    }

    /// Writes the files about all images again, as touched now.
    ///
    /// - Throws: ``UserError`` if the database is missing or damaged.
    static func touch(
        _ folder: Folder, _ stage: ExportStage, _ state: inout ExportState, at now: Timestamp
    ) throws(UserError) {
        let path = folder.path(of: name + ".db")
        let unreadable = UserError(
            .failed, path, "missing or damaged", hint: "export the images again")
        guard state[name + ".db"] != nil, folder.status(of: name + ".db")?.isFile == true else {
            throw unreadable
        }
        guard let objects = try? objects(in: path) else { throw unreadable }
        for (path, bytes) in indexes(of: objects, now.advanced(by: lead))
        where state[path] != nil {
            let mode = folder.status(of: path)?.permissions ?? 0o600
            let number = openat(
                stage.folder.number, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                mode)
            guard number >= 0 else { throw .system("create", stage.folder.path(of: path)) }
            let file = Folder(number, path: stage.folder.path(of: path))
            try UserError.ofExport { () throws(StorageError) in
                try CacheDirectory.writeAll(bytes, to: file.number, path: file.path)
            }
            try stage.folder.move(path, to: (folder, path))
            if let status = file.status { state.note(status, of: path) }
        }
    }

    private static func objects(in database: String) throws -> [CacheObject] {
        try Connection(path: database, access: .readOnly).all(
            "SELECT _id, url, relativePath, eTag, validTill, length FROM cacheObject ORDER BY _id"
        ) { row in
            CacheObject(
                number: try row.integer(0), url: try row.text(1), file: try row.text(2),
                entityTag: try row.optionalText(3), validTill: try row.integer(4),
                length: try row.integer(5))
        }
    }

    private static func database(of objects: [CacheObject], _ touched: Timestamp) -> [UInt8] {
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
                        .integer(object.number), .text(object.url), .text(object.url),
                        .text(object.file), object.entityTag.map { .text($0) } ?? .null,
                        .integer(object.validTill), .integer(touched.milliseconds),
                        .integer(object.length))
                }
            }
            return try database.serialized()
        } catch {
            preconditionFailure("a database in memory: \(error)")
        }
    }
}

extension FlutterLayout.CacheObject {
    fileprivate init(number: Int, row: ExportPlan.Row) {
        self.init(
            number: Int64(number), url: row.image.url,
            file: String(row.path.dropFirst(FlutterLayout.name.count + 1)),
            entityTag: row.image.source?.entityTag,
            validTill: min(row.image.expiresAt, .farFuture).milliseconds,
            length: Int64(row.image.stored.size.bytes))
    }
}
