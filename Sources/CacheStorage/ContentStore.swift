internal import CLinux
import Glibc
package import PrefetchModel
import Synchronization

/// Writes and removes content files. Any thread may use it; several write at once.
package final class ContentStore: Sendable {
    private let directory: CacheDirectory
    private let content: FileDescriptor
    private let temporary: FileDescriptor
    /// Those of the 256 folders below `content` that were used last.
    private let shards: Monitor<OpenFolders>
    /// Digests whose file is in place and whose row is not committed yet, with the number of rows
    /// on their way: such a file must not be removed though no row names it.
    private let pinned = Monitor([ContentDigest: Int]())
    /// Digests whose file was found to be damaged.
    private let distrusted = Monitor(Set<ContentDigest>())
    private let temporaryNames = Atomic(0)
    /// Whether files that are there are compared with their names before they are taken for what a
    /// row is to name.
    private let comparesFiles = Atomic(false)

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
    /// Content files never change once named; bytes that are there already are not written again.
    /// The file carries the extended attributes `user.xdg.origin.url` and `user.mime_type` where
    /// the file system allows (the names that curl and wget2 use); the URL has no user information.
    ///
    /// - Throws: when a system call fails; nothing is left under the final name then.
    package func store(
        _ bytes: UnsafeRawBufferPointer, as image: StoredImage, originURL: String
    ) throws(StorageError) {
        pinned.withLock { $0[image.digest, default: 0] += 1 }
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
            !distrusted.withLock({ $0.contains(image.digest) }),
            !comparesFiles.load(ordering: .relaxed) || holds(bytes, image)
        {
            return
        }
        let temporaryName = String(
            temporaryNames.add(1, ordering: .relaxed).newValue, radix: 36)
        let number = openat(
            temporary.number, temporaryName,
            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard number >= 0 else { throw .system("open", directory.path(of: "tmp/\(temporaryName)")) }
        do throws(StorageError) {
            try write(bytes, to: number, originURL: originURL, mediaType: image.format.mediaType)
            guard renameat(temporary.number, temporaryName, shard.number, name) == 0 else {
                throw StorageError.system("rename", directory.path(of: image))
            }
            distrusted.withLock { _ = $0.remove(image.digest) }
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
            try FileDescriptor.write(bytes, to: number, path: directory.path(of: "tmp"))
        } catch {
            close(number)
            throw error
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
            name, in: content, path: directory.path(of: "content/\(name)"), isCreated: true)
        // Who still uses the one that makes room keeps it open.
        let closed = shards.withLock { $0.add(opened, number) }
        withExtendedLifetime(closed) {}
        return opened
    }

    /// Whether an image's content file is there in its whole size.
    func hasWholeFile(_ image: StoredImage) -> Bool { directory.hasWholeFile(image) }

    /// From now on a file that is there is read before a row is to name it: nobody knows whether it
    /// reached the disk.
    func compareFiles() {
        comparesFiles.store(true, ordering: .relaxed)
    }

    /// Whether the image's content file holds the bytes.
    private func holds(_ bytes: UnsafeRawBufferPointer, _ image: StoredImage) -> Bool {
        let found = FileDescriptor.contents(
            of: image.relativePath, in: directory.handle, size: bytes.count,
            path: directory.path(of: image))
        guard case .bytes(let found) = found else { return false }
        return found.elementsEqual(bytes)
    }

    /// What ``bytes(of:hasher:)`` finds.
    package enum StoredBytes: Sendable {
        case whole([UInt8])
        /// The file is gone, or holds other bytes than its name says.
        case damaged
        /// The file may well be good.
        case unreadable(StorageError)
    }

    /// Reads the content file of a stored image and compares it with its name.
    package func bytes(of image: StoredImage, hasher: borrowing SHA256Hasher) -> StoredBytes {
        let contents = FileDescriptor.contents(
            of: image.relativePath, in: directory.handle, size: image.size.bytes,
            path: directory.path(of: image))
        let bytes: [UInt8]
        switch contents {
        case .bytes(let found): bytes = found
        case .missing: return .damaged
        case .unreadable(let error): return .unreadable(error)
        }
        let digest = bytes.withUnsafeBytes { hasher.digest(of: $0) }
        return digest == image.digest ? .whole(bytes) : .damaged
    }

    /// Tells that the row of a stored file is committed, or given up.
    package func unpin(_ digest: ContentDigest) {
        pinned.withLock { pinned in
            guard let count = pinned[digest] else { return }
            pinned[digest] = count > 1 ? count - 1 : nil
        }
    }

    /// Tells that an image's content file is damaged: the same bytes are written anew when they come
    /// again, although a file of their name and size is there.
    package func distrust(_ image: StoredImage) {
        distrusted.withLock { _ = $0.insert(image.digest) }
    }

    /// Removes a file that no row names any more, unless a row that will name it is on its way.
    ///
    /// - Throws: when the file is there and cannot be removed.
    func remove(_ digest: ContentDigest, format: ImageFormat) throws(StorageError) {
        let hexadecimal = digest.description
        let shard = try shard(of: digest, hexadecimal: hexadecimal)
        let name = "\(hexadecimal).\(format.fileExtension)"
        // Under the lock, so that nobody pins the digest between the look and the removal.
        let code: Int32 = pinned.withLock { pinned in
            guard pinned[digest] == nil else { return 0 }
            return unlinkat(shard.number, name, 0) == 0 || errno == ENOENT ? 0 : errno
        }
        guard code == 0 else {
            errno = code
            throw .system("unlink", directory.path(of: "content/\(name.prefix(2))/\(name)"))
        }
    }

    // MARK: Strays

    /// Empties `tmp` of all but the files named. Only for the holder of the lock.
    func removeTemporaries(keeping kept: Set<String>) throws(StorageError) {
        let path = directory.path(of: "tmp")
        for name in try directory.names(in: temporary, path: path)
        where !kept.contains(name) && unlinkat(temporary.number, name, 0) != 0 && errno != ENOENT {
            throw .system("unlink", "\(path)/\(name)")
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
        var removed = 0
        try forEachFile { (shard, path, name) throws(StorageError) in
            guard let dot = name.firstIndex(of: "."),
                let digest = ContentDigest(hexadecimal: name[..<dot]), !isNamed(digest)
            else { return true }
            if let keptBefore {
                var status = stat()
                guard fstatat(shard.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
                    guard errno == ENOENT else { throw .system("stat", "\(path)/\(name)") }
                    return true
                }
                if status.changeTime < keptBefore { return true }
            }
            guard unlinkat(shard.number, name, 0) == 0 || errno == ENOENT else {
                throw .system("unlink", "\(path)/\(name)")
            }
            removed += 1
            return true
        }
        return removed
    }

    /// Whether there is no content file.
    func isEmpty() throws(StorageError) -> Bool {
        var isEmpty = true
        try forEachFile { (_, _, _) throws(StorageError) in
            isEmpty = false
            return false
        }
        return isEmpty
    }

    /// Calls `body` with the folder, its path and the name of each content file, as long as it
    /// returns true.
    private func forEachFile(
        _ body: (FileDescriptor, String, String) throws(StorageError) -> Bool
    ) throws(StorageError) {
        let path = directory.path(of: "content")
        for shardName in try directory.names(in: content, path: path)
        where shardName.utf8.count == 2 {
            let shardPath = "\(path)/\(shardName)"
            let shard = try FileDescriptor.directory(
                shardName, in: content, path: shardPath, isCreated: false)
            for name in try directory.names(in: shard, path: shardPath) {
                guard try body(shard, shardPath, name) else { return }
            }
        }
    }

    /// Writes everything of the cache's file system to the disk.
    func synchronize() throws(StorageError) {
        guard syncfs(directory.handle.number) == 0 else {
            throw .system("syncfs", directory.path)
        }
    }
}
