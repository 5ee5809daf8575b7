import Glibc
import PrefetchModel

/// An open file or directory, closed with its last reference.
final class FileDescriptor: Sendable {
    let number: Int32
    /// The path of a folder, for messages; empty for a file.
    let path: String

    init(_ number: Int32, path: String = "") {
        self.number = number
        self.path = path
    }

    deinit {
        // Errors can be ignored: nothing is written through descriptors closed here.
        // ``ContentStore`` closes written files and checks the result.
        close(number)
    }

    /// The status of the open file; nil with `errno`.
    var status: stat? {
        var status = stat()
        return fstat(number, &status) == 0 ? status : nil
    }

    /// The status of a name below the folder, without following a link; nil with `errno`.
    func status(of name: String) -> stat? {
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

    func path(of name: String) -> String { "\(path)/\(name)" }

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
    var isFile: Bool { st_mode & S_IFMT == S_IFREG }
    var isFolder: Bool { st_mode & S_IFMT == S_IFDIR }
    var size: Int { Int(st_size) }

    /// The time when the file was last created, written or renamed.
    var changeTime: Timestamp { Timestamp(st_ctim) }
}

extension Timestamp {
    init(_ time: timespec) {
        self.init(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }
}
