package import Glibc
import PrefetchModel

/// An open file or directory, closed with its last reference.
package final class FileDescriptor: Sendable {
    package let number: Int32
    /// The path of a folder or of an export's file, for messages; empty for the cache's files.
    package let path: String

    package init(_ number: Int32, path: String = "") {
        self.number = number
        self.path = path
    }

    deinit {
        // Errors can be ignored. ``ContentStore`` closes the files that it writes and checks the
        // result; an export, which closes files here, synchronises the file system afterwards.
        close(number)
    }

    /// The status of the open file; nil with `errno`.
    package var status: stat? {
        var status = stat()
        return fstat(number, &status) == 0 ? status : nil
    }

    /// The status of a name below the folder, without following a link; nil with `errno`.
    package func status(of name: String) -> stat? {
        var status = stat()
        return fstatat(number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status : nil
    }

    /// The status of a name below the folder; nil if it is missing.
    func existingStatus(of name: String) throws(StorageError) -> stat? {
        if let status = status(of: name) { return status }
        switch errno {
        case ENOENT, ENOTDIR, ELOOP: return nil
        default: throw .system("stat", path(of: name))
        }
    }

    /// Removes a file below the folder if it exists.
    func remove(_ name: String) throws(StorageError) {
        guard unlinkat(number, name, 0) == 0 || errno == ENOENT else {
            throw .system("unlink", path(of: name))
        }
    }

    /// Whether a name below the folder is a regular file of this size.
    func hasFile(_ name: String, size: Int) -> Bool {
        status(of: name).map { $0.isFile && $0.size == size } ?? false
    }

    package func path(of name: String) -> String { "\(path)/\(name)" }

    /// Opens a folder below this one, creating it if `isCreated`; refuses symbolic links. Sets the
    /// permissions of `mode`, if given, for new and existing folders, despite the umask.
    func folder(
        _ name: String, isCreated: Bool = false, mode: FileMode? = nil
    ) throws(StorageError) -> FileDescriptor {
        let path = path(of: name)
        if isCreated, mkdirat(number, name, mode?.ofFolders ?? 0o700) != 0, errno != EEXIST {
            throw .system("mkdir", path)
        }
        if let mode { _ = try setMode(mode, of: name) }
        if let folder = try existingFolder(name) { return folder }
        if errno == ENOENT { throw .system("open", path) }
        throw .refused(
            path, "is not a directory of this cache",
            hint: "move it away; symbolic links inside a cache are refused")
    }

    /// Opens a folder below this one; nil with `errno` if it is missing or not a folder.
    func existingFolder(_ name: String) throws(StorageError) -> FileDescriptor? {
        let opened = openat(number, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        if opened >= 0 { return FileDescriptor(opened, path: path(of: name)) }
        switch errno {
        case ENOENT, ENOTDIR, ELOOP: return nil
        default: throw .system("open", path(of: name))
        }
    }

    /// The names in a folder, without `.` and `..`.
    func names() throws(StorageError) -> [String] {
        var names: [String] = []
        try forEachEntry { entry in
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    func forEachEntry(_ body: (UnsafeMutablePointer<dirent>) -> Void) throws(StorageError) {
        // A directory stream takes over its descriptor and position, so it gets its own.
        let own = openat(number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard own >= 0 else { throw .system("open", path) }
        guard let stream = fdopendir(own) else {
            let error = StorageError.system("open", path)
            close(own)
            throw error
        }
        defer { closedir(stream) }
        errno = 0
        while let entry = readdir(stream) {
            body(entry)
            errno = 0
        }
        guard errno == 0 else { throw .system("readdir", path) }
    }
}

/// The identity of a file: equal until the file is removed, replaced or moved, and valid only while
/// it is open: an inode number may be reused once no process holds the file open.
struct FileIdentity: Equatable {
    private let device: dev_t
    private let inode: ino_t

    private init(_ status: stat) {
        device = status.st_dev
        inode = status.st_ino
    }

    /// Nil if `fstat` fails.
    init?(of file: FileDescriptor) {
        guard let status = file.status else { return nil }
        self.init(status)
    }

    /// The identity of a name in a folder, which may be a symbolic link; nil if it is missing.
    init?(_ name: String, in folder: FileDescriptor) {
        guard let status = folder.status(of: name) else { return nil }
        self.init(status)
    }

    /// The identity of the file at a path; nil if it does not exist.
    init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }
}

extension stat {
    package var isFile: Bool { st_mode & S_IFMT == S_IFREG }
    package var isFolder: Bool { st_mode & S_IFMT == S_IFDIR }
    var size: Int { Int(st_size) }

    /// The time when the file was last created, written or renamed.
    var changeTime: Timestamp { Timestamp(st_ctim) }
}

extension Timestamp {
    init(_ time: timespec) {
        self.init(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }
}

package enum FileReading<Value: Sendable>: Sendable {
    case whole(Value)
    /// No regular file has this name and size, it was truncated during the read, or its bytes do
    /// not match its name.
    case damaged
    /// The file may be intact.
    case unreadable(StorageError)

    package var whole: Value? { if case .whole(let value) = self { value } else { nil } }

    func flatMap<Other: Sendable>(_ body: (Value) -> FileReading<Other>) -> FileReading<Other> {
        switch self {
        case .whole(let value): body(value)
        case .damaged: .damaged
        case .unreadable(let error): .unreadable(error)
        }
    }
}

extension FileDescriptor {
    /// Writes all bytes; the path is for messages.
    static func write(
        _ bytes: UnsafeRawBufferPointer, to number: Int32, path: @autoclosure () -> String
    ) throws(StorageError) {
        var offset = 0
        while offset < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
            let count = Glibc.write(number, rest.baseAddress, rest.count)
            if count > 0 {
                offset += count
            } else if errno != EINTR {
                throw .system("write", path())
            }
        }
    }

    static func copy(
        _ source: FileDescriptor, to number: Int32, from path: String, to newPath: String
    ) throws(StorageError) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 64)
        defer { buffer.deallocate() }
        while true {
            let (count, code) = fill(buffer, from: source)
            guard code == 0 else {
                errno = code
                throw .system("read", path)
            }
            guard count > 0 else { return }
            try write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), to: number, path: newPath)
        }
    }

    /// Opens a file to read; nil with `errno`. Follows no symbolic link and never blocks.
    package static func reading(_ name: String, in parent: FileDescriptor) -> FileDescriptor? {
        let number = openat(parent.number, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        return number >= 0 ? FileDescriptor(number) : nil
    }

    /// Reads a regular file of exactly this size below `parent`.
    static func contents(
        of name: String, in parent: FileDescriptor, size: Int
    ) -> FileReading<[UInt8]> {
        regularFile(name, in: parent, size: size).flatMap { file in
            var code: Int32 = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
                (count, code) = fill(UnsafeMutableRawBufferPointer(buffer), from: file)
            }
            guard code == 0 else {
                errno = code
                return .unreadable(.system("read", parent.path(of: name)))
            }
            return bytes.count == size ? .whole(bytes) : .damaged
        }
    }

    /// The first bytes of a file, at most `limit`; nil as for ``reading(_:in:)``.
    static func beginning(of name: String, in parent: FileDescriptor, limit: Int) -> [UInt8]? {
        guard let file = reading(name, in: parent) else { return nil }
        return [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            count = fill(UnsafeMutableRawBufferPointer(buffer), from: file).count
        }
    }

    /// Reads a regular file of the size of `buffer` into it.
    static func fill(
        _ buffer: UnsafeMutableRawBufferPointer, from name: String, in parent: FileDescriptor
    ) -> FileReading<Void> {
        regularFile(name, in: parent, size: buffer.count).flatMap { file in
            let (count, code) = fill(buffer, from: file)
            guard code == 0 else {
                errno = code
                return .unreadable(.system("read", parent.path(of: name)))
            }
            return count == buffer.count ? .whole(()) : .damaged
        }
    }

    /// Whether a regular file has these bytes. Reads it in pieces, since the bytes are in memory.
    static func holds(
        _ bytes: UnsafeRawBufferPointer, _ name: String, in parent: FileDescriptor
    ) -> Bool {
        guard let file = regularFile(name, in: parent, size: bytes.count).whole else {
            return false
        }
        return withUnsafeTemporaryAllocation(byteCount: 256 << 10, alignment: 16) { buffer in
            var rest = bytes[...]
            while !rest.isEmpty {
                let piece = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(rest.count))
                guard let read = piece.baseAddress,
                    let expected = UnsafeRawBufferPointer(rebasing: rest).baseAddress,
                    fill(piece, from: file).count == piece.count,
                    memcmp(read, expected, piece.count) == 0
                else { return false }
                rest = rest.dropFirst(piece.count)
            }
            return true
        }
    }

    /// A limit for sizes in damaged rows: no stored format reaches 4 GiB.
    static let mostBytes = 1 << 32

    /// Opens a regular file of this size. Never blocks, even if a FIFO has replaced the file.
    private static func regularFile(
        _ name: String, in parent: FileDescriptor, size: Int
    ) -> FileReading<FileDescriptor> {
        guard let file = reading(name, in: parent) else {
            switch errno {
            case ENOENT, ENOTDIR, ELOOP, ENXIO: return .damaged
            default: return .unreadable(.system("open", parent.path(of: name)))
            }
        }
        guard let status = file.status else {
            return .unreadable(.system("stat", parent.path(of: name)))
        }
        return status.isFile && status.size == size && size <= mostBytes ? .whole(file) : .damaged
    }

    /// Reads until the buffer is full or the file ends. Returns the number of bytes read, and the
    /// error code that ended the read, or zero.
    package static func fill(
        _ buffer: UnsafeMutableRawBufferPointer, from file: FileDescriptor
    ) -> (count: Int, code: Int32) {
        var count = 0
        while count < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
            let taken = Glibc.read(file.number, rest.baseAddress, rest.count)
            if taken > 0 {
                count += taken
            } else if taken == 0 {
                break
            } else if errno != EINTR {
                return (count, errno)
            }
        }
        return (count, 0)
    }
}
