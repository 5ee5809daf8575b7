package import PrefetchModel
internal import SQLite

extension CacheCatalog {
    /// The shortest time between two access notes of a variant.
    private static let accessInterval = Duration.seconds(86_400)

    /// Notes that images were read, at most once a day each; `prune` uses these times.
    ///
    /// Does so only where it is nearly free. It never waits for another writer and never
    /// checkpoints the log. A cache that cannot be written is left unchanged.
    ///
    /// - Parameters:
    ///   - items: The images that were read.
    ///   - now: The wall clock.
    package func noteAccess(to items: [Item], at now: Timestamp) {
        // On a network file system a commit waits for the server's disk.
        guard !items.isEmpty, !directory.fileSystem.isNetwork else { return }
        do {
            let due = try database.read("looking up accesses") { database in
                try items.filter { try CacheCatalog.isDue($0, in: database, at: now) }
            }
            guard !due.isEmpty else { return }
            let connection = try Connection(path: database.path, access: .readWriteExisting)
            // Otherwise closing the last connection would checkpoint the log without syncing the
            // files that its rows name.
            try connection.setKeepsLogAtClose(true)
            try connection.execute("PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = NORMAL")
            try connection.transaction(.immediate) {
                let update = try connection.prepare(
                    """
                    UPDATE variant SET last_access_at = ?3
                    WHERE resource_id = ?1 AND recipe = ?2 AND last_access_at < ?3
                    """)
                for item in due {
                    try update.execute(.integer(item.resource.id), .text(item.recipe), .init(now))
                }
            }
            try connection.close()
        } catch {
            // Another process is writing, or the cache is read-only: the next read notes it.
        }
    }

    private static func isDue(
        _ item: Item, in database: Connection, at now: Timestamp
    ) throws -> Bool {
        try database.first(
            "SELECT last_access_at FROM variant WHERE resource_id = ? AND recipe = ?",
            .integer(item.resource.id), .text(item.recipe)
        ) {
            now.timeSince(try $0.time(0)) > accessInterval
        } ?? false
    }
}
