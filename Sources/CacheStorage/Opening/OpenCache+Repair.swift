import Glibc
package import PrefetchModel

// The commands `verify --repair` and `chmod`. Only for the holder of the lock, while nothing is
// being stored.

extension OpenCache {
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
