import Glibc
package import PrefetchModel
internal import SQLite

extension OpenCache {
    /// The age of a snapshot at which a run replaces it. Its file's time is its age.
    private static let snapshotInterval = Duration.seconds(86_400)
    /// A megabyte in pages of 4,096 bytes: a few milliseconds.
    fileprivate static let pagesAtOnce = 256
    private static let unfinishedSnapshotName = "tmp/snapshot.sqlite"

    /// Copies the database into the same folder, unless the last copy is less than a day old. The
    /// copy replaces the last one once it is complete, sound and on the disk. It ends soon after
    /// `isStopped` returns true, and nothing is left then. An error does not affect the cache.
    package func takeSnapshot(at now: Timestamp, isStopped: () -> Bool) throws(StorageError) {
        if let last = directory.snapshotTime {
            let age = now.timeSince(last)
            // A snapshot from the future was made by another clock.
            if age >= .zero, age < OpenCache.snapshotInterval { return }
        }
        let name = OpenCache.unfinishedSnapshotName
        defer { removeUnfinishedSnapshot() }
        removeUnfinishedSnapshot()
        try directory.requireRoom(forCopyOf: database, CacheDirectory.snapshotName)
        try directory.makeFile(name)
        let isWhole = try database.copy(
            to: directory.path(of: name), pagesAtOnce: OpenCache.pagesAtOnce, isStopped: isStopped)
        guard isWhole else { return }
        try directory.synchronize(name)
        try directory.rename(name, to: CacheDirectory.snapshotName)
    }

    /// Removes the snapshot of a cache, to make space, unless the database is suspected of damage:
    /// it may be the only intact copy. Returns whether there was one.
    package static func removeSnapshot(path: String) -> Bool {
        do {
            let directory = try CacheDirectory(path: path, access: .readOnly)
            guard directory.contains(CacheDirectory.snapshotName), !directory.isDatabaseSuspected
            else { return false }
            try directory.remove(CacheDirectory.snapshotName)
            return true
        } catch {
            // The caller reports the error.
            return false
        }
    }

    private func removeUnfinishedSnapshot() {
        // The next run removes the rest with the other temporary files.
        try? directory.removeDatabase(OpenCache.unfinishedSnapshotName)
    }
}

extension CacheDirectory {
    /// Copies the database into an empty file and checks the copy. Returns false if stopped.
    func copyDatabase(to name: String, isStopped: () -> Bool) throws(StorageError) -> Bool {
        let database = try CacheDatabase(directory: self, access: .readOnly)
        defer { database.close() }
        try requireRoom(forCopyOf: database, name)
        return try database.copy(
            to: path(of: name), pagesAtOnce: OpenCache.pagesAtOnce, isStopped: isStopped)
    }

    /// - Throws: when the copy would not fit, which would fill the disk for other programs, too.
    fileprivate func requireRoom(
        forCopyOf database: CacheDatabase, _ name: String
    ) throws(StorageError) {
        guard let free = freeSize, free.bytes <= database.size.bytes + database.size.bytes / 8
        else { return }
        errno = ENOSPC
        throw .system("write", path(of: name))
    }

    var hasNoDatabase: StorageError {
        let files = contentFileCount
        let hasSnapshot = snapshotTime != nil
        guard files > 0 || hasSnapshot else { return .missing(path, "holds no images yet") }
        return .missing(
            path, "has lost its database: \(files) content files have no rows",
            hint: hasSnapshot
                ? "`prefetch run` restores it from the snapshot; leave the files in place"
                : "`prefetch run` downloads listed images again and keeps identical files")
    }

    /// The number of content files, for messages: folders that cannot be read count as empty.
    private var contentFileCount: Int {
        guard let content = try? handle.folder("content"), let folders = try? content.names()
        else { return 0 }
        return folders.reduce(0) { $0 + ((try? content.folder($1).names().count) ?? 0) }
    }

    var snapshotTime: Timestamp? {
        guard let status = handle.status(of: CacheDirectory.snapshotName), status.isFile,
            status.size > 0
        else { return nil }
        return Timestamp(status.st_mtim)
    }
}

extension CacheDatabase {
    fileprivate func copy(
        to copyPath: String, pagesAtOnce: Int, isStopped: () -> Bool
    ) throws(StorageError) -> Bool {
        try StorageError.converting("taking a snapshot", copyPath) {
            do {
                return try connection.access { connection in
                    let copy = try Connection(path: copyPath, access: .readWrite)
                    // No other process sees this file, and it is synchronised as a whole.
                    try copy.permitUnsafeChanges()
                    try copy.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
                    let isWhole = try connection.backUp(
                        to: copy, pagesAtOnce: pagesAtOnce, isStopped: isStopped)
                    try copy.close()
                    return try isWhole && CacheDatabase.isSound(copyPath, isStopped: isStopped)
                }
            } catch let error as SQLiteError where error.code.primary == .interrupted {
                return false
            }
        }
    }

    private static func isSound(_ path: String, isStopped: () -> Bool) throws -> Bool {
        let copy = try Connection(path: path, access: .immutable)
        let finding = try copy.withInterruption(when: isStopped) {
            try copy.first("PRAGMA quick_check(1)") { try $0.text(0) }
        }
        guard finding == "ok" else {
            throw SQLiteError(code: .corrupt, message: finding ?? "cannot be checked")
        }
        return true
    }
}

/// When a run leaves a snapshot of the database.
package enum SnapshotRule: String, CaseIterable, Sendable {
    /// After a run that changed something, if the last snapshot is a day old.
    case daily
    case off
}
