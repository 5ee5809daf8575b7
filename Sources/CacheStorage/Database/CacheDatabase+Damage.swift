import Glibc
import PrefetchModel
internal import SQLite

extension CacheDatabase {
    enum DamageCheck {
        /// All pages, and the types of all values; about a second for a million resources.
        case quick
        /// Also indexes against tables, and every row as commands read it; five times that.
        case thorough
    }

    /// Databases up to this size are checked before each run, in a few milliseconds.
    static let sizeAlwaysChecked = ByteCount.mebibytes(1)

    /// Throws an error for which ``StorageError/isDamage`` holds if the database is damaged, and
    /// others if it cannot be read.
    func findDamage(_ check: DamageCheck) throws(StorageError) {
        let findings = try read("checking") { database in
            try database.all(
                check == .quick ? "PRAGMA quick_check(1)" : "PRAGMA integrity_check(1)"
            ) { try $0.text(0) }
        }
        if let finding = findings.first, finding != "ok" {
            throw .damaged("checking", path, finding)
        }
        guard check != .quick else { return }
        do {
            try findDanglingRows()
            try readEverything()
        } catch {
            // SQLITE_ERROR: a table or a column is missing.
            guard case .database(let code) = error.code, code & 0xFF == 1 else { throw error }
            throw .damaged("checking", path, error.message)
        }
    }

    /// Checks the database, after a finding again: one failing read stays in the page cache.
    func confirmDamage(_ check: DamageCheck) throws(StorageError) {
        do {
            try findDamage(check)
        } catch {
            guard error.mayBeFailingRead else { throw error }
            let again = try reopened()
            defer { again.close() }
            try again.findDamage(check)
        }
    }

    private func findDanglingRows() throws(StorageError) {
        let table = try read("checking") { database in
            try database.first(
                """
                SELECT 'freshness' FROM freshness
                WHERE resource_id NOT IN (SELECT id FROM resource)
                UNION ALL SELECT 'variant' FROM variant
                WHERE resource_id NOT IN (SELECT id FROM resource)
                UNION ALL SELECT 'attribute' FROM attribute
                WHERE resource_id NOT IN (SELECT id FROM resource)
                LIMIT 1
                """
            ) { try $0.text(0) }
        }
        guard let table else { return }
        throw .damaged("checking", path, "a row of \(table) names a missing resource")
    }

    /// Removes rows of `freshness` where a resource has fewer variants than such rows: they would
    /// make a run call a missing image fresh. Returns whether there were any.
    func removeUnfoundedFreshness() throws(StorageError) -> Bool {
        try execute(
            "checking",
            """
            DELETE FROM freshness WHERE resource_id IN (
                SELECT resource_id FROM freshness GROUP BY resource_id
                HAVING count(*) > (SELECT count(*) FROM variant
                    WHERE variant.resource_id = freshness.resource_id))
            """) > 0
    }

    /// Reads every row as runs and commands do, which throws for invalid values.
    private func readEverything() throws(StorageError) {
        try read("checking") { database in
            try CacheCatalog.forEachItemWithAttributes(in: database) { _ in }
            try database.forEach("SELECT \(FailureRecord.columns) FROM failure") {
                _ = try FailureRecord($0)
            }
            _ = try RunLog.hasUncleanEnd(in: database)
        }
        // The time does not matter here.
        try HostLog(database: self).forEach(at: Timestamp(milliseconds: 0)) { _ in }
        _ = try PartialStore.fileNames(in: self)
    }

    static let damagedPrefix = CacheDirectory.databaseName + ".damaged-"
    static let logName = CacheDirectory.databaseName + "-wal"

    private static func nameForDamaged(in directory: CacheDirectory, at now: Timestamp) -> String {
        let base = damagedPrefix + now.description.filter { $0 != "-" && $0 != ":" }
        var name = base
        var number = 1
        while directory.contains(name) || directory.contains(name + "-wal") {
            number += 1
            name = "\(base)-\(number)"
        }
        return name
    }

    /// Renames the database of a cache. Only for the holder of the lock, while no connection of
    /// this process will write to it or create another one. Returns the new name.
    static func setAside(
        in directory: CacheDirectory, at now: Timestamp
    ) throws(StorageError) -> String {
        let name = nameForDamaged(in: directory, at: now)
        // The database is complete only with its log; the log's index is rebuilt. The log is
        // renamed first, so that a new database never begins with it.
        try setLogAside(as: name, in: directory)
        try directory.rename(CacheDirectory.databaseName, to: name)
        try directory.remove(CacheDirectory.databaseName + "-shm")
        try directory.dropSuspicion()
        return name
    }

    private static func setLogAside(
        as name: String, in directory: CacheDirectory
    ) throws(StorageError) {
        if directory.contains(logName) { try directory.rename(logName, to: name + "-wal") }
    }

    /// Links the database to another name, then has `putInPlace` rename a new one over it. There is
    /// a database at each moment: after a kill in between, the damaged one is salvaged again, and
    /// ``undoReplacement(in:)`` restores its log. Returns the name of the old database.
    static func replace(
        in directory: CacheDirectory, at now: Timestamp,
        _ putInPlace: () throws(StorageError) -> Void
    ) throws(StorageError) -> String {
        let name = nameForDamaged(in: directory, at: now)
        let folder = directory.handle.number
        guard linkat(folder, CacheDirectory.databaseName, folder, name, 0) == 0 else {
            // The file system has no hard links.
            let name = try setAside(in: directory, at: now)
            try putInPlace()
            return name
        }
        try setLogAside(as: name, in: directory)
        // Before the new database exists, which must not be taken for damaged.
        try directory.dropSuspicion()
        try putInPlace()
        return name
    }

    /// Undoes a killed ``replace(in:at:_:)``; for the lock's holder, before the database is opened.
    static func undoReplacement(in directory: CacheDirectory) throws(StorageError) {
        guard let status = directory.handle.status(of: CacheDirectory.databaseName),
            status.isFile, status.st_nlink > 1
        else { return }
        let identity = FileIdentity(CacheDirectory.databaseName, in: directory.handle)
        for name in try directory.handle.names()
        where name.hasPrefix(damagedPrefix)
            && FileIdentity(name, in: directory.handle) == identity
        {
            directory.suspectDatabase(isCertain: true)
            // Readers create an empty log, with an index that does not cover this one's rows.
            if directory.contains(name + "-wal"), directory.isEmpty(logName) {
                try directory.remove(CacheDirectory.databaseName + "-shm")
                try directory.rename(name + "-wal", to: logName)
            }
            try directory.remove(name)
        }
    }

    // Creation of a database, empty or with salvaged rows. Only for the holder of the lock.

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
                "PRAGMA journal_mode = \(directory.hasJournal ? "DELETE" : "WAL")")
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

extension CacheDirectory {
    fileprivate func isEmpty(_ name: String) -> Bool { handle.status(of: name)?.size ?? 0 == 0 }

    /// The note of a command that found damage, which the next run might not find otherwise.
    static let suspicionName = "suspect"

    /// Makes the next run check the database thoroughly, or, if `isCertain`, salvage it unchecked.
    package func suspectDatabase(isCertain: Bool = false) {
        let number = openat(
            handle.number, CacheDirectory.suspicionName,
            O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o600)
        // In a read-only cache nothing can be repaired either.
        guard number >= 0 else { return }
        if isCertain { write(number, "!", 1) }
        close(number)
    }

    package var isDatabaseSuspected: Bool { contains(CacheDirectory.suspicionName) }

    /// Whether the damage is certain and needs no check.
    var isDatabaseDamageCertain: Bool {
        handle.status(of: CacheDirectory.suspicionName).map { $0.isFile && $0.size > 0 } ?? false
    }

    func dropSuspicion() throws(StorageError) { try remove(CacheDirectory.suspicionName) }
}
