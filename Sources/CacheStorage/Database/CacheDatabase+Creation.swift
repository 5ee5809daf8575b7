import Glibc
import PrefetchModel
internal import SQLite

// How a database begins: empty, or with what can be salvaged of another one. Only for the holder of the lock.

extension CacheDatabase {
    /// Puts a database in the place of a damaged one, with what can be read of it and of the snapshot. The
    /// damaged one gets another name when the new one is whole; until then a failure changes nothing.
    ///
    /// Only for the holder of the lock, when nobody of this process has the damaged one open.
    ///
    /// - Throws: when the new one cannot be written, on a full disk above all.
    static func salvage(
        _ directory: CacheDirectory, at now: Timestamp
    ) throws(StorageError) -> (name: String, report: SalvageReport) {
        var report = SalvageReport()
        try build(in: directory, keepsOrphans: true) { connection in
            report = try fill(connection, of: directory, isDamaged: true)
        }
        let name = try replace(in: directory, at: now) { () throws(StorageError) in
            try putInPlace(in: directory)
        }
        return (name, report)
    }

    /// Makes a database where there is none: from the snapshot, if there is one and `usesSnapshot` allows,
    /// else an empty one.
    static func make(
        in directory: CacheDirectory, keepsOrphans: Bool, usesSnapshot: Bool
    ) throws(StorageError) -> SalvageReport? {
        var report: SalvageReport?
        let isRestored = usesSnapshot && directory.snapshotTime != nil
        try build(
            in: directory, keepsOrphans: keepsOrphans,
            fill: isRestored
                ? { report = try fill($0, of: directory, isDamaged: false) } : nil)
        try putInPlace(in: directory)
        return report
    }

    private static func fill(
        _ connection: Connection, of directory: CacheDirectory, isDamaged: Bool
    ) throws -> SalvageReport {
        // Rows come before those that they name; and one that takes another's place does so with all
        // that triggers do.
        try connection.execute(
            """
            PRAGMA foreign_keys = OFF; PRAGMA recursive_triggers = ON; PRAGMA cache_size = -65536
            """)
        var salvage = try Salvage(directory: directory, into: connection)
        try connection.transaction(.immediate) { try salvage.run(isDamaged: isDamaged) }
        return salvage.report
    }

    /// Makes a database with the whole schema beside its place, for ``putInPlace(in:)``. Only for the holder
    /// of the lock; the folder of temporary files has to be there.
    ///
    /// With `keepsOrphans` content files that are there already are kept though no row names them (see the
    /// table `property`): they are the images of a database that is gone. `fill` puts rows into it; nothing
    /// else has its connection, and after a failure it is thrown away.
    private static func build(
        in directory: CacheDirectory, keepsOrphans: Bool,
        fill: ((Connection) throws -> Void)? = nil
    ) throws(StorageError) {
        do {
            try removeUnfinished(in: directory)
            // SQLite's companions copy the mode of the file.
            try directory.makeFile(unfinishedName)
            let path = directory.path(of: unfinishedName)
            let connection = try openForWriting(path, in: directory, makes: true).connection
            try Schema.migrator.migrate(connection)
            if let fill {
                // A log as large as all of it would be written for nothing.
                try connection.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
                try fill(connection)
            }
            if keepsOrphans {
                // By the clock that gives the files their times.
                let now = try directory.changeTime(of: unfinishedName)
                try connection.transaction(.immediate) {
                    try Schema.Property.orphansKeptBefore.set(to: now, in: connection)
                }
            }
            try connection.execute(
                "PRAGMA journal_mode = \(directory.fileSystem.isNetwork ? "DELETE" : "WAL")")
            // The last connection takes the log along, but does not say when the disk has no room for that.
            _ = try connection.checkpoint(.truncate)
            try connection.close()
            try directory.synchronize(unfinishedName)
        } catch {
            let error = translate(
                error, operation: "making", path: directory.path(of: unfinishedName))
            // Whatever is left of it goes with the other temporary files.
            try? removeUnfinished(in: directory)
            throw error
        }
    }

    private static let unfinishedName = "tmp/new.sqlite"

    private static func removeUnfinished(in directory: CacheDirectory) throws(StorageError) {
        for suffix in [""] + companions { try directory.remove(unfinishedName + suffix) }
    }

    /// Puts a database that was built where it belongs: whoever looks for it finds all of it, or what was there before.
    private static func putInPlace(in directory: CacheDirectory) throws(StorageError) {
        // SQLite would take what is left of another database's log for this one's.
        for suffix in companions { try directory.remove(CacheDirectory.databaseName + suffix) }
        try directory.rename(unfinishedName, to: CacheDirectory.databaseName)
    }
}
