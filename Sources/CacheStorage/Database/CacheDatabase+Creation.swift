import Glibc
import PrefetchModel
internal import SQLite

// Creation of a database, empty or with salvaged rows. Only for the holder of the lock.

extension CacheDatabase {
    /// Replaces a damaged database by a new one, with all rows that can be read from it and from
    /// the snapshot. The damaged one is renamed last; until then a failure changes nothing. Only
    /// for the holder of the lock, while this process does not have the damaged database open.
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

    /// Creates a missing database, with `usesSnapshot` from the snapshot if there is one.
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

    /// Carries the readable rows of a damaged database into a new one, which is the file `name`
    /// below another cache's folder. The damaged one is not changed.
    static func salvage(
        _ directory: CacheDirectory, intoFile name: String, in workspace: CacheDirectory
    ) throws -> SalvageReport {
        try workspace.makeFile(name)
        let connection = try openForWriting(
            workspace.path(of: name), in: workspace, makes: true
        ).connection
        try Schema.makeTables(connection)
        try connection.permitUnsafeChanges()
        try connection.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        let report = try fill(connection, of: directory, workspace: workspace, isDamaged: true)
        try connection.close()
        return report
    }

    private static func fill(
        _ connection: Connection, of directory: CacheDirectory, workspace: CacheDirectory? = nil,
        isDamaged: Bool
    ) throws -> SalvageReport {
        // Rows precede the rows that they name. One that replaces another fires the triggers.
        try connection.execute(
            "PRAGMA foreign_keys = OFF; PRAGMA recursive_triggers = ON; PRAGMA cache_size = -65536")
        var salvage = try Salvage(
            directory: directory, workspace: workspace ?? directory, into: connection)
        try connection.transaction(.immediate) { try salvage.run(isDamaged: isDamaged) }
        return salvage.report
    }

    /// Builds a database as a temporary file, for ``putInPlace(in:)``. Only for the holder of the
    /// lock; the folder of temporary files must exist. With `keepsOrphans`, content files are kept
    /// without a row (see the table `property`): they are the images of a lost database. `fill`
    /// inserts rows; the file is discarded after a failure.
    static func build(
        in directory: CacheDirectory, keepsOrphans: Bool,
        fill: ((Connection) throws -> Void)? = nil
    ) throws(StorageError) {
        do {
            try directory.removeDatabase(unfinishedName)
            // SQLite's companion files copy the mode of this file.
            try directory.makeFile(unfinishedName)
            let path = directory.path(of: unfinishedName)
            let connection = try openForWriting(path, in: directory, makes: true).connection
            try Schema.makeTables(connection)
            if let fill {
                // A log would be as large as the database, for nothing.
                try connection.permitUnsafeChanges()
                try connection.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
                try fill(connection)
            }
            if keepsOrphans {
                // The clock of the file system, which also sets the files' times.
                let now = try directory.changeTime(of: unfinishedName)
                try connection.transaction(.immediate) {
                    try Schema.Property.orphansKeptBefore.set(to: now, in: connection)
                }
            }
            try connection.execute(
                "PRAGMA journal_mode = \(directory.fileSystem.isNetwork ? "DELETE" : "WAL")")
            // Closing the last connection moves the log, but does not report a full disk.
            _ = try connection.checkpoint(.truncate)
            try connection.close()
            try directory.synchronize(unfinishedName)
        } catch {
            // The next run removes the rest with the other temporary files.
            try? directory.removeDatabase(unfinishedName)
            throw StorageError(error, "making", directory.path(of: unfinishedName))
        }
    }

    /// The name of the database that ``build(in:keepsOrphans:fill:)`` makes.
    static let unfinishedName = "tmp/new.sqlite"

    /// Renames a finished database to its place, atomically.
    static func putInPlace(in directory: CacheDirectory) throws(StorageError) {
        // SQLite would apply another database's log to this one.
        for suffix in companions { try directory.remove(CacheDirectory.databaseName + suffix) }
        try directory.rename(unfinishedName, to: CacheDirectory.databaseName)
    }
}
