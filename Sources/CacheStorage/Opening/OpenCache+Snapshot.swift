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

    // The commands `verify --repair` and `chmod`. Only for the holder of the lock, while nothing is
    // being stored.

    /// Permanently removes the rows of missing or damaged content files, then the files' remains.
    package func dropImages(_ images: [StoredImage], at now: Timestamp) throws(StorageError) {
        guard !images.isEmpty else { return }
        try checkHold()
        try MissingFiles(database: database, content: content).removeRows(of: images, at: now)
    }

    /// Removes a content file that no row names, by its path `content/ab/NAME`. Returns false if
    /// permissions forbid it, or it is not a file.
    package func removeOrphan(_ path: String) throws(StorageError) -> Bool {
        try checkHold()
        guard unlinkat(directory.handle.number, path, 0) == 0 || errno == ENOENT else {
            try content.bear(.system("unlink", directory.path(of: path)))
            return false
        }
        return true
    }

    package func tidyCrashLog(at now: Timestamp) throws(StorageError) {
        try CrashLog(directory: directory, at: now).end()
    }

    /// Stores the finished folders of an interrupted verification; nil after a complete one.
    package func setVerifiedFolders(_ count: Int?) throws(StorageError) {
        guard let count else { return try database.remove(.verifiedFolders) }
        try database.set(.verifiedFolders, to: Int64(count))
    }

    /// Notes that no content file must be kept for rows lost with a damaged database.
    package func endKeepingOrphans() throws(StorageError) {
        try database.remove(.orphansKeptBefore)
    }

    package struct ModeChanges: Sendable {
        package var files = 0
        package var folders = 0
        /// Files and folders that had the mode before.
        package var unchanged = 0
        /// Names that do not belong to the cache, or belong to another user.
        package var skipped = 0
        package var firstSkipped: String?
        /// Content files with other names elsewhere that were copied first; among the files.
        package var copied = 0
        /// Such files that keep their mode for lack of room for copies.
        package var withoutRoom = 0
        package var bytesWithoutRoom = 0

        fileprivate mutating func skip(_ path: String) {
            skipped += 1
            firstSkipped = firstSkipped ?? path
        }
    }

    /// Gives all files and folders of the cache these permissions, and stores the mode for new
    /// ones. A content file that has names elsewhere too, in another cache or an export, is
    /// replaced by a copy: a mode belongs to the file, not to its name. Lists stay private, see
    /// ``ListStore``. It may be interrupted and repeated. Readers continue as far as they may still
    /// read the cache. Calls `progress` after each content folder.
    package func changeModes(
        to mode: FileMode, progress: (ModeChanges) -> Void
    ) throws(StorageError) -> ModeChanges {
        try checkHold()
        try use(mode)
        var changes = ModeChanges()
        // Its own folder first: if others lose access, they lose it to the whole cache.
        for name in CacheDirectory.layout {
            try change(mode, name, in: directory.handle, path: name, &changes)
        }
        let damaged = CacheDatabase.damagedPrefix
        for name in try directory.handle.names()
        where name.hasPrefix(damaged) {
            try change(mode, name, in: directory.handle, path: name, &changes)
        }
        try changeAll(mode, inFolder: "tmp", isOurs: { _ in true }, &changes)
        let lists = ListStore.folderName
        try change(.ownersAlone, lists, in: directory.handle, path: lists, &changes)
        try changeAll(.ownersAlone, inFolder: lists, isOurs: { _ in true }, &changes)
        try changeAll(mode, inFolder: "content", isOurs: OpenCache.isFolderOfContent, &changes)
        for number in CacheInspection.folders {
            try changeAll(
                mode, inFolder: CacheInspection.path(ofFolder: number),
                isOurs: { ContentDigest(contentFile: $0) != nil }, &changes)
            progress(changes)
        }
        return changes
    }

    private static func isFolderOfContent(_ name: String) -> Bool {
        name.utf8.count == 2
            && name.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    private func changeAll(
        _ mode: FileMode, inFolder path: String, isOurs: (String) -> Bool,
        _ changes: inout ModeChanges
    ) throws(StorageError) {
        // Nil if it is missing, or already counted as a foreign name.
        guard let folder = try directory.handle.existingFolder(path) else { return }
        var linked: [String] = []
        for name in try folder.names() {
            guard isOurs(name) else {
                changes.skip("\(path)/\(name)")
                continue
            }
            if try change(mode, name, in: folder, path: "\(path)/\(name)", &changes) {
                linked.append(name)
            }
        }
        guard !linked.isEmpty else { return }
        // The files of a killed command could collide with the new ones.
        if changes.copied + changes.withoutRoom == 0 { try log.removeOrphans(scansContent: false) }
        try content.makeOwn(linked, in: folder, &changes)
    }

    /// Returns whether `path`, below the cache directory, is a file with other names and its old
    /// mode.
    @discardableResult
    private func change(
        _ mode: FileMode, _ name: String, in folder: FileDescriptor, path: String,
        _ changes: inout ModeChanges
    ) throws(StorageError) -> Bool {
        let change = try folder.setMode(
            mode, of: name, sparesLinks: ContentDigest(contentFile: name) != nil)
        switch change {
        case .linked: return true
        case .changed(isFolder: false): changes.files += 1
        case .changed(isFolder: true): changes.folders += 1
        case .unchanged: changes.unchanged += 1
        case .missing: break
        case .foreign: changes.skip(path)
        }
        return false
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
