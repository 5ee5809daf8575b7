import Glibc
import PrefetchModel
internal import SQLite

// What is done about a database that cannot be believed.

extension CacheDatabase {
    /// How closely ``findDamage(_:)`` looks.
    enum Check {
        /// Every page, and the types of all values; about a second for a million resources.
        case quick
        /// Indexes against their tables, too, and every row as the commands read it; five times that.
        case thorough
        /// The schema, too, against a new database's; some milliseconds more.
        case complete
    }

    /// Databases of up to this size are looked at before each run: it takes a few milliseconds.
    static let sizeAlwaysChecked = ByteCount.mebibytes(1)

    /// - Throws: an error that ``StorageError/isDamage``, where there is damage; and where the
    ///   database cannot be read.
    func findDamage(_ check: Check) throws(StorageError) {
        let findings = try read("checking") { database in
            try Statement(
                database,
                sql: check == .quick ? "PRAGMA quick_check(1)" : "PRAGMA integrity_check(1)"
            ).all { try $0.text(0) }
        }
        if let finding = findings.first, finding != "ok" {
            throw StorageError(
                operation: "checking", subject: path, code: .database(11), message: finding)
        }
        guard check != .quick else { return }
        do throws(StorageError) {
            if check == .complete { try findAlteredSchema() }
            try findDanglingRows()
            try readEverything()
        } catch {
            // SQLITE_ERROR: a table or a column is not there.
            guard case .database(let code) = error.code, code & 0xFF == 1 else { throw error }
            throw StorageError(
                operation: "checking", subject: path, code: .database(11), message: error.message)
        }
    }

    /// Tables, indexes and triggers of ours that are not there, or not as we make them: a bit that has changed in the
    /// name of a column makes statements fail, one in a trigger makes totals wrong. What others have added stays.
    private func findAlteredSchema() throws(StorageError) {
        let altered = try read("checking") { try CacheDatabase.alteredPart(of: $0) }
        if let altered { throw CacheDatabase.alteration(of: altered, path) }
    }

    /// The same for a database that cannot be used, perhaps for this reason, without its log, which may not be its own.
    ///
    /// - Returns: what is wrong with its schema, as an error that says ``StorageError/isDamage``; nil where nothing is, or
    ///   it cannot be read.
    static func schemaDamage(in directory: CacheDirectory) -> StorageError? {
        let path = directory.path(of: CacheDirectory.databaseName)
        guard let connection = try? Connection(path: path, access: .immutable),
            let altered = try? alteredPart(of: connection)
        else { return nil }
        return alteration(of: altered, path)
    }

    private static func alteration(of part: String, _ path: String) -> StorageError {
        StorageError(
            operation: "checking", subject: path, code: .database(11),
            message: "the \(part) is not as prefetch made it")
    }

    /// The first thing of ours in a schema that is missing or altered: `table resource`.
    private static func alteredPart(of database: Connection) throws -> String? {
        let new = try Connection(path: ":memory:", access: .readWrite)
        try Schema.migrator.migrate(new)
        let wanted = try schema(of: new)
        let present = try schema(of: database)
        return try wanted.sorted { $0.key < $1.key }.first { name, definition in
            guard present[name] != definition else { return false }
            // A table that has columns of others, too, has another text.
            guard name.hasPrefix("table ") else { return true }
            let table = String(name.dropFirst("table ".count))
            return try !columns(of: table, in: new)
                .isStrictSubset(of: columns(of: table, in: database))
        }?.key
    }

    /// The statements that made what is in a database, by kind and name, without white space: versions of SQLite differ
    /// in what `ALTER TABLE` makes of it.
    private static func schema(of database: Connection) throws -> [String: String] {
        let rows = try Statement(
            database, sql: "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
        ).all { ("\(try $0.text(0)) \(try $0.text(1))", try $0.text(2)) }
        return Dictionary(
            rows.map { ($0, String($1.filter { !$0.isWhitespace })) }, uniquingKeysWith: { $1 })
    }

    private static func columns(of table: String, in database: Connection) throws -> Set<String> {
        Set(
            try Statement(
                database,
                sql: #"""
                    SELECT format('%Q %Q %d %Q %d', name, type, "notnull", dflt_value, pk)
                    FROM pragma_table_xinfo(?)
                    """#
            ).all(.text(table)) { try $0.text(0) })
    }

    /// Rows that name a resource which is not there.
    private func findDanglingRows() throws(StorageError) {
        let table = try read("checking") { database in
            try Statement(
                database,
                sql: """
                    SELECT 'freshness' FROM freshness
                    WHERE resource_id NOT IN (SELECT id FROM resource)
                    UNION ALL SELECT 'variant' FROM variant
                    WHERE resource_id NOT IN (SELECT id FROM resource)
                    UNION ALL SELECT 'attribute' FROM attribute
                    WHERE resource_id NOT IN (SELECT id FROM resource)
                    LIMIT 1
                    """
            ).first { try $0.text(0) }
        }
        guard let table else { return }
        throw StorageError(
            operation: "checking", subject: path, code: .database(11),
            message: "a row of \(table) names a resource that is not there")
    }

    /// Removes what `freshness` says of images that `variant` does not hold, by its own account: it is a
    /// copy, for speed, and a run would call an image fresh that nobody can get.
    ///
    /// - Returns: whether there was any.
    func removeUnfoundedFreshness() throws(StorageError) -> Bool {
        try write("checking") { database in
            try Statement(
                database,
                sql: """
                    DELETE FROM freshness WHERE resource_id IN (
                        SELECT resource_id FROM freshness GROUP BY resource_id
                        HAVING count(*) > (SELECT count(*) FROM variant
                            WHERE variant.resource_id = freshness.resource_id))
                    """
            ).execute()
            return database.changes > 0
        }
    }

    /// Reads every row as runs and commands do, which throws where a value is none of ours.
    private func readEverything() throws(StorageError) {
        try read("checking") { database in
            let next = try CacheCatalog.itemsWithAttributes(database)
            while try next() != nil {}
            let failures = try Statement(
                database, sql: "SELECT \(FailureRecord.columns) FROM failure")
            defer { failures.reset() }
            while try failures.step() { _ = try FailureRecord(failures) }
        }
        _ = try RunLog.hasUncleanEnd(in: self)
        // The times matter to nobody here.
        _ = try HostLog(database: self).all(at: Timestamp(milliseconds: 0))
        _ = try PartialStore.countRows(in: self)
    }

    /// What the names of databases begin with that were set aside.
    static let damagedPrefix = CacheDirectory.databaseName + ".damaged-"
    /// Of the write-ahead log.
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

    /// Gives the database in a cache another name. Only for the holder of the lock, when nobody of
    /// this process has it open who would write to it, or make another one, afterwards.
    ///
    /// - Returns: the name that it has now.
    static func setAside(
        in directory: CacheDirectory, at now: Timestamp
    ) throws(StorageError) -> String {
        let name = nameForDamaged(in: directory, at: now)
        // With its log it is whole; the index of the log is made anew. First the log: a new database
        // in the old one's place is begun without it.
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

    /// Sets the database aside and has `putInPlace` put another one over it. At no moment there is none, so that
    /// after a kill in between it is salvaged once more, and ``undoReplacement(in:)`` gives it its log back.
    ///
    /// - Returns: the name that the old one has now.
    static func replace(
        in directory: CacheDirectory, at now: Timestamp,
        _ putInPlace: () throws(StorageError) -> Void
    ) throws(StorageError) -> String {
        let name = nameForDamaged(in: directory, at: now)
        guard directory.link(CacheDirectory.databaseName, to: name) else {
            // The file system has one name for each file.
            let name = try setAside(in: directory, at: now)
            try putInPlace()
            return name
        }
        try setLogAside(as: name, in: directory)
        // Before the new one is there, which is not to be taken for damaged.
        try directory.dropSuspicion()
        try putInPlace()
        return name
    }

    /// Goes back to before ``replace(in:at:_:)`` where that was killed midway. Only for the holder of the lock, before
    /// the database is opened.
    static func undoReplacement(in directory: CacheDirectory) throws(StorageError) {
        guard directory.hasSeveralNames(CacheDirectory.databaseName) else { return }
        let identity = FileIdentity(CacheDirectory.databaseName, in: directory.handle)
        for name in try directory.names(in: directory.handle, path: directory.path)
        where name.hasPrefix(damagedPrefix)
            && FileIdentity(name, in: directory.handle) == identity
        {
            directory.suspectDatabase(isCertain: true)
            // Readers make an empty one, with an index that knows nothing of this one's rows.
            if directory.contains(name + "-wal"), directory.isEmpty(logName) {
                try directory.remove(CacheDirectory.databaseName + "-shm")
                try directory.rename(name + "-wal", to: logName)
            }
            try directory.remove(name)
        }
    }
}

extension CacheDirectory {
    /// Gives a file a second name.
    ///
    /// - Returns: whether it has it now.
    fileprivate func link(_ name: String, to newName: String) -> Bool {
        linkat(handle.number, name, handle.number, newName, 0) == 0
    }

    fileprivate func hasSeveralNames(_ name: String) -> Bool {
        var status = stat()
        return fstatat(handle.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0
            && status.st_mode & S_IFMT == S_IFREG && status.st_nlink > 1
    }

    /// Whether a file has no bytes, or is not there.
    fileprivate func isEmpty(_ name: String) -> Bool {
        var status = stat()
        guard fstatat(handle.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return true }
        return status.st_size == 0
    }

    /// Left by a command that met damage, for the next run, which has the right to do something
    /// about it and would perhaps not meet it.
    static let suspicionName = "suspect"

    /// Has the next run check the database thoroughly; or, with `isCertain`, salvage it whatever a check
    /// finds, which is what a file that is not empty says.
    package func suspectDatabase(isCertain: Bool = false) {
        let number = openat(
            handle.number, CacheDirectory.suspicionName,
            O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o600)
        // Where nothing can be written, nobody can mend the cache either.
        guard number >= 0 else { return }
        if isCertain { write(number, "!", 1) }
        close(number)
    }

    var isDatabaseSuspected: Bool { contains(CacheDirectory.suspicionName) }

    /// Whether damage was met and nobody has to look for it any more.
    var isDatabaseDamageCertain: Bool {
        var status = stat()
        return fstatat(
            handle.number, CacheDirectory.suspicionName, &status, AT_SYMLINK_NOFOLLOW) == 0
            && status.st_mode & S_IFMT == S_IFREG && status.st_size > 0
    }

    func dropSuspicion() throws(StorageError) { try remove(CacheDirectory.suspicionName) }
}
