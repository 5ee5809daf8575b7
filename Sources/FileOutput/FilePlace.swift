internal import CLinux
internal import Glibc

/// The folder and the name of a file to write, after all symbolic links of its path.
///
/// The folder is open, so later changes of the path have no effect. A link is followed only if it
/// belongs to this user or to root, or is in a folder of theirs that only its owner can write:
/// another user may have planted any other link, to have a file elsewhere overwritten.
package struct FilePlace: Sendable {
    let folder: OutputFolder
    let name: String
    let path: String
    /// Whether the name is one of procfs, which leads to a pipe, a terminal or a deleted file.
    let isOpenFile: Bool

    /// As in the kernel.
    private static let mostLinks = 40
    /// `PROC_SUPER_MAGIC`, see linux/magic.h.
    private static let procfs: UInt32 = 0x9fa0
}

extension FilePlace {
    /// - Throws: for a path without a file's name, a missing folder, or a stranger's link.
    package init(_ path: String) throws(OutputError) {
        try self.init(path, in: try FilePlace.start(of: path), path)
    }

    /// Finds a file by its path relative to a folder; `path` is the path in messages.
    init(_ name: String, in folder: OutputFolder, _ path: String) throws(OutputError) {
        self = try FilePlace.find(name, in: folder, path)
        if [".", ".."].contains(self.name) { throw .system("open", path, EISDIR) }
    }

    /// Checks the links of a folder's path. A path that leads nowhere has none.
    ///
    /// - Throws: ``OutputError/foreignLink(subject:owner:)``.
    package static func check(folder path: String) throws(OutputError) {
        do {
            _ = try find(path, in: try start(of: path), path)
        } catch {
            guard case .foreignLink = error else { return }
            throw error
        }
    }

    /// Opens a folder as that of a file is opened.
    static func folder(_ path: String) throws(OutputError) -> OutputFolder {
        try find("\(path)/.", in: try start(of: path), path).folder
    }

    private static func start(of path: String) throws(OutputError) -> OutputFolder {
        guard !path.isEmpty else { throw .system("open", path, ENOENT) }
        return try OutputFolder(path.hasPrefix("/") ? "/" : ".", path)
    }

    /// The parts of a path, the last one first. A slash at its end means the folder itself.
    private static func parts(_ path: String) -> [String] {
        (path.hasSuffix("/") ? ["."] : []) + path.split(separator: "/").reversed().map(String.init)
    }

    private static func find(
        _ text: String, in start: OutputFolder, _ path: String
    ) throws(OutputError) -> FilePlace {
        var folder = start
        var rest = parts(text)
        var links = 0
        while let name = rest.popLast() {
            var status = stat()
            let isPresent = fstatat(folder.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0
            guard isPresent || errno == ENOENT && rest.isEmpty else {
                throw .system("open", path, errno)
            }
            guard isPresent, status.st_mode & S_IFMT == S_IFLNK else {
                guard rest.isEmpty else {
                    folder = try OutputFolder(name, in: folder, path)
                    continue
                }
                return FilePlace(folder: folder, name: name, path: path, isOpenFile: false)
            }
            if rest.isEmpty, isOpenFile(name, in: folder) {
                return FilePlace(folder: folder, name: name, path: path, isOpenFile: true)
            }
            links += 1
            guard links <= mostLinks else { throw .system("open", path, ELOOP) }
            try folder.check(link: status, path)
            let target = try folder.target(of: name, path)
            if target.hasPrefix("/") { folder = try OutputFolder("/", path) }
            rest += parts(target)
        }
        return FilePlace(folder: folder, name: ".", path: path, isOpenFile: false)
    }

    /// Whether a link of procfs is the only way to an open file: `/dev/stdout` of a pipe.
    private static func isOpenFile(_ name: String, in folder: OutputFolder) -> Bool {
        var system = clinux_file_system()
        guard clinux_fstatfs(folder.number, &system) == 0, system.type == procfs else {
            return false
        }
        var status = stat()
        return fstatat(folder.number, name, &status, 0) == 0
            && (status.st_mode & S_IFMT != S_IFREG || status.st_nlink == 0)
    }

    /// Opens the file by `openat`.
    ///
    /// - Returns: the descriptor, for the caller to close; -1 with `errno`.
    package func open(_ flags: Int32, mode: UInt32) -> Int32 {
        openat(folder.number, name, flags | (isOpenFile ? 0 : O_NOFOLLOW), mode)
    }

    /// Checks that a ``ReplacingFile`` may succeed.
    ///
    /// - Throws: ``OutputError`` if the folder cannot be written, or if the name is that of
    ///   something other than a regular file: a device or a pipe must not be replaced.
    package func checkReplacing() throws(OutputError) {
        var status = stat()
        if isOpenFile { throw .system("replace", path, EEXIST) }
        if fstatat(folder.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 {
            guard status.st_mode & S_IFMT == S_IFREG else {
                throw .system("replace", path, EEXIST)
            }
        } else if errno != ENOENT {
            throw .system("stat", path, errno)
        }
        guard faccessat(folder.number, ".", W_OK | X_OK, 0) == 0 else {
            throw .system("replace", path, errno)
        }
    }
}
