internal import CLinux
import Glibc
package import PrefetchModel
import Synchronization
import Threading

/// Writes and removes content files. Thread-safe; several threads write at once.
package final class ContentStore: Sendable {
    package let directory: CacheDirectory
    let content: FileDescriptor
    let temporary: FileDescriptor
    /// The most recently used of the 256 folders below `content`.
    private let shards: Monitor<OpenFolders>
    /// Digests with a file in place and an uncommitted row, with the number of
    /// pending rows. Such a file must not be removed although no row names it.
    private let pinned = Monitor([ContentDigest: Int]())
    let temporaryNames = Atomic(0)
    private let firstUntidy = Monitor<StorageError?>(nil)
    private let writesFileAttributes = Atomic(false)
    /// Whether a power cut may restore removed files.
    private let hasUnsyncedRemovals = Atomic(false)

    /// Creates a store that keeps at most `openFolders` content folders open.
    package init(directory: CacheDirectory, openFolders: Int = 256) throws(StorageError) {
        self.directory = directory
        shards = Monitor(OpenFolders(capacity: openFolders))
        content = try directory.handle.folder("content", isCreated: true)
        temporary = try directory.handle.folder("tmp", isCreated: true)
    }

    /// Stores bytes under their digest's name and pins the file until ``unpin(_:)``. An existing
    /// file is read and compared, since a disk or a program may have damaged it, and equal bytes
    /// are not written again. After ``writeFileAttributes()`` the file carries the extended
    /// attributes `user.xdg.origin.url`, without user information, and `user.mime_type`, if the
    /// file system allows (the names that curl and wget2 use).
    ///
    /// - Throws: When a system call fails; then no file has the final name.
    package func store(
        _ bytes: UnsafeRawBufferPointer, as image: StoredImage, originURL: String
    ) throws(StorageError) {
        pin(image.digest)
        do {
            try place(bytes, as: image, originURL: originURL)
        } catch {
            unpin(image.digest)
            throw error
        }
    }

    private func place(
        _ bytes: UnsafeRawBufferPointer, as image: StoredImage, originURL: String
    ) throws(StorageError) {
        let (folder, name) = try location(of: image.digest, image.format)
        if folder.hasFile(name, size: bytes.count),
            FileDescriptor.holds(bytes, name, in: folder)
        {
            return
        }
        _ = try placeNewFile(name, in: folder) { (number, path) throws(StorageError) in
            try FileDescriptor.write(bytes, to: number, path: path)
            guard writesFileAttributes.load(ordering: .relaxed) else { return true }
            // Attributes are optional: a file system may lack them, or space for a long URL.
            let values = [originURL, image.format.mediaType]
            for (name, value) in zip(ContentStore.fileAttributes, values) {
                _ = value.withCString { fsetxattr(number, name, $0, strlen($0), 0) }
            }
            return true
        }
    }

    private static let fileAttributes = ["user.xdg.origin.url", "user.mime_type"]

    /// Copies the extended attributes of a content file, as far as the file system allows.
    private static func copyAttributes(from source: Int32, to target: Int32) {
        for name in fileAttributes {
            withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 1) { value in
                let count = fgetxattr(source, name, value.baseAddress, value.count)
                if count >= 0 { _ = fsetxattr(target, name, value.baseAddress, count, 0) }
            }
        }
    }

    /// The folder and the name of a content file; creates a missing folder.
    func location(
        of digest: ContentDigest, _ format: ImageFormat
    ) throws(StorageError) -> (folder: FileDescriptor, name: String) {
        let hexadecimal = digest.description
        let name = "\(hexadecimal).\(format.fileExtension)"
        let number = UInt8(digest.leadingWords.0 >> 56)
        if let open = shards.withLock({ $0.use(number) }) { return (open, name) }
        // Two threads may open the same folder; either handle works, and the later one is kept.
        let opened = try content.folder(
            String(hexadecimal.prefix(2)), isCreated: true, mode: directory.fileMode)
        // Other users of the evicted handle keep it open.
        let closed = shards.withLock { $0.add(opened, number) }
        withExtendedLifetime(closed) {}
        return (opened, name)
    }

    /// Enables the extended attributes of files stored from now on. On ext4 they take a block each.
    package func writeFileAttributes() {
        writesFileAttributes.store(true, ordering: .relaxed)
    }

    /// Protects an existing file from removal until ``unpin(_:)``, for a pending row.
    package func pin(_ digest: ContentDigest) {
        pinned.withLock { $0[digest, default: 0] += 1 }
    }

    /// Removes a pin after the row is committed or abandoned.
    package func unpin(_ digest: ContentDigest) {
        pinned.withLock { pinned in
            guard let count = pinned[digest] else { return }
            pinned[digest] = count > 1 ? count - 1 : nil
        }
    }

    /// Removes a file that no row names, unless it is pinned for a pending row. Returns whether an
    /// existing file was removed.
    ///
    /// - Throws: When the removal fails. Missing permissions are recorded in ``untidy`` instead.
    @discardableResult
    func remove(_ digest: ContentDigest, format: ImageFormat) throws(StorageError) -> Bool {
        let (folder, name): (FileDescriptor, String)
        do {
            (folder, name) = try location(of: digest, format)
        } catch {
            try bear(error)
            return false
        }
        // Under the lock, so that no thread can pin the digest between the check and the removal.
        let code: Int32 = pinned.withLock { pinned in
            guard pinned[digest] == nil else { return ENOENT }
            return unlinkat(folder.number, name, 0) == 0 ? 0 : errno
        }
        guard code == 0 || code == ENOENT else {
            errno = code
            try bear(.system("unlink", folder.path(of: name)))
            return false
        }
        if code == 0 { hasUnsyncedRemovals.store(true, ordering: .relaxed) }
        return code == 0
    }

    // MARK: Own copies

    /// Replaces content files that have other hard links by copies with the mode of new files,
    /// which share blocks where the file system can. Each copy replaces its file atomically, after
    /// all of them are on the disk. Counts them in `changes`, also those without room for a copy.
    /// Only for the holder of the lock, while nothing is being stored.
    func makeOwn(
        _ names: [String], in folder: FileDescriptor, _ changes: inout OpenCache.ModeChanges
    ) throws(StorageError) {
        var copies: [(temporaryName: String, name: String)] = []
        do {
            for name in names {
                var size = 0
                let temporaryName = try makeTemporary { (number, newPath) throws(StorageError) in
                    try copy(name, in: folder, to: number, newPath, &size)
                }
                if let temporaryName {
                    copies.append((temporaryName, name))
                } else {
                    changes.withoutRoom += 1
                    changes.bytesWithoutRoom += size
                }
            }
            guard !copies.isEmpty else { return }
            // A power cut must not leave an empty file in the place of a whole one.
            try synchronize()
            while let copy = copies.popLast() {
                try place(copy.temporaryName, as: copy.name, in: folder)
                changes.files += 1
                changes.copied += 1
            }
        } catch {
            for copy in copies { unlinkat(temporary.number, copy.temporaryName, 0) }
            throw error
        }
    }

    /// Returns false if the disk has no room for the copy.
    private func copy(
        _ name: String, in folder: FileDescriptor, to number: Int32,
        _ newPath: String, _ size: inout Int
    ) throws(StorageError) -> Bool {
        let path = folder.path(of: name)
        guard let source = FileDescriptor.reading(name, in: folder) else {
            throw .system("open", path)
        }
        guard let status = source.status else { throw .system("stat", path) }
        size = status.size
        if clinux_clone(number, source.number) != 0 {
            if let free = directory.freeSize, free.bytes < size { return false }
            do {
                try FileDescriptor.copy(source, to: number, from: path, to: newPath)
            } catch {
                guard error.isDiskFull else { throw error }
                return false
            }
        }
        // Web servers derive validators from the time.
        var times = [status.st_atim, status.st_mtim]
        guard futimens(number, &times) == 0 || clinux_is_refusal(errno) != 0 else {
            throw .system("utimens", newPath)
        }
        ContentStore.copyAttributes(from: source.number, to: number)
        return true
    }

    // MARK: Orphaned files

    /// The first error of a clean-up that was not permitted; nil without one. Files that another
    /// user has added or made read-only do not make a cache unusable.
    package var untidy: StorageError? { firstUntidy.withLock { $0 } }

    /// Keeps the first error of a clean-up for ``untidy``; throws one of a failing disk.
    func bear(_ error: StorageError) throws(StorageError) {
        switch error.code {
        case .system(EACCES), .system(EPERM), .system(EISDIR), .system(EROFS), .system(EBUSY),
            .refused:
            firstUntidy.withLock { $0 = $0 ?? error }
        default: throw error
        }
    }

    /// Removes all files in `tmp` except those named. The caller must hold the lock.
    func removeTemporaries(keeping kept: Set<String>) throws(StorageError) {
        for name in try temporary.names()
        where !kept.contains(name) && unlinkat(temporary.number, name, 0) != 0 && errno != ENOENT {
            try bear(.system("unlink", temporary.path(of: name)))
        }
    }

    /// Removes orphaned files, which no row names, left by a run that was killed between a file's
    /// rename and its row's commit. The caller must hold the lock, and nothing may be stored
    /// meanwhile. Skips files with foreign names, and files put in place before `keptBefore`.
    /// `isNamed` tells whether a row names the digest. Returns the number of files removed.
    func removeOrphans(
        keptBefore: Timestamp?, isNamed: (ContentDigest) -> Bool
    ) throws(StorageError) -> Int {
        // Removals of a killed process are visible but may not be on the disk.
        hasUnsyncedRemovals.store(true, ordering: .relaxed)
        var removed = 0
        try forEachFolder { shard throws(StorageError) in
            for name in try shard.names() {
                guard let digest = ContentDigest(contentFile: name), !isNamed(digest) else {
                    continue
                }
                if let keptBefore {
                    guard let status = try shard.existingStatus(of: name),
                        status.changeTime >= keptBefore
                    else { continue }
                }
                if unlinkat(shard.number, name, 0) == 0 || errno == ENOENT {
                    removed += 1
                } else {
                    try bear(.system("unlink", shard.path(of: name)))
                }
            }
            return true
        }
        return removed
    }

    /// Whether no content file exists; an unreadable folder counts as non-empty.
    func isEmpty() throws(StorageError) -> Bool {
        var isEmpty = true
        try forEachFolder { shard throws(StorageError) in
            isEmpty = try shard.names().isEmpty
            return isEmpty
        }
        return isEmpty && untidy == nil
    }

    /// Calls `body` with each folder of content files until it returns false.
    private func forEachFolder(
        _ body: (FileDescriptor) throws(StorageError) -> Bool
    ) throws(StorageError) {
        for name in try content.names() where name.utf8.count == 2 {
            do {
                let folder = try content.folder(name)
                guard try body(folder) else { return }
            } catch {
                try bear(error)
            }
        }
    }

    func synchronize() throws(StorageError) {
        // This sync may miss removals made from now on.
        let hasRemoved = hasUnsyncedRemovals.exchange(false, ordering: .relaxed)
        guard clinux_synchronize(directory.handle.number) == 0 else {
            if hasRemoved { hasUnsyncedRemovals.store(true, ordering: .relaxed) }
            throw .system("syncfs", directory.path)
        }
    }

    /// Syncs removals against a power cut, before the note that makes the next run look for files.
    func synchronizeRemovals() throws(StorageError) {
        if hasUnsyncedRemovals.load(ordering: .relaxed) { try synchronize() }
    }
}

extension ContentDigest {
    /// Parses the name of a content file, `<sha256>.<extension>`; nil for other names.
    package init?(contentFile name: String) {
        guard let dot = name.firstIndex(of: ".") else { return nil }
        self.init(hexadecimal: name[..<dot])
    }
}

/// A least-recently-used cache of open folders.
struct OpenFolders {
    private struct OpenFolder {
        let handle: FileDescriptor
        var lastUse: Int
    }

    private let capacity: Int
    private var folders: [UInt8: OpenFolder] = [:]
    private var uses = 0

    /// - Precondition: The capacity is at least 1.
    init(capacity: Int) {
        self.capacity = capacity
    }

    var count: Int { folders.count }

    mutating func use(_ number: UInt8) -> FileDescriptor? {
        uses += 1
        folders[number]?.lastUse = uses
        return folders[number]?.handle
    }

    /// Adds a folder, replacing its previous handle or, at capacity, the least recently used
    /// folder. Returns the replaced handle, to be closed by its last user.
    mutating func add(_ handle: FileDescriptor, _ number: UInt8) -> FileDescriptor? {
        uses += 1
        var replaced = folders.updateValue(
            OpenFolder(handle: handle, lastUse: uses), forKey: number)
        if folders.count > capacity,
            let oldest = folders.min(by: { $0.value.lastUse < $1.value.lastUse })
        {
            replaced = folders.removeValue(forKey: oldest.key)
        }
        return replaced?.handle
    }
}
