internal import CLinux
import Glibc
import Hashing
package import PrefetchModel

/// The lists that runs have fetched, in the folder `lists`.
///
/// ```
/// DIR/lists/<sha256 of the URL>      the head (``StoredList``), an empty line, the list unchanged
/// DIR/lists/<sha256 of the URL>.new  the same while it is written
/// DIR/lists/<sha256 of the URL>.failed  empty, since a request has failed
/// ```
///
/// The URL has no credentials, but the list may: passwords in URLs, and request fields. So the
/// folder has mode 0700 and its files 0600, also in a shared cache.
///
/// A file is replaced as a whole, and its time of modification is that of its last use. A damaged
/// or unreadable file counts as missing.
package struct ListStore: Sendable {
    package static let folderName = "lists"

    /// A list that no run has used for this time is removed.
    package static let lifetime = Duration.seconds(90 * 86400)

    /// The limit of all lists together. The least recently used ones beyond it are removed.
    static let maximumSize = ByteCount.mebibytes(1024)

    private let directory: CacheDirectory

    package init(_ directory: CacheDirectory) {
        self.directory = directory
    }

    /// Opens the copy of a list; nil without a whole one. The URL has no credentials.
    package func open(_ url: String) -> ListFile? {
        let file = FileDescriptor.reading(path(of: url), in: directory.handle).flatMap {
            ListFile($0)
        }
        return file?.list.url == url ? file : nil
    }

    private func path(of url: String) -> String {
        "\(ListStore.folderName)/\(SHA256Hasher().digest(of: url))"
    }

    /// Writes a new file for a list, for ``keep(_:)`` or ``discard(_:)``.
    package func write(
        _ list: StoredList, _ bytes: UnsafeRawBufferPointer
    ) throws(StorageError) -> ListFile {
        try write(list, size: bytes.count) { number, path throws(StorageError) in
            try FileDescriptor.write(bytes, to: number, path: path)
        }
    }

    /// Replaces the copy by the file that was written.
    package func keep(_ file: ListFile) throws(StorageError) {
        let path = path(of: file.list.url)
        try directory.rename(path + ".new", to: path)
    }

    /// Removes the file that was written; it can be read until it is closed.
    package func discard(_ file: ListFile) throws(StorageError) {
        try directory.remove(path(of: file.list.url) + ".new")
    }

    package func replace(_ copy: ListFile, by list: StoredList) throws(StorageError) -> ListFile? {
        var isWhole = true
        let file = try write(list, size: copy.size) { number, path throws(StorageError) in
            isWhole = try copy.forEachPiece { piece throws(StorageError) in
                try FileDescriptor.write(piece, to: number, path: path)
            }
        }
        guard isWhole else {
            try discard(file)
            return nil
        }
        try keep(file)
        return file
    }

    /// Notes that a list could not be fetched. Returns whether it could before.
    package func noteFailure(of url: String) -> Bool {
        let path = path(of: url) + ".failed"
        // An error is dropped: a failure that cannot be noted counts as new.
        guard (try? makeFolder()) != nil else { return true }
        let number = openat(
            directory.handle.number, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
            FileMode.ownersAlone.ofFiles)
        guard number < 0 else {
            _ = FileDescriptor(number)
            return true
        }
        guard errno == EEXIST else { return true }
        // It is in use, see ``removeUnused(at:maximumSize:)``.
        utimensat(directory.handle.number, path, nil, AT_SYMLINK_NOFOLLOW)
        return false
    }

    /// Notes that a list could be fetched. Returns whether it could not before.
    package func noteSuccess(of url: String) -> Bool {
        unlinkat(directory.handle.number, path(of: url) + ".failed", 0) == 0
    }

    private func makeFolder() throws(StorageError) -> FileDescriptor {
        try directory.handle.folder(ListStore.folderName, isCreated: true, mode: .ownersAlone)
    }

    private func write(
        _ list: StoredList, size: Int,
        _ body: (Int32, String) throws(StorageError) -> Void
    ) throws(StorageError) -> ListFile {
        let folder = try makeFolder()
        let name = "\(SHA256Hasher().digest(of: list.url)).new"
        let path = folder.path(of: name)
        // A killed run may have left one, of any kind.
        try folder.remove(name)
        let number = openat(
            folder.number, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
            FileMode.ownersAlone.ofFiles)
        guard number >= 0 else { throw .system("open", path) }
        let file = FileDescriptor(number)
        let head = Array(list.text(size: size).utf8) + StoredList.end
        let outcome = Result { () throws(StorageError) -> Void in
            try CacheDirectory.writeAll(head, to: number, path: path)
            try body(number, path)
            guard fsync(number) == 0 || clinux_is_refusal(errno) != 0 else {
                throw .system("fsync", path)
            }
        }
        let written = ListFile(list, size: size, in: file, start: head.count)
        guard case .success = outcome, written.rewind() else {
            unlinkat(folder.number, name, 0)
            try outcome.get()
            throw .system("lseek", path)
        }
        return written
    }

    /// Removes the lists that no run has used for ``lifetime``, and those beyond the limit of size.
    package func removeUnused(
        at now: Timestamp, maximumSize: ByteCount = ListStore.maximumSize
    ) throws(StorageError) {
        guard directory.contains(ListStore.folderName) else { return }
        let folder = try directory.handle.folder(ListStore.folderName)
        let earliest = now.advanced(by: .zero - ListStore.lifetime)
        var files: [(name: String, usedAt: Timestamp, size: Int)] = []
        for name in try folder.names() {
            guard let status = folder.status(of: name), !status.isFolder else { continue }
            files.append((name, Timestamp(status.st_mtim), status.size))
        }
        var kept = 0
        for (name, usedAt, size) in files.sorted(by: { $0.usedAt > $1.usedAt }) {
            if usedAt >= earliest, size <= maximumSize.bytes - kept {
                kept += size
                continue
            }
            try folder.remove(name)
        }
    }
}

/// An open list of a cache, for one thread at a time; the file may have been replaced since.
package final class ListFile: Sendable {
    package let list: StoredList
    package let size: Int
    private let file: FileDescriptor
    private let start: Int

    /// The file's descriptor, valid while this value lives.
    package var descriptor: Int32 { file.number }

    /// Longer than any head: libcurl takes at most 300 KiB of fields.
    private static let maximumHeadBytes = 1 << 20

    /// `start` is the size of the head with its end.
    init(_ list: StoredList, size: Int, in file: FileDescriptor, start: Int) {
        self.list = list
        self.size = size
        self.file = file
        self.start = start
    }

    /// Reads the head of an open file; nil if the file is damaged.
    convenience init?(_ file: FileDescriptor) {
        guard let status = file.status, status.isFile else { return nil }
        let wanted = min(status.size, ListFile.maximumHeadBytes)
        let bytes = [UInt8](unsafeUninitializedCapacity: wanted) { buffer, count in
            count = FileDescriptor.fill(UnsafeMutableRawBufferPointer(buffer), from: file).count
        }
        guard let end = bytes.firstRange(of: StoredList.end),
            let (list, size) = StoredList.parse(
                String(decoding: bytes[..<end.lowerBound], as: UTF8.self)),
            // A file that was cut is of no use, and neither is its response's validator.
            status.size - end.upperBound == size
        else { return nil }
        self.init(list, size: size, in: file, start: end.upperBound)
        guard rewind() else { return nil }
    }

    /// Moves the descriptor to the beginning of the list. Returns whether that succeeded.
    package func rewind() -> Bool { lseek(file.number, off_t(start), SEEK_SET) == start }

    /// Calls `body` with pieces of the list. Returns false if they cannot be read.
    func forEachPiece(
        _ body: (UnsafeRawBufferPointer) throws(StorageError) -> Void
    ) throws(StorageError) -> Bool {
        guard rewind() else { return false }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 64)
        defer { buffer.deallocate() }
        var left = size
        while left > 0 {
            let window = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(left))
            let (count, code) = FileDescriptor.fill(window, from: file)
            guard code == 0, count > 0 else { return false }
            try body(UnsafeRawBufferPointer(rebasing: window[..<count]))
            left -= count
        }
        return rewind()
    }

    /// Notes that the list is in use; the owner of a file may always set its times.
    package func touch() { _ = futimens(file.number, nil) }
}
