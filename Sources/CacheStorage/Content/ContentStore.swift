internal import CLinux
import Glibc
package import Hashing
package import PrefetchModel
import Synchronization
import Threading

/// Writes and removes content files. Any thread may use it; several write at once.
package final class ContentStore: Sendable {
    let directory: CacheDirectory
    let content: FileDescriptor
    private let temporary: FileDescriptor
    /// Those of the 256 folders below `content` that were used last.
    private let shards: Monitor<OpenFolders>
    /// Digests whose file is in place and whose row is not committed yet, with the number of rows
    /// on their way: such a file must not be removed though no row names it.
    private let pinned = Monitor([ContentDigest: Int]())
    private let temporaryNames = Atomic(0)
    private let firstUntidy = Monitor<StorageError?>(nil)
    private let writesFileAttributes = Atomic(false)
    /// Whether a power cut may bring files back that were removed.
    private let hasUnsyncedRemovals = Atomic(false)

    /// Keeps at most `openFolders` folders of content open.
    package init(
        directory: CacheDirectory, openFolders: Int = 256
    ) throws(StorageError) {
        self.directory = directory
        shards = Monitor(OpenFolders(capacity: openFolders))
        content = try FileDescriptor.directory(
            "content", in: directory.handle, path: directory.path(of: "content"), isCreated: true)
        temporary = try FileDescriptor.directory(
            "tmp", in: directory.handle, path: directory.path(of: "tmp"), isCreated: true)
    }

    /// Puts bytes in place under their digest's name and pins the file until ``unpin(_:)``.
    ///
    /// Content files never change once named; bytes that are there already are not written again. A
    /// file that is there is read first: a disk, or somebody, may have changed it.
    /// After ``writeFileAttributes()`` the file carries the extended attributes `user.xdg.origin.url`
    /// and `user.mime_type` where the file system allows (the names that curl and wget2 use); the URL
    /// has no user information.
    ///
    /// - Throws: when a system call fails; nothing is left under the final name then.
    package func store(
        _ bytes: UnsafeRawBufferPointer, as image: StoredImage, originURL: String
    ) throws(StorageError) {
        pin(image.digest)
        do throws(StorageError) {
            try place(bytes, as: image, originURL: originURL)
        } catch {
            unpin(image.digest)
            throw error
        }
    }

    private func place(
        _ bytes: UnsafeRawBufferPointer, as image: StoredImage, originURL: String
    ) throws(StorageError) {
        let hexadecimal = image.digest.description
        let name = "\(hexadecimal).\(image.format.fileExtension)"
        let shard = try shard(of: image.digest, hexadecimal: hexadecimal)
        var status = stat()
        if fstatat(shard.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0,
            status.st_mode & S_IFMT == S_IFREG, status.st_size == bytes.count,
            holds(bytes, image)
        {
            return
        }
        let temporaryName = String(
            temporaryNames.add(1, ordering: .relaxed).newValue, radix: 36)
        let number = openat(
            temporary.number, temporaryName,
            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, directory.creationMode)
        guard number >= 0 else { throw .system("open", directory.path(of: "tmp/\(temporaryName)")) }
        do throws(StorageError) {
            try write(bytes, to: number, originURL: originURL, mediaType: image.format.mediaType)
            guard renameat(temporary.number, temporaryName, shard.number, name) == 0 else {
                throw StorageError.system("rename", directory.path(of: image))
            }
        } catch {
            // The temporary file's own removal cannot be helped when it fails; the next run
            // collects it.
            unlinkat(temporary.number, temporaryName, 0)
            throw error
        }
    }

    /// Writes everything and closes the descriptor.
    private func write(
        _ bytes: UnsafeRawBufferPointer, to number: Int32, originURL: String, mediaType: String
    ) throws(StorageError) {
        do throws(StorageError) {
            try directory.giveMode(toNewFile: number, path: directory.path(of: "tmp"))
            try FileDescriptor.write(bytes, to: number, path: directory.path(of: "tmp"))
        } catch {
            close(number)
            throw error
        }
        guard writesFileAttributes.load(ordering: .relaxed) else {
            guard close(number) == 0 else { throw .system("close", directory.path(of: "tmp")) }
            return
        }
        // Attributes are a courtesy: a file system without them, or without room for a long URL,
        // is no reason to fail.
        _ = originURL.withCString { fsetxattr(number, "user.xdg.origin.url", $0, strlen($0), 0) }
        _ = mediaType.withCString { fsetxattr(number, "user.mime_type", $0, strlen($0), 0) }
        guard close(number) == 0 else { throw .system("close", directory.path(of: "tmp")) }
    }

    private func shard(
        of digest: ContentDigest, hexadecimal: String
    ) throws(StorageError) -> FileDescriptor {
        let number = UInt8(digest.leadingWords.0 >> 56)
        if let open = shards.withLock({ $0.use(number) }) { return open }
        let name = String(hexadecimal.prefix(2))
        // Two threads may open the same folder; the later one's handle stays, both are right.
        let opened = try FileDescriptor.directory(
            name, in: content, path: directory.path(of: "content/\(name)"), isCreated: true,
            mode: directory.fileMode)
        // Who still uses the one that makes room keeps it open.
        let closed = shards.withLock { $0.add(opened, number) }
        withExtendedLifetime(closed) {}
        return opened
    }

    /// Whether an image's content file is there in its whole size.
    func hasWholeFile(_ image: StoredImage) -> Bool { directory.hasWholeFile(image) }

    /// From now on files get extended attributes that say where they came from and what they are:
    /// `user.xdg.origin.url` and `user.mime_type`. On ext4 they take a block of each file.
    package func writeFileAttributes() {
        writesFileAttributes.store(true, ordering: .relaxed)
    }

    /// Whether the image's content file holds the bytes.
    private func holds(_ bytes: UnsafeRawBufferPointer, _ image: StoredImage) -> Bool {
        let found = FileDescriptor.contents(
            of: image.relativePath, in: directory.handle, size: bytes.count,
            path: directory.path(of: image))
        guard case .bytes(let found) = found else { return false }
        return found.elementsEqual(bytes)
    }

    /// Reads the content file of a stored image and compares it with its name.
    package func bytes(
        of image: StoredImage, hasher: borrowing SHA256Hasher
    ) -> CacheDirectory.StoredBytes {
        directory.bytes(of: image, hasher: hasher)
    }

    /// Keeps a file that is there from being removed until ``unpin(_:)``, for a row on its way.
    package func pin(_ digest: ContentDigest) {
        pinned.withLock { $0[digest, default: 0] += 1 }
    }

    /// Tells that the row of a stored file is committed, or given up.
    package func unpin(_ digest: ContentDigest) {
        pinned.withLock { pinned in
            guard let count = pinned[digest] else { return }
            pinned[digest] = count > 1 ? count - 1 : nil
        }
    }

    /// Removes a file that no row names any more, unless a row that will name it is on its way.
    ///
    /// - Returns: whether a file is gone that was there.
    /// - Throws: when the file is there and the disk keeps it from being removed; where that is not
    ///   allowed, see ``untidy``.
    @discardableResult
    func remove(_ digest: ContentDigest, format: ImageFormat) throws(StorageError) -> Bool {
        let hexadecimal = digest.description
        let shard: FileDescriptor
        do throws(StorageError) {
            shard = try self.shard(of: digest, hexadecimal: hexadecimal)
        } catch {
            try bear(error)
            return false
        }
        let name = "\(hexadecimal).\(format.fileExtension)"
        // Under the lock, so that nobody pins the digest between the look and the removal.
        let code: Int32 = pinned.withLock { pinned in
            guard pinned[digest] == nil else { return ENOENT }
            return unlinkat(shard.number, name, 0) == 0 ? 0 : errno
        }
        guard code == 0 || code == ENOENT else {
            errno = code
            try bear(
                .system("unlink", directory.path(of: "content/\(name.prefix(2))/\(name)")))
            return false
        }
        if code == 0 { hasUnsyncedRemovals.store(true, ordering: .relaxed) }
        return code == 0
    }

    // MARK: Strays

    /// What could not be tidied up, the first of it; nil when all could.
    ///
    /// Files that somebody else has put there, or has taken the right to, are no reason to keep a
    /// cache from being used.
    package var untidy: StorageError? { firstUntidy.withLock { $0 } }

    /// Bears that something cannot be tidied up, and keeps the first error for ``untidy``.
    ///
    /// - Throws: the error, when it says that the disk fails.
    func bear(_ error: StorageError) throws(StorageError) {
        switch error.code {
        case .system(EACCES), .system(EPERM), .system(EISDIR), .system(EROFS), .system(EBUSY),
            .refused:
            firstUntidy.withLock { $0 = $0 ?? error }
        default: throw error
        }
    }

    /// Empties `tmp` of all but the files named. Only for the holder of the lock.
    func removeTemporaries(keeping kept: Set<String>) throws(StorageError) {
        let path = directory.path(of: "tmp")
        for name in try directory.names(in: temporary, path: path)
        where !kept.contains(name) && unlinkat(temporary.number, name, 0) != 0 && errno != ENOENT {
            try bear(.system("unlink", "\(path)/\(name)"))
        }
    }

    /// Removes content files that no row names: what a run left that ended between a file's
    /// rename and its row's commit. Only for the holder of the lock, while nothing is being stored.
    ///
    /// Files whose names are not of our form are left alone, and those that were put in place before
    /// `keptBefore`, if there is such a time. `isNamed` tells whether a row names the digest; the
    /// result is the number of files removed.
    func removeStrays(
        keptBefore: Timestamp?, isNamed: (ContentDigest) -> Bool
    ) throws(StorageError) -> Int {
        // What a killed process has removed is not to be seen any more, and need not be on the disk.
        hasUnsyncedRemovals.store(true, ordering: .relaxed)
        var removed = 0
        try forEachFolder { (shard, path) throws(StorageError) in
            for name in try directory.names(in: shard, path: path) {
                guard let digest = ContentDigest(contentFile: name), !isNamed(digest) else {
                    continue
                }
                if let keptBefore {
                    var status = stat()
                    guard fstatat(shard.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
                        guard errno == ENOENT else { throw .system("stat", "\(path)/\(name)") }
                        continue
                    }
                    if status.changeTime < keptBefore { continue }
                }
                if unlinkat(shard.number, name, 0) == 0 || errno == ENOENT {
                    removed += 1
                } else {
                    try bear(.system("unlink", "\(path)/\(name)"))
                }
            }
            return true
        }
        return removed
    }

    /// Whether there is no content file; a folder that cannot be read counts as one that holds some.
    func isEmpty() throws(StorageError) -> Bool {
        var isEmpty = true
        try forEachFolder { (shard, path) throws(StorageError) in
            isEmpty = try directory.names(in: shard, path: path).isEmpty
            return isEmpty
        }
        return isEmpty && untidy == nil
    }

    /// Calls `body` with each folder of content files and its path, as long as it returns true.
    private func forEachFolder(
        _ body: (FileDescriptor, String) throws(StorageError) -> Bool
    ) throws(StorageError) {
        let path = directory.path(of: "content")
        for name in try directory.names(in: content, path: path) where name.utf8.count == 2 {
            let folderPath = "\(path)/\(name)"
            do throws(StorageError) {
                let folder = try FileDescriptor.directory(
                    name, in: content, path: folderPath, isCreated: false)
                guard try body(folder, folderPath) else { return }
            } catch {
                try bear(error)
            }
        }
    }

    /// Writes everything of the cache's file system to the disk.
    func synchronize() throws(StorageError) {
        // What is removed meanwhile is not among it.
        let hasRemoved = hasUnsyncedRemovals.exchange(false, ordering: .relaxed)
        guard syncfs(directory.handle.number) == 0 else {
            if hasRemoved { hasUnsyncedRemovals.store(true, ordering: .relaxed) }
            throw .system("syncfs", directory.path)
        }
    }

    /// Sees that no power cut brings files back that were removed: to be called before the note goes by which the next
    /// run would look for them.
    func synchronizeRemovals() throws(StorageError) {
        if hasUnsyncedRemovals.load(ordering: .relaxed) { try synchronize() }
    }
}

extension ContentDigest {
    /// What the name of a content file says, `<sha256>.<extension>`; nil of another name.
    package init?(contentFile name: String) {
        guard let dot = name.firstIndex(of: ".") else { return nil }
        self.init(hexadecimal: name[..<dot])
    }
}
