import Glibc
package import PrefetchModel
internal import SQLite

extension OpenCache {
    /// A snapshot is as old as its file.
    private static let snapshotInterval = Duration.seconds(86_400)
    /// A megabyte of 4 096-byte pages: some milliseconds.
    private static let pagesAtOnce = 256
    private static let unfinishedSnapshotName = "tmp/snapshot.sqlite"

    /// Copies the database beside it, as it is now, unless there is a copy of the last day. It takes the place of
    /// the last one when it is whole, sound and on the disk; until then that one stays.
    ///
    /// - Parameters:
    ///   - now: by the wall clock.
    ///   - isStopped: ends it soon after it says true; nothing is left then.
    /// - Throws: when there is no room for it, or it cannot be written, or the database is damaged; the cache is
    ///   none the worse for that.
    package func takeSnapshot(
        at now: Timestamp, isStopped: () -> Bool
    ) throws(StorageError) {
        if let last = directory.snapshotTime {
            let age = now.timeSince(last)
            // One from the future was made by another clock.
            if age >= .zero, age < OpenCache.snapshotInterval { return }
        }
        let name = OpenCache.unfinishedSnapshotName
        defer { removeUnfinishedSnapshot() }
        removeUnfinishedSnapshot()
        try requireRoomForSnapshot()
        try directory.makeFile(name)
        let isWhole = try database.copy(
            to: directory.path(of: name), pagesAtOnce: OpenCache.pagesAtOnce, isStopped: isStopped)
        guard isWhole else { return }
        try directory.synchronize(name)
        try directory.rename(name, to: CacheDirectory.snapshotName)
    }

    /// Removes the snapshot of a cache, so that a command has the room to remove what takes more. Not where the database is
    /// suspected of damage: then it may be all that is left.
    ///
    /// - Returns: whether there was one.
    package static func removeSnapshot(path: String) -> Bool {
        do throws(StorageError) {
            let directory = try CacheDirectory(path: path, access: .readOnly)
            guard directory.contains(CacheDirectory.snapshotName), !directory.isDatabaseSuspected
            else { return false }
            try directory.remove(CacheDirectory.snapshotName)
            return true
        } catch {
            // What kept the cache from being opened is said by the caller.
            return false
        }
    }

    private func removeUnfinishedSnapshot() {
        // What stays is removed with the other temporary files by the next run.
        for suffix in [""] + CacheDatabase.companions {
            try? directory.remove(OpenCache.unfinishedSnapshotName + suffix)
        }
    }

    /// A copy that will not fit would fill the disk for others, too.
    private func requireRoomForSnapshot() throws(StorageError) {
        guard let free = directory.freeSize,
            free.bytes <= database.size.bytes + database.size.bytes / 8
        else { return }
        errno = ENOSPC
        throw .system("write", directory.path(of: CacheDirectory.snapshotName))
    }
}

extension CacheDirectory {
    /// What is said of a cache without a database.
    var hasNoDatabase: StorageError {
        guard snapshotTime != nil else { return .missing(path, "holds no images yet") }
        return .missing(
            path, "has lost its database",
            hint: "`prefetch run` makes it anew from the snapshot; leave the files where they are")
    }

    /// When the snapshot was taken; nil without one.
    var snapshotTime: Timestamp? {
        var status = stat()
        guard
            fstatat(handle.number, CacheDirectory.snapshotName, &status, AT_SYMLINK_NOFOLLOW) == 0,
            status.st_mode & S_IFMT == S_IFREG, status.st_size > 0
        else { return nil }
        return Timestamp(
            milliseconds: Int64(status.st_mtim.tv_sec) * 1000
                + Int64(status.st_mtim.tv_nsec) / 1_000_000)
    }
}

extension CacheDatabase {
    /// Copies all of the database into an empty file, and checks the copy.
    ///
    /// - Returns: false when it was stopped.
    fileprivate func copy(
        to copyPath: String, pagesAtOnce: Int, isStopped: () -> Bool
    ) throws(StorageError) -> Bool {
        do {
            return try access { connection in
                let copy = try Connection(path: copyPath, access: .readWrite)
                // Nobody else sees this file, and it is synchronised as a whole.
                try copy.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
                let isWhole = try connection.backUp(
                    to: copy, pagesAtOnce: pagesAtOnce, isStopped: isStopped)
                try copy.close()
                return try isWhole && CacheDatabase.isSound(copyPath, isStopped: isStopped)
            }
        } catch let error as SQLiteError where error.code.primary == .interrupted {
            return false
        } catch {
            throw CacheDatabase.translate(
                error, operation: "taking a snapshot", path: copyPath)
        }
    }

    /// - Throws: where it is damaged, as ``findDamage(_:)`` finds it quickly.
    private static func isSound(_ path: String, isStopped: () -> Bool) throws -> Bool {
        let copy = try Connection(path: path, access: .immutable)
        try copy.execute("PRAGMA cell_size_check = ON")
        let finding = try copy.withInterruption(when: isStopped) {
            try Statement(copy, sql: "PRAGMA quick_check(1)").first { try $0.text(0) }
        }
        guard finding == "ok" else {
            throw SQLiteError(code: .corrupt, message: finding ?? "cannot be checked")
        }
        return true
    }
}
