internal import CLinux
import CacheStorage
import Glibc
import PrefetchModel

/// An open folder, or a file in one. Symbolic links are not followed.
typealias Folder = FileDescriptor

extension Folder {
    /// Opens a folder by its path, links followed; nil if it is missing.
    static func open(_ path: String) throws(UserError) -> Folder? {
        let number = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if number >= 0 { return Folder(number, path: path) }
        guard errno == ENOENT else { throw .system("open", path) }
        return nil
    }

    /// Opens a folder by its path, links followed. Creates it and its parents if they are missing.
    static func openOrMake(_ path: String) throws(UserError) -> Folder {
        if let folder = try open(path) { return folder }
        let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        if let slash, slash > path.startIndex { _ = try openOrMake(String(path[..<slash])) }
        guard mkdir(path, 0o777) == 0 || errno == EEXIST else { throw .system("mkdir", path) }
        guard let folder = try open(path) else { throw .system("open", path) }
        return folder
    }

    func folder(_ name: String) throws(UserError) -> Folder? {
        let number = openat(
            self.number, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        if number >= 0 { return Folder(number, path: path(of: name)) }
        guard errno == ENOENT else { throw .system("open", path(of: name)) }
        return nil
    }

    /// Opens a folder in this one; nil if it is missing, or a file or link.
    func present(_ name: String) throws(UserError) -> Folder? {
        do {
            return try folder(name)
        } catch {
            guard errno == ENOTDIR || errno == ELOOP else { throw error }
            return nil
        }
    }

    func makeFolder(_ name: String, mode: FileMode?) throws(UserError) -> Folder {
        if mkdirat(number, name, mode?.ofFolders ?? 0o777) != 0, errno != EEXIST {
            throw .system("mkdir", path(of: name))
        }
        guard let folder = try folder(name) else { throw .system("open", path(of: name)) }
        // Whatever the umask, and that of an earlier export.
        if let mode, let status = folder.status, status.permissions != mode.ofFolders {
            _ = try Folder.set("chmod", folder.path, fchmod(folder.number, mode.ofFolders))
        }
        return folder
    }

    /// Returns false if another process has it. Succeeds on a file system without locks.
    func takeLock() throws(UserError) -> Bool {
        let result = flock(number, LOCK_EX | LOCK_NB)
        if result != 0, errno == EWOULDBLOCK { return false }
        _ = try Folder.set("lock", path, result)
        return true
    }

    /// Whether a name in another folder means this one.
    func isPresent(as name: String, in parent: Folder) -> Bool {
        guard let own = status, let present = parent.status(of: name) else { return false }
        return own.st_ino == present.st_ino && own.st_dev == present.st_dev
    }

    func names() throws(UserError) -> [(name: String, isFolder: Bool)] {
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
    ) throws(UserError) -> Bool {
        for (name, isFolder) in try names() {
            let path = prefix + name
            if isFolder {
                // A name that is not UTF-8 cannot be opened by its text.
                if let folder = try present(name) {
                    guard try folder.forEachFile(below: path + "/", body) else { return false }
                    continue
                }
            }
            if !body(path) { return false }
        }
        return true
    }

    /// The bytes of a file in it; nil if it cannot be read.
    func contents(of name: String) throws(UserError) -> [UInt8]? {
        guard let file = Folder.reading(name, in: self) else {
            if errno == ENOENT { return nil }
            throw .system("open", path(of: name))
        }
        guard let status = file.status else { throw .system("stat", path(of: name)) }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        let (count, code) = bytes.withUnsafeMutableBytes { Folder.fill($0, from: file) }
        guard code == 0 else {
            errno = code
            throw .system("read", path(of: name))
        }
        return count == bytes.count ? bytes : nil
    }

    /// Gives a file a second name, or copies it with its mode and times.
    func hand(
        _ name: String, to target: (folder: Folder, name: String)
    ) throws(UserError) {
        let folder = target.folder
        if linkat(number, name, folder.number, target.name, 0) == 0 { return }
        guard let bytes = try contents(of: name), let status = status(of: name) else {
            throw .system("open", path(of: name))
        }
        let number = openat(
            folder.number, target.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard number >= 0 else { throw .system("create", folder.path(of: target.name)) }
        let file = Folder(number, path: folder.path(of: target.name))
        try UserError.ofExport { () throws(StorageError) in
            try CacheDirectory.writeAll(bytes, to: file.number, path: file.path)
        }
        var times = [status.st_mtim, status.st_mtim]
        _ = try Folder.set("chmod", file.path, fchmod(file.number, status.permissions))
        _ = try Folder.set("utimens", file.path, futimens(file.number, &times))
    }

    /// Puts the names in it on the disk, where the file system can.
    func synchronize() throws(UserError) {
        _ = try Folder.set("sync", path, fsync(number))
    }

    /// Checks the result of a call that a file system may lack and an export can do without.
    ///
    /// - Returns: whether the call has succeeded.
    static func set(
        _ operation: String, _ path: @autoclosure () -> String, _ result: Int32
    ) throws(UserError) -> Bool {
        if result == 0 { return true }
        guard clinux_is_refusal(errno) != 0 else { throw .system(operation, path()) }
        return false
    }

    /// Moves a file.
    ///
    /// - Returns: false if there is a file at the target already, and `replaces` is false.
    @discardableResult func move(
        _ name: String, to target: (folder: Folder, name: String), replaces: Bool = true
    ) throws(UserError) -> Bool {
        if !replaces {
            let code = renameat2(
                number, name, target.folder.number, target.name, clinux_rename_noreplace)
            if code == 0 { return true }
            if errno == EEXIST { return false }
            // EINVAL, ENOSYS: the file system cannot do it.
        }
        guard renameat(number, name, target.folder.number, target.name) == 0 else {
            throw .system("rename", target.folder.path(of: target.name))
        }
        return true
    }

    /// Removes a file below it, and the folders that it leaves empty.
    func remove(file path: String) throws(UserError) {
        var flags: Int32 = 0
        var rest = path[...]
        while true {
            var cursor = FolderCursor(root: self)
            guard let (folder, name) = try cursor.find(String(rest)) else { return }
            guard unlinkat(folder.number, name, flags) == 0 || errno == ENOENT else {
                // A folder with other files stays.
                if flags == AT_REMOVEDIR { return }
                throw .system("unlink", folder.path(of: name))
            }
            guard let slash = rest.utf8.lastIndex(of: UInt8(ascii: "/")) else { return }
            rest = rest[..<slash]
            flags = AT_REMOVEDIR
        }
    }

    /// Whether it may be used and removed as one that an earlier export has left: in a parent that
    /// others can write, another user may have given its name to a folder with other files.
    func isOfExport(in parent: Folder) throws(UserError) -> Bool {
        let shared = (parent.status?.st_mode ?? 0) & (S_IWGRP | S_IWOTH)
        if shared == 0 { return true }
        guard status?.st_uid == geteuid() else { return false }
        if try names().isEmpty { return true }
        guard let state = status(of: ExportState.name) else { return false }
        return state.isFile && state.st_uid == geteuid()
    }

    /// Removes everything in it; the state last, which makes it the folder of an export.
    func removeContents() throws(UserError) {
        let names = try names()
        let states = names.filter { $0.name == ExportState.name }
        for (name, isFolder) in names.filter({ $0.name != ExportState.name }) + states {
            if isFolder, let folder = try folder(name) { try folder.removeContents() }
            guard unlinkat(number, name, isFolder ? AT_REMOVEDIR : 0) == 0 || errno == ENOENT else {
                throw .system("unlink", path(of: name))
            }
        }
    }

    func remove(folder name: String) throws(UserError) {
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
    private(set) var mode: FileMode?
    private(set) var path = ""
    /// Nil for the root.
    private(set) var current: Folder?

    /// Opens the folder of a file, and creates it if it is missing.
    ///
    /// - Returns: the folder, and the file's name in it.
    mutating func enter(_ file: String) throws(UserError) -> (folder: Folder, name: String) {
        let mode = mode
        let place = try place(of: file) { folder, name throws(UserError) in
            try folder.makeFolder(name, mode: mode)
        }
        guard let place else { preconditionFailure("the folder was made") }
        return place
    }

    mutating func find(_ file: String) throws(UserError) -> (folder: Folder, name: String)? {
        try place(of: file) { folder, name throws(UserError) in try folder.present(name) }
    }

    private mutating func place(
        of file: String, opening: (Folder, String) throws(UserError) -> Folder?
    ) throws(UserError) -> (folder: Folder, name: String)? {
        guard let slash = file.utf8.lastIndex(of: UInt8(ascii: "/")) else { return (root, file) }
        let name = String(file[file.utf8.index(after: slash)...])
        if file[..<slash].equals(bytesOf: path) { return (current ?? root, name) }
        var folder = root
        for part in file[..<slash].split(separator: "/") {
            guard let next = try opening(folder, String(part)) else { return nil }
            folder = next
        }
        path = String(file[..<slash])
        current = folder
        return (folder, name)
    }

    mutating func status(of file: String) throws(UserError) -> stat? {
        guard let (folder, name) = try find(file) else { return nil }
        return folder.status(of: name)
    }
}
