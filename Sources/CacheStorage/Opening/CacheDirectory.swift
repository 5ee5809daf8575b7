internal import CLinux
import Glibc
package import Hashing
package import PrefetchModel
import Synchronization

/// The cache's folder.
///
/// ```
/// DIR/CACHEDIR.TAG                     marks the folder as a cache of this program
/// DIR/prefetch.sqlite (-wal, -shm)     metadata, see `Schema.swift`
/// DIR/lock                             held (flock) by the run that writes
/// DIR/unlogged                         runs that a full disk ended, see `UnloggedRuns.swift`
/// DIR/crashes                          images that crashed a decoder, see `CrashLog.swift`
/// DIR/suspect                          a command found damage in the database; the next run checks
/// DIR/prefetch.sqlite.damaged-<time>   a replaced, damaged database (-wal)
/// DIR/snapshot.sqlite                  the daily copy of the database
/// DIR/status                           the progress of a running run, see ``StatusFile``
/// DIR/lists/<sha256 of the URL>        fetched lists, see ``ListStore``
/// DIR/content/ab/<sha256>.<extension>  content files, named by the SHA-256 of their bytes
/// DIR/tmp/                             content files being written
/// DIR/tmp/<sha256 of the key>.partial  partial downloads
/// ```
///
/// Folders are created with mode 0700 and files with 0600, less the umask, or with the mode that
/// the cache stores (see `FileMode`). Everything is opened relative to the folder's handle, without
/// following symbolic links.
package final class CacheDirectory: Sendable {
    package let path: String
    let handle: FileDescriptor
    package let fileSystem: FileSystem
    let isOwn: Bool
    /// The mode of new files; 0 if none was chosen.
    let modeBits = Atomic<UInt32>(0)
    private let journal: Atomic<Bool>

    /// Whether the database has a rollback journal in place of a log: on a network file system, or
    /// where SQLite found no shared memory for the log's index.
    package var hasJournal: Bool { journal.load(ordering: .relaxed) }

    func noteJournal() { journal.store(true, ordering: .relaxed) }

    /// The free space of its file system for this user; nil if unknown.
    var freeSize: ByteCount? {
        var status = statvfs()
        guard fstatvfs(handle.number, &status) == 0 else { return nil }
        let (bytes, isTooMuch) = status.f_bavail.multipliedReportingOverflow(by: status.f_frsize)
        return isTooMuch ? nil : ByteCount(Int(clamping: bytes))
    }

    /// The signature of the Cache Directory Tagging Specification (bford.info/cachedir).
    private static let tag = """
        Signature: 8a477f597d28d172789f06886806bc55
        # This directory is a cache of images made by prefetch.
        # It may be deleted as a whole; what it holds can be fetched again.

        """
    static let tagName = "CACHEDIR.TAG"
    package static let databaseName = "prefetch.sqlite"
    static let snapshotName = "snapshot.sqlite"
    static let lockName = "lock"

    package enum Access: Sendable {
        /// Creates missing parts.
        case readWrite
        /// Changes an existing cache; any other folder is an error.
        case existing
        /// Changes nothing; any other folder is an error. The cache may belong to another user.
        case readOnly
    }

    /// Opens or creates the folder. The file system is detected unless it is given.
    ///
    /// - Throws: when it cannot be created or opened, is to be written but belongs to another user,
    ///   is writable by everyone, or contains something other than a cache of this program.
    package init(path: String, access: Access, fileSystem: FileSystem? = nil) throws(StorageError) {
        self.path = path
        if access == .readWrite { try CacheDirectory.makeDirectories(path) }
        let number = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard number >= 0 else {
            guard access != .readWrite, errno == ENOENT else { throw .system("open", path) }
            throw .missing(
                path, "there is no cache yet",
                hint: "`prefetch run` creates it; --cache-dir names another")
        }
        handle = FileDescriptor(number, path: path)
        guard let status = handle.status else { throw .system("stat", path) }
        isOwn = status.st_uid == geteuid()
        // An unknown file system is treated as a local one.
        let fileSystem =
            fileSystem ?? FileSystem(of: handle) ?? FileSystem(isNetwork: false, name: "unknown")
        self.fileSystem = fileSystem
        journal = Atomic(fileSystem.isNetwork)
        try CacheDirectory.checkOwner(path, status, access)
        switch handle.status(of: CacheDirectory.tagName)?.size {
        case nil: try beginCache(access)
        case 0? where access == .readWrite: completeTag()
        default: break
        }
    }

    /// Turns an empty folder into a cache, or finds that another process has just done so. The tag
    /// precedes all names but the lock, where a process may have been stopped. So a folder with
    /// other names and no tag is not a cache, even if other processes change it now.
    private func beginCache(_ access: Access) throws(StorageError) {
        let names = Set(try handle.names())
        if names.contains(CacheDirectory.tagName) { return }
        let isEmpty = names.isSubset(of: [CacheDirectory.lockName])
        let isFree = isEmpty || hasOwnDatabase ? true : try isRest(names)
        switch access {
        // Only the tag is missing; the next run restores it.
        case .existing where hasOwnDatabase, .readOnly where hasOwnDatabase: return
        case .existing where isEmpty, .readOnly where isEmpty:
            throw .missing(path, "holds no images yet")
        case .existing, .readOnly: throw .refused(path, "is not a prefetch cache")
        case .readWrite where isFree: try writeTag()
        case .readWrite:
            throw .refused(
                path, "is not empty and is not a prefetch cache",
                hint: "name an empty or a new directory with --cache-dir")
        }
    }

    /// Whether it contains a database of this program, by the mark in its header.
    var hasOwnDatabase: Bool { CacheDirectory.hasOwnDatabase(handle.number, "") }

    /// Whether a folder is a cache, by its database or its tag. Nothing is opened for writing.
    package static func isCache(_ path: String) -> Bool {
        if hasOwnDatabase(AT_FDCWD, path + "/") { return true }
        let number = open("\(path)/\(tagName)", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard number >= 0 else { return false }
        let file = FileDescriptor(number)
        var bytes = [UInt8](repeating: 0, count: tag.utf8.count)
        let count = bytes.withUnsafeMutableBytes { read(file.number, $0.baseAddress, $0.count) }
        return count == bytes.count && bytes.elementsEqual(tag.utf8)
    }

    private static func hasOwnDatabase(_ folder: Int32, _ prefix: String) -> Bool {
        let number = openat(
            folder, prefix + databaseName, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard number >= 0 else { return false }
        let file = FileDescriptor(number)
        // SQLite's file format, section 1.3.
        var mark: UInt32 = 0
        return pread(file.number, &mark, 4, 68) == 4
            && UInt32(bigEndian: mark) == UInt32(bitPattern: Schema.applicationID)
    }

    /// Whether these names are the remainder of a cache that was removed while a run wrote to it:
    /// content folders with content files only. It is used as a cache again.
    private func isRest(_ names: Set<String>) throws(StorageError) -> Bool {
        guard names.contains("content"),
            names.isSubset(of: [
                CacheDirectory.lockName, "content", "tmp", ListStore.folderName,
                UnloggedRuns.fileName,
            ])
        else { return false }
        // Without such a folder, for any reason, it is not a cache's: the caller refuses all.
        guard let content = try? handle.folder("content") else { return false }
        var hasFiles = false
        for name in try content.names() {
            guard name.utf8.count == 2, UInt8(name, radix: 16) != nil,
                let shard = try? content.folder(name)
            else { return false }
            let files = try shard.names()
            guard files.allSatisfy({ ContentDigest(contentFile: $0) != nil }) else { return false }
            hasFiles = hasFiles || !files.isEmpty
        }
        return hasFiles
    }

    /// The path of a name in the folder, for messages and for SQLite.
    func path(of name: String) -> String { handle.path(of: name) }

    package var temporaryFolder: String { path(of: "tmp") }

    package func path(of image: StoredImage) -> String { path(of: image.relativePath) }

    /// Whether an image's content file is a regular file of the row's size.
    package func hasWholeFile(_ image: StoredImage) -> Bool {
        hasWholeFile(ContentFile(of: image))
    }

    package func hasWholeFile(_ file: ContentFile) -> Bool {
        handle.hasFile(file.relativePath, size: file.size.bytes)
    }

    /// Whether an image's content file is missing, has another size, or is not a regular file.
    ///
    /// - Throws: when the system does not say; the file may be intact.
    func lacksWholeFile(_ image: StoredImage) throws(StorageError) -> Bool {
        guard let status = try handle.existingStatus(of: image.relativePath) else { return true }
        return !status.isFile || status.size != image.size.bytes
    }

    /// Whether any file or folder has the path of an image's content file.
    package func isTaken(_ image: StoredImage) -> Bool { contains(image.relativePath) }

    /// Reads the content file of a stored image and compares its digest with its name.
    package func bytes(
        of image: StoredImage, hasher: borrowing SHA256Hasher
    ) -> FileReading<[UInt8]> {
        FileDescriptor.contents(
            of: image.relativePath, in: handle, size: image.size.bytes
        ).flatMap { bytes in
            let digest = bytes.withUnsafeBytes { hasher.digest(of: $0) }
            return digest == image.digest ? .whole(bytes) : .damaged
        }
    }

    /// Makes a directory and its missing parents, which get the usual mode.
    package static func makeDirectories(
        _ path: String, mode: UInt32 = 0o700
    ) throws(StorageError) {
        guard !path.isEmpty else { throw .refused(path, "the cache directory has an empty name") }
        if mkdir(path, mode) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
            throw .system("mkdir", path)
        }
        try makeDirectories(String(path[..<slash]), mode: 0o777)
        guard mkdir(path, mode) == 0 || errno == EEXIST else { throw .system("mkdir", path) }
    }

    private static func checkOwner(
        _ path: String, _ status: stat, _ access: Access
    ) throws(StorageError) {
        // Root is refused, too: it would create files that belong to root.
        guard access == .readOnly || status.st_uid == geteuid() else {
            throw .refused(
                path, "belongs to another user (uid \(status.st_uid))",
                hint: "run as that user, or name another directory with --cache-dir")
        }
        guard status.st_mode & 0o002 == 0 else {
            // /tmp and similar folders must keep their permissions.
            let isCache =
                Glibc.access(path + "/" + tagName, F_OK) == 0 && status.st_mode & S_ISVTX == 0
            throw .refused(
                path, "is writable by all users",
                hint: isCache
                    ? "chmod o-w '\(path)', then run `prefetch doctor`"
                    : "use a directory for the cache alone, like --cache-dir '\(path)/prefetch'"
            )
        }
    }

    /// Writes a tag that a killed process left empty. Only backup programs read it.
    private func completeTag() {
        let number = openat(
            handle.number, CacheDirectory.tagName, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard number >= 0 else { return }
        var tag = CacheDirectory.tag
        // A second process writes the same bytes to the same place.
        _ = tag.withUTF8 { pwrite(number, $0.baseAddress, $0.count, 0) }
        close(number)
    }

    private func writeTag() throws(StorageError) {
        do {
            _ = try writeNewFile(CacheDirectory.tagName, Array(CacheDirectory.tag.utf8))
        } catch {
            // Another process has written it.
            guard error.code == .system(EEXIST) else { throw error }
        }
    }

    func makeFile(_ name: String) throws(StorageError) {
        _ = try writeNewFile(name, in: handle) { _ in true }
    }

    func writeNewFile(
        _ name: String, _ bytes: [UInt8], replaces: Bool = false
    ) throws(StorageError) {
        let path = path(of: name)
        _ = try writeNewFile(name, in: handle, replaces: replaces) {
            (number) throws(StorageError) in
            try CacheDirectory.writeAll(bytes, to: number, path: path)
            return true
        }
    }

    /// Adds a line to a file, which is created when needed.
    func append(_ line: String, to name: String) throws(StorageError) {
        let number = openat(
            handle.number, name, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
            creationMode)
        guard number >= 0 else { throw .system("open", path(of: name)) }
        let file = FileDescriptor(number, path: path(of: name))
        try giveMode(toNewFile: number, path: file.path)
        try CacheDirectory.writeAll(Array(line.utf8), to: number, path: file.path)
    }

    /// Makes a file that `fill` writes. Returns the result of `fill`: false drops the file. With
    /// `replaces`, an existing file is overwritten. Nothing is left after an error.
    func writeNewFile(
        _ name: String, in folder: FileDescriptor, replaces: Bool = false,
        _ fill: (Int32) throws(StorageError) -> Bool
    ) throws(StorageError) -> Bool {
        let path = folder.path(of: name)
        let number = openat(
            folder.number, name,
            O_RDWR | O_CREAT | (replaces ? O_TRUNC | O_NONBLOCK : O_EXCL) | O_NOFOLLOW
                | O_CLOEXEC, creationMode)
        guard number >= 0 else { throw .system("open", path) }
        var outcome = Result { () throws(StorageError) in
            try giveMode(toNewFile: number, path: path)
            return try fill(number)
        }
        if close(number) != 0, case .success = outcome {
            outcome = .failure(.system("close", path))
        }
        if case .success(true) = outcome { return true }
        // A file that cannot be removed is collected by the next run.
        unlinkat(folder.number, name, 0)
        return try outcome.get()
    }

    func remove(_ name: String) throws(StorageError) { try handle.remove(name) }

    func removeDatabase(_ name: String) throws(StorageError) {
        for suffix in [""] + CacheDatabase.companions { try remove(name + suffix) }
    }

    func rename(_ name: String, to newName: String) throws(StorageError) {
        guard renameat(handle.number, name, handle.number, newName) == 0 else {
            throw .system("rename", path(of: newName))
        }
    }

    func synchronize(_ name: String) throws(StorageError) {
        guard let file = FileDescriptor.reading(name, in: handle) else {
            throw .system("open", path(of: name))
        }
        guard fsync(file.number) == 0 || clinux_is_refusal(errno) != 0 else {
            throw .system("fsync", path(of: name))
        }
    }

    /// The time when the file was last created, written or renamed.
    func changeTime(of name: String) throws(StorageError) -> Timestamp {
        guard let status = handle.status(of: name) else { throw .system("stat", path(of: name)) }
        return status.changeTime
    }

    package func contains(_ name: String) -> Bool {
        faccessat(handle.number, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0
    }

    var isInPlace: Bool {
        FileIdentity(path: path).map { $0 == FileIdentity(of: handle) } ?? false
    }
}
