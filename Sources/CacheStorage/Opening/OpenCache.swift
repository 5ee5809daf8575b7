import Glibc
package import PrefetchModel

/// A cache opened for writing: locked and checked.
package struct OpenCache: Sendable {
    package let directory: CacheDirectory
    package let database: CacheDatabase
    package let content: ContentStore
    package let partials: PartialStore
    /// The repairs of ``openForRun(path:waiting:at:)``.
    package private(set) var repair = Repair()
    /// Whether it begins to use a rollback journal, on a file system new to it.
    package private(set) var beginsWithoutLog = false
    /// Whether existing files have another mode than new ones.
    package private(set) var hasFilesOfOtherMode = false
    /// Whether an earlier command found damage.
    private var wasSuspected = false
    /// Held while this value lives.
    private let lock: CacheLock

    package var log: RunLog { RunLog(database: database, content: content, partials: partials) }
    package var failures: FailureLog { FailureLog(database: database) }
    package var attributes: AttributeStore { AttributeStore(database: database) }
    package var placeholders: PlaceholderStore { PlaceholderStore(database: database) }
    package var hosts: HostLog { HostLog(database: database) }
    package var listings: ListingLog { ListingLog(database: database) }

    /// The reaction to a lock held by another run.
    package enum LockWaiting: Hashable, Sendable {
        case none
        /// Nil waits without limit.
        case upTo(Duration?)
    }

    package struct Repair: Sendable {
        /// The new name of a damaged database, and its damage.
        package var damage: (name: String, message: String)?
        /// Rows of a damaged database, or a missing one's snapshot; nil for an empty new one.
        package var salvage: SalvageReport?
        /// Images with missing or torn files after an unclean end; their rows were removed.
        package var tornImages = 0
        /// Images with missing files without an unclean end; their rows were removed.
        package var missingImages = 0
        package var hadNoDatabase = false
        package var untidy: StorageError?
    }

    /// Locks and opens a cache; without `creates`, a missing one is an error. If another run holds
    /// it, calls `whenHeld` once, with the holder if known, and waits; nil if that was in vain.
    package static func open(
        path: String, creates: Bool = true, waiting: LockWaiting, fileSystem: FileSystem? = nil,
        whenHeld: (LockHolder?) -> Void = { _ in }
    ) throws(StorageError) -> OpenCache? {
        let directory = try CacheDirectory(
            path: path, access: creates ? .readWrite : .existing, fileSystem: fileSystem)
        if !creates, try !CacheDatabase.checkFiles(directory) { throw directory.hasNoDatabase }
        guard let lock = try lock(directory, waiting, whenHeld) else { return nil }
        return try readingTwice(try OpenCache(directory: directory, lock: lock))
    }

    /// Opens a cache as ``open(path:waiting:)`` does, and repairs it after an unclean end. Removes
    /// rows of files that did not reach the disk and, as far as `check` finds them, of missing
    /// files. Collects orphaned files, unless `keepsOrphans` leaves them to the next run. Replaces
    /// a damaged database by a new one with the salvaged rows, and keeps the old one under another
    /// name.
    ///
    /// A small database is checked each time, a large one after an unclean end or on suspicion. The
    /// wall clock is at `now`. At most `openFolders` content folders are kept open. New files get
    /// the `mode`, which is stored; without one, the stored mode.
    package static func openForRun(
        path: String, waiting: LockWaiting, openFolders: Int = 256, check: FileCheck = .auto,
        mode: FileMode? = nil, keepsOrphans: Bool = false, at now: Timestamp,
        whenHeld: (LockHolder?) -> Void = { _ in }
    ) throws(StorageError) -> OpenCache? {
        let directory = try CacheDirectory(path: path, access: .readWrite)
        guard let lock = try lock(directory, waiting, whenHeld) else { return nil }
        func recovered(usesSnapshot: Bool = true) throws(StorageError) -> OpenCache {
            var cache = try OpenCache(
                recovering: directory, lock, openFolders: openFolders, mode: mode,
                usesSnapshot: usesSnapshot, keepsOrphans: keepsOrphans, at: now)
            cache.repair.missingImages = try MissingFiles(
                database: cache.database, content: cache.content
            ).remove(check, at: now)
            cache.repair.untidy = cache.content.untidy
            return cache
        }
        // Everything opened above is closed after an error: SQLite removes logs by name.
        let damage: StorageError
        do {
            return try readingTwice(try recovered())
        } catch  where error.isDamage {
            damage = error
        }
        do {
            let (name, report) = try CacheDatabase.salvage(directory, at: now)
            var cache = try readingTwice(try recovered())
            cache.repair.damage = (name, damage.message)
            cache.repair.salvage = report
            return cache
        } catch  where error.isDamage {
            // The salvaged database is damaged itself: the disk or this program is at fault.
            let name = try CacheDatabase.setAside(in: directory, at: now)
            var cache = try recovered(usesSnapshot: false)
            cache.repair.damage = (name, error.message)
            cache.repair.hadNoDatabase = false
            return cache
        }
    }

    /// Calls `body` again if its error may come from one failing read, which does not prove damage.
    private static func readingTwice(
        _ body: @autoclosure () throws(StorageError) -> OpenCache
    ) throws(StorageError) -> OpenCache {
        do {
            return try body()
        } catch {
            guard error.mayBeFailingRead else { throw error }
            return try body()
        }
    }

    private static func lock(
        _ directory: CacheDirectory, _ waiting: LockWaiting, _ whenHeld: (LockHolder?) -> Void
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

    private init(
        recovering directory: CacheDirectory, _ lock: CacheLock, openFolders: Int, mode: FileMode?,
        usesSnapshot: Bool, keepsOrphans: Bool, at now: Timestamp
    ) throws(StorageError) {
        try self.init(
            directory: directory, lock: lock, openFolders: openFolders, mode: mode,
            usesSnapshot: usesSnapshot)
        if directory.isDatabaseDamageCertain {
            throw .damaged("checking", database.path, "an earlier run found damage in it")
        }
        let isSuspected = directory.isDatabaseSuspected
        wasSuspected = isSuspected
        var mayHaveOrphans = false
        if isSuspected || database.size <= CacheDatabase.sizeAlwaysChecked {
            try database.findDamage(.thorough)
            mayHaveOrphans = try database.removeUnfoundedFreshness()
            if try log.lastRunMayHaveLeftOrphans() { mayHaveOrphans = true }
        } else if try log.lastRunMayHaveLeftOrphans() {
            mayHaveOrphans = true
            try database.findDamage(.quick)
        }
        if isSuspected { try directory.dropSuspicion() }
        repair.tornImages = try log.removeTornRows(bootID: BootID.current(), at: now)
        let isRemoving = try database.time(of: .removalUnfinished) != nil
        try log.removeOrphans(scansContent: !keepsOrphans && (mayHaveOrphans || isRemoving))
        if keepsOrphans {
            if mayHaveOrphans, try !content.isEmpty() { try noteUnfinishedRemoval(at: now) }
        } else if isRemoving {
            try database.endRemoval(in: content)
        }
    }

    private init(
        directory: CacheDirectory, lock: CacheLock, openFolders: Int = 256, mode: FileMode? = nil,
        usesSnapshot: Bool = true
    ) throws(StorageError) {
        self.directory = directory
        self.lock = lock
        // A new database holds no mode.
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
        beginsWithoutLog = directory.hasJournal && (isNew || database.hasLeftLog)
        let remembered = try isNew ? usual : database.fileMode()
        partials = try PartialStore(directory: directory, database: database)
        if let mode = mode ?? remembered {
            try use(mode)
            try directory.applyModeToLayout()
            hasFilesOfOtherMode =
                mode != remembered ?? .ownersAlone && (!isNew || repair.hadNoDatabase)
        }
    }

    /// Gives new files this mode, now and in later runs.
    func use(_ mode: FileMode) throws(StorageError) {
        if try database.fileMode() != mode {
            try database.set(.fileMode, to: Int64(mode.ofFiles))
        }
        directory.use(mode)
        try database.keepLog(mode.isShared)
    }

    // MARK: While it is open

    /// Whether the last complete pruning by a run was a day ago or more, or in the future.
    package func isTimeToPrune(at now: Timestamp) throws(StorageError) -> Bool {
        guard let last = try database.time(of: .lastPruned) else { return true }
        // Timers may fire a little early.
        return now.timeSince(last) > .seconds(23.5 * 3600) || last > now
    }

    package func notePruning(at now: Timestamp) throws(StorageError) {
        try database.set(.lastPruned, to: now.milliseconds)
    }

    /// Checks that this process alone writes the cache: throws when the name of the folder, the
    /// lock or the database does not lead to the open file any more.
    package func checkHold() throws(StorageError) {
        func lost(_ path: String) -> StorageError {
            .refused(
                path, "was removed or replaced while this run held the cache",
                hint: "stop other programs that change the cache, and run again")
        }
        guard directory.isInPlace else { throw lost(directory.path) }
        guard lock.isInPlace(in: directory) else {
            throw lost(directory.path(of: CacheDirectory.lockName))
        }
        guard database.isInPlace else { throw lost(database.path) }
    }

    /// Makes the next run salvage the database, which turned out to be damaged during this one.
    /// Nothing may be written afterwards. A failing disk makes a sound database look damaged. So
    /// the database is checked first; without a finding, the next run only checks it again, the
    /// first time this happens. Returns whether the next run salvages it.
    package func noteDamage() throws(StorageError) -> Bool {
        // The name may lead to another database by now.
        try checkHold()
        var isCertain = wasSuspected
        do {
            try database.confirmDamage(.thorough)
        } catch {
            guard error.isDamage else { throw error }
            isCertain = true
        }
        directory.suspectDatabase(isCertain: isCertain)
        return isCertain
    }

    /// Makes all changes durable, including the files that rows of a killed run name: SQLite moves
    /// the log into the database at the last close without synchronising them first.
    package func synchronize() throws(StorageError) {
        try content.synchronize()
        try database.checkpoint(truncates: true)
    }

    /// Moves the log into the database and closes it; its file alone is complete then. The log
    /// stays if another program reads it or the disk is full. Nothing may be used afterwards.
    package func close() throws(StorageError) {
        do {
            try synchronizeLongLog()
            try database.checkpoint(truncates: true)
        } catch {
            // Everything is committed, in the log.
            guard error.isDiskFull else { throw error }
        }
        database.close()
    }

    /// Makes all changes durable if the log has grown: a warm run's few pages need no sync.
    package func synchronizeLongLog() throws(StorageError) {
        if database.logSize > .mebibytes(1) { try synchronize() }
    }

    /// Stores images outside a run: commits the files that `place` stores and pins together with
    /// the rows that it returns. The names of `variants` are recorded as in a run. After an error
    /// nothing of the images is left, as far as the disk allows. Since no run is logged, a property
    /// marks the operation. After a kill, the next run looks for files without a row.
    package func seed(
        _ variants: [RequestedVariant], at now: Timestamp,
        _ place: () throws(StorageError) -> [ImageChange]
    ) throws(StorageError) {
        // Removes the leftovers of a killed run, which could collide with the new files.
        try log.removeOrphans(scansContent: false)
        let ownsNote = try database.write("noting names") { database in
            try VariantNames.note(variants, in: database)
            return try Schema.Property.noteUnfinishedRemoval(at: now, in: database)
        }
        do {
            // Must reach the disk before the first file.
            try database.synchronizeLog()
            let rows = try place()
            let writer = try MetadataWriter(self, run: 0, configuration: .init())
            for row in rows { writer.enqueue(.image(row), token: nil) }
            writer.finish()
            try writer.run { _ in }
            // A complete body makes a partial download useless.
            for row in rows { try partials.discard(key: row.key) }
        } catch {
            tidy()
            throw error
        }
        if ownsNote { try database.endRemoval(in: content) }
    }

    /// Removes files without rows, which would keep a full disk full.
    private func tidy() {
        do {
            // A power cut must not restore removed rows.
            try database.synchronizeLog()
            try log.removeOrphans(scansContent: true)
        } catch {
            // The next run tries again.
        }
    }
}
