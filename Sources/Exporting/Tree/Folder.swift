import CacheStorage
import Glibc

/// An open folder, closed with its last reference. Symbolic links are not followed.
final class Folder: Sendable {
    let number: Int32
    /// For messages.
    let path: String

    init(_ number: Int32, path: String) {
        self.number = number
        self.path = path
    }

    deinit { close(number) }

    /// Opens a folder by its path, links followed; nil if there is none.
    static func open(_ path: String) throws(ExportError) -> Folder? {
        let number = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if number >= 0 { return Folder(number, path: path) }
        guard errno == ENOENT else { throw .system("open", path) }
        return nil
    }

    func path(of name: String) -> String { "\(path)/\(name)" }

    /// Opens a folder in this one; nil if there is none.
    func folder(_ name: String) throws(ExportError) -> Folder? {
        let number = openat(
            self.number, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        if number >= 0 { return Folder(number, path: path(of: name)) }
        guard errno == ENOENT else { throw .system("open", path(of: name)) }
        return nil
    }

    /// Opens a folder in this one, after creating it if it is missing.
    func makeFolder(_ name: String, mode: FileMode?) throws(ExportError) -> Folder {
        if mkdirat(number, name, mode?.ofFolders ?? 0o777) == 0 {
            // Whatever the umask.
            if let mode, fchmodat(number, name, mode.ofFolders, 0) != 0 {
                throw .system("chmod", path(of: name))
            }
        } else if errno != EEXIST {
            throw .system("mkdir", path(of: name))
        }
        guard let folder = try folder(name) else { throw .system("open", path(of: name)) }
        return folder
    }

    /// The status of a file at a relative path, a link's own; nil if there is none.
    func status(of path: String) -> stat? {
        var status = stat()
        return fstatat(number, path, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status : nil
    }

    var status: stat? {
        var status = stat()
        return fstat(number, &status) == 0 ? status : nil
    }

    /// The names in it, in no order.
    func names() throws(ExportError) -> [(name: String, isFolder: Bool)] {
        let copy = openat(number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard copy >= 0, let listing = fdopendir(copy) else { throw .system("open", path) }
        defer { closedir(listing) }
        var names: [(name: String, isFolder: Bool)] = []
        while true {
            errno = 0
            guard let entry = readdir(listing) else {
                guard errno == 0 else { throw .system("read", path) }
                return names
            }
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name == "." || name == ".." { continue }
            var isFolder = entry.pointee.d_type == UInt8(DT_DIR)
            if entry.pointee.d_type == UInt8(DT_UNKNOWN) {
                isFolder = status(of: name)?.isFolder ?? false
            }
            names.append((name, isFolder))
        }
    }

    /// Calls `body` with the relative path of each file below it, until that returns false.
    func forEachFile(
        below prefix: String = "", _ body: (String) -> Bool
    ) throws(ExportError) -> Bool {
        for (name, isFolder) in try names() {
            let path = prefix + name
            if isFolder {
                guard let folder = try folder(name) else { continue }
                guard try folder.forEachFile(below: path + "/", body) else { return false }
            } else if !body(path) {
                return false
            }
        }
        return true
    }

    /// The bytes of a file in it; nil if it cannot be read.
    func contents(of name: String) throws(ExportError) -> [UInt8]? {
        let number = openat(self.number, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard number >= 0 else {
            if errno == ENOENT { return nil }
            throw .system("open", path(of: name))
        }
        let file = Folder(number, path: path(of: name))
        guard let status = file.status else { throw .system("stat", file.path) }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        var count = 0
        while count < bytes.count {
            let found = bytes.withUnsafeMutableBytes {
                read(number, $0.baseAddress.map { $0 + count }, $0.count - count)
            }
            if found < 0, errno == EINTR { continue }
            guard found >= 0 else { throw .system("read", file.path) }
            if found == 0 { return nil }
            count += found
        }
        return bytes
    }

    /// Copies a file with its mode and times to another folder.
    func copy(_ path: String, to name: String, in folder: Folder) throws(ExportError) {
        guard let bytes = try contents(of: path), let status = status(of: path) else {
            throw .system("open", self.path(of: path))
        }
        let number = openat(
            folder.number, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard number >= 0 else { throw .system("create", folder.path(of: name)) }
        let file = Folder(number, path: folder.path(of: name))
        try ExportError.rethrowing { () throws(StorageError) in
            try CacheDirectory.writeAll(bytes, to: file.number, path: file.path)
        }
        var times = [status.st_mtim, status.st_mtim]
        guard fchmod(file.number, status.permissions) == 0, futimens(file.number, &times) == 0
        else { throw .system("chmod", file.path) }
    }

    func move(
        _ name: String, to target: (folder: Folder, name: String)
    ) throws(ExportError) {
        guard renameat(number, name, target.folder.number, target.name) == 0 else {
            throw .system("rename", target.folder.path(of: target.name))
        }
    }

    /// Removes a file below it, and the folders that it leaves empty.
    func remove(file path: String) throws(ExportError) {
        guard unlinkat(number, path, 0) == 0 || errno == ENOENT else {
            throw .system("unlink", self.path(of: path))
        }
        var folder = path[...]
        while let slash = folder.utf8.lastIndex(of: UInt8(ascii: "/")) {
            folder = folder[..<slash]
            // It fails for a folder with other files.
            guard unlinkat(number, String(folder), AT_REMOVEDIR) == 0 else { return }
        }
    }

    /// Removes everything in it.
    func removeContents() throws(ExportError) {
        for (name, isFolder) in try names() {
            if isFolder, let folder = try folder(name) { try folder.removeContents() }
            guard unlinkat(number, name, isFolder ? AT_REMOVEDIR : 0) == 0 || errno == ENOENT else {
                throw .system("unlink", path(of: name))
            }
        }
    }

    /// Removes a folder with its contents, if it exists.
    func remove(folder name: String) throws(ExportError) {
        guard let folder = try folder(name) else { return }
        try folder.removeContents()
        guard unlinkat(number, name, AT_REMOVEDIR) == 0 || errno == ENOENT else {
            throw .system("rmdir", path(of: name))
        }
    }
}

/// The folder of the present file in a tree. Files in the order of their paths share it.
struct FolderCursor: ~Copyable {
    let root: Folder
    private let mode: FileMode?
    private var path = ""
    private var current: Folder

    init(_ root: Folder, mode: FileMode?) {
        self.root = root
        self.mode = mode
        current = root
    }

    /// Opens the folder of a file, and creates it if it is missing.
    ///
    /// - Returns: the folder, and the file's name in it.
    mutating func enter(_ file: String) throws(ExportError) -> (folder: Folder, name: String) {
        guard let slash = file.utf8.lastIndex(of: UInt8(ascii: "/")) else { return (root, file) }
        let name = String(file[file.utf8.index(after: slash)...])
        if file[..<slash].equals(bytesOf: path) { return (current, name) }
        var folder = root
        for part in file[..<slash].split(separator: "/") {
            folder = try folder.makeFolder(String(part), mode: mode)
        }
        path = String(file[..<slash])
        current = folder
        return (folder, name)
    }
}
