import Glibc
package import PrefetchModel

/// A cache opened for writing: locked, checked and migrated.
package struct OpenCache: Sendable {
    package let directory: CacheDirectory
    package let database: CacheDatabase
    package let content: ContentStore
    package let log: RunLog
    package let failures: FailureLog
    package let attributes: AttributeStore
    package let placeholders: PlaceholderStore
    package let hosts: HostLog
    package let listings: ListingLog
    package let partials: PartialStore
    /// What ``openForRun(path:waiting:at:)`` had to mend.
    package private(set) var repair = Repair()
    /// Whether it lies on a network file system from now on, and therefore has a rollback journal in place of a log.
    package private(set) var beginsWithoutLog = false
    /// Whether files from before have another mode than those that are stored from now on.
    package private(set) var hasFilesOfOtherMode = false
    /// Whether a command had met damage before.
    private var wasSuspected = false
    /// Held as long as this value lives.
    private let lock: CacheLock

    /// What to do while another run holds the cache.
    package enum Waiting: Hashable, Sendable {
        case none
        /// Nil waits however long it takes.
        case upTo(Duration?)
    }

    /// What was found after an unclean end, and mended.
    package struct Repair: Sendable {
        /// The name that a damaged database has now, and what was wrong with it.
        package var damage: (name: String, message: String)?
        /// What the new database has of a damaged one, or of the snapshot of one that is gone; nil where it
        /// was begun anew.
        package var salvage: SalvageReport?
        /// Images whose files were gone or torn, and whose rows have been removed.
        package var tornImages = 0
        /// Images whose files were missing though no run has ended badly, and whose rows have been
        /// removed.
        package var missingImages = 0
        /// Whether there were content files and no database.
        package var hadNoDatabase = false
        /// What could not be tidied up, the first of it.
        package var untidy: StorageError?
    }

    // MARK: Opening

    /// Locks and opens a cache, making it where it is missing. When another run holds it,
    /// `whenHeld` hears once of whom, before any waiting; of nobody when it is not known. The system is asked for the file
    /// system, unless it is given.
    ///
    /// - Returns: nil when another run holds the cache and waiting for it is over.
    /// - Throws: when the cache cannot be used.
    package static func open(
        path: String, waiting: Waiting, fileSystem: FileSystem? = nil,
        whenHeld: (LockHolder?) -> Void = { _ in }
    ) throws(StorageError) -> OpenCache? {
        let directory = try CacheDirectory(
            path: path, access: .readWrite, fileSystem: fileSystem)
        guard let lock = try lock(directory, waiting, whenHeld) else { return nil }
        return try OpenCache(directory: directory, lock: lock)
    }

    /// The same for a cache that is there; nothing is made of what is none.
    package static func openExisting(
        path: String, waiting: Waiting, whenHeld: (LockHolder?) -> Void = { _ in }
    ) throws(StorageError) -> OpenCache? {
        let directory = try CacheDirectory(path: path, access: .existing)
        guard try CacheDatabase.checkFiles(directory) else {
            throw directory.hasNoDatabase
        }
        guard let lock = try lock(directory, waiting, whenHeld) else { return nil }
        return try OpenCache(directory: directory, lock: lock)
    }

    /// Opens a cache as ``open(path:waiting:)`` does, and mends what an unclean end has left: rows of
    /// files that did not reach the disk go, orphaned files are collected, and a database that is
    /// damaged is set aside for a new one with what can be salvaged of it. And rows go whose files are
    /// missing, as far as `check` finds them.
    ///
    /// A small database is checked each time, a large one after an unclean end or when a command has
    /// met damage in it. The wall clock is at `now`. At most `openFolders` folders of content are kept
    /// open. New files get the `mode`, which is remembered; without one, the mode that is.
    package static func openForRun(
        path: String, waiting: Waiting, openFolders: Int = 256, check: FileCheck = .auto,
        mode: FileMode? = nil, at now: Timestamp, whenHeld: (LockHolder?) -> Void = { _ in }
    ) throws(StorageError) -> OpenCache? {
        let directory = try CacheDirectory(path: path, access: .readWrite)
        guard let lock = try lock(directory, waiting, whenHeld) else { return nil }
        func recovered(usesSnapshot: Bool = true) throws(StorageError) -> OpenCache {
            var cache = try OpenCache(
                recovering: directory, lock, openFolders: openFolders, mode: mode,
                usesSnapshot: usesSnapshot, at: now)
            cache.repair.missingImages = try MissingFiles(
                database: cache.database, content: cache.content
            ).remove(check, at: now)
            cache.repair.untidy = cache.content.untidy
            return cache
        }
        // What was opened is closed when one of these has failed: SQLite removes logs by name.
        let damage: StorageError
        do throws(StorageError) {
            return try recovered()
        } catch {
            // Statements that speak of what is not there fail before anything is checked.
            if !error.isDamage, error.raisesSuspicion,
                let found = CacheDatabase.schemaDamage(in: directory)
            {
                damage = found
            } else if error.isDamage {
                damage = error
            } else {
                throw error
            }
        }
        do throws(StorageError) {
            let (name, report) = try CacheDatabase.salvage(directory, at: now)
            var cache = try recovered()
            cache.repair.damage = (name, damage.message)
            cache.repair.salvage = report
            return cache
        } catch  where error.isDamage {
            // What was salvaged is damaged itself: the disk may be at fault, or the program.
            let name = try CacheDatabase.setAside(in: directory, at: now)
            var cache = try recovered(usesSnapshot: false)
            cache.repair.damage = (name, error.message)
            cache.repair.hadNoDatabase = false
            return cache
        }
    }

    private static func lock(
        _ directory: CacheDirectory, _ waiting: Waiting, _ whenHeld: (LockHolder?) -> Void
    ) throws(StorageError) -> CacheLock? {
        if let lock = try CacheLock.acquire(directory) { return lock }
        whenHeld(CacheLock.holder(in: directory))
        guard case .upTo(let limit) = waiting else { return nil }
        let deadline = limit.map { ContinuousClock.now + $0 }
        while deadline.map({ .now < $0 }) ?? true {
            // A kernel lock has no wait with a deadline.
            usleep(50_000)
            if let lock = try CacheLock.acquire(directory) { return lock }
        }
        return nil
    }

    /// Opens a cache and mends what an unclean end has left.
    private init(
        recovering directory: CacheDirectory, _ lock: CacheLock, openFolders: Int, mode: FileMode?,
        usesSnapshot: Bool, at now: Timestamp
    ) throws(StorageError) {
        try self.init(
            directory: directory, lock: lock, openFolders: openFolders, mode: mode,
            usesSnapshot: usesSnapshot)
        if directory.isDatabaseDamageCertain {
            throw StorageError(
                operation: "checking", subject: database.path, code: .database(11),
                message: "an earlier run met damage in it")
        }
        let isSuspected = directory.isDatabaseSuspected
        wasSuspected = isSuspected
        var mayHaveStrays = false
        if isSuspected || database.size <= CacheDatabase.sizeAlwaysChecked {
            try database.findDamage(isSuspected ? .complete : .thorough)
            mayHaveStrays = try database.removeUnfoundedFreshness()
            if try log.lastRunMayHaveLeftStrays() { mayHaveStrays = true }
        } else if try log.lastRunMayHaveLeftStrays() {
            mayHaveStrays = true
            try database.findDamage(.quick)
        }
        if isSuspected { try directory.dropSuspicion() }
        repair.tornImages = try log.removeTornRows(bootID: BootID.current(), at: now)
        let isRemoving = try database.read("reading properties") { database in
            try Schema.Property.removalUnfinished.time(in: database) != nil
        }
        try log.collectStrays(scansContent: mayHaveStrays || isRemoving)
        if isRemoving { try database.endRemoval(in: content) }
    }

    private init(
        directory: CacheDirectory, lock: CacheLock, openFolders: Int = 256, mode: FileMode? = nil,
        usesSnapshot: Bool = true
    ) throws(StorageError) {
        self.directory = directory
        self.lock = lock
        // A database that is made anew remembers nothing.
        let usual = directory.modeOfContent
        content = try ContentStore(directory: directory, openFolders: openFolders)
        try CacheDatabase.undoReplacement(in: directory)
        let isNew = try !CacheDatabase.checkFiles(directory)
        if isNew {
            let hasContent = try !content.isEmpty()
            repair.salvage = try CacheDatabase.make(
                in: directory, keepsOrphans: hasContent, usesSnapshot: usesSnapshot && hasContent)
            repair.hadNoDatabase = hasContent
            try directory.dropSuspicion()
        }
        database = try CacheDatabase(directory: directory, access: .readWrite)
        beginsWithoutLog =
            directory.fileSystem.isNetwork && (isNew || database.hasLeftLog)
        let remembered = try isNew ? usual : database.fileMode()
        if let mode = mode ?? remembered {
            try OpenCache.use(mode, directory, database)
            try directory.applyModeToLayout()
            hasFilesOfOtherMode =
                mode != remembered ?? .ownersAlone && (!isNew || repair.hadNoDatabase)
        }
        partials = try PartialStore(directory: directory, database: database)
        log = RunLog(database: database, content: content, partials: partials)
        hosts = HostLog(database: database)
        listings = ListingLog(database: database)
        failures = FailureLog(database: database)
        attributes = AttributeStore(database: database)
        placeholders = PlaceholderStore(database: database)
    }

    /// New files get that mode from now on, and in the runs to come.
    func use(_ mode: FileMode) throws(StorageError) {
        try OpenCache.use(mode, directory, database)
    }

    private static func use(
        _ mode: FileMode, _ directory: CacheDirectory, _ database: CacheDatabase
    ) throws(StorageError) {
        if try database.fileMode() != mode { try database.remember(mode) }
        directory.use(mode)
        try database.keepLog(mode.isShared)
    }

    // MARK: While it is open

    /// Whether the last run that pruned to its end did so a day ago or more, or in the future.
    package func isTimeToPrune(at now: Timestamp) throws(StorageError) -> Bool {
        let last = try database.read("reading properties") { database in
            try Schema.Property.lastPruned.time(in: database)
        }
        guard let last else { return true }
        // Timers come a little early at times.
        return now.timeSince(last) > .seconds(23.5 * 3600) || last > now
    }

    package func notePruning(at now: Timestamp) throws(StorageError) {
        try database.write("noting what was pruned") { database in
            try Schema.Property.lastPruned.set(to: now, in: database)
        }
    }

    /// What the content files take that rows name.
    package func usage() throws(StorageError) -> DiskUsage {
        try database.usage()
    }

    /// Sees that this process alone writes the cache, and that what it writes can be found: the names
    /// of the folder, the lock and the database have to lead to what was opened.
    ///
    /// - Throws: when one of them was removed, moved or replaced.
    package func checkHold() throws(StorageError) {
        func lost(_ path: String) -> StorageError {
            .refused(
                path, "was removed or replaced while this run held the cache",
                hint: "see that nothing else changes the cache, and run again")
        }
        guard directory.isInPlace else { throw lost(directory.path) }
        guard lock.isInPlace(in: directory) else {
            throw lost(directory.path(of: CacheDirectory.lockName))
        }
        guard database.isInPlace else { throw lost(database.path) }
    }

    /// Has the next run salvage a database that turned out to be damaged in the middle of this one. Nothing
    /// is to be written afterwards.
    ///
    /// A disk that fails makes a sound database look damaged. So it is checked first, and one in which
    /// nothing is found is only looked at by the next run, the first time that this happens.
    ///
    /// - Returns: whether the next run salvages it.
    package func noteDamage() throws(StorageError) -> Bool {
        // What stands under the name may be another one by now.
        try checkHold()
        var isCertain = wasSuspected
        do throws(StorageError) {
            try database.findDamage(.complete)
        } catch {
            guard error.isDamage else { throw error }
            isCertain = true
        }
        directory.suspectDatabase(isCertain: isCertain)
        return isCertain
    }

    /// Makes what was changed durable, with the files that rows of a killed run name: SQLite itself
    /// moves the log into the database when the last connection closes, and would not sync them
    /// first.
    package func synchronize() throws(StorageError) {
        try content.synchronize()
        try database.checkpoint(truncates: true)
    }

    /// Moves the log into the database and closes it, so that the database file alone is whole and
    /// nothing stays beside it, unless another program reads it or the disk has no room for that.
    /// Nothing is to be read or written afterwards.
    package func close() throws(StorageError) {
        do throws(StorageError) {
            try synchronizeLongLog()
            try database.checkpoint(truncates: true)
        } catch {
            // All of it is committed, in the log.
            guard error.isDiskFull else { throw error }
        }
        database.close()
    }

    /// Makes what was changed durable when the log has grown: a run over a warm list adds a few pages
    /// and has nothing else to move.
    package func synchronizeLongLog() throws(StorageError) {
        if database.logSize > .mebibytes(1) { try synchronize() }
    }
}
