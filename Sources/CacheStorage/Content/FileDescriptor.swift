import Glibc

/// An open file or directory, closed with its last reference.
final class FileDescriptor: Sendable {
    let number: Int32

    init(_ number: Int32) {
        self.number = number
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

    /// Opens a directory below `parent`, creating it if `isCreated`; refuses symbolic links. The
    /// path is for messages.
    ///
    /// Sets the permissions of `mode`, if given, for new and existing directories, despite the
    /// umask.
    static func directory(
        _ name: String, in parent: FileDescriptor, path: String, isCreated: Bool,
        mode: FileMode? = nil
    ) throws(StorageError) -> FileDescriptor {
        if isCreated, mkdirat(parent.number, name, mode?.ofFolders ?? 0o700) != 0, errno != EEXIST {
            throw .system("mkdir", path)
        }
        if let mode {
            _ = try CacheDirectory.setMode(mode, of: name, in: parent, path: path)
        }
        let number = openat(parent.number, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard number >= 0 else {
            if errno == ELOOP || errno == ENOTDIR {
                throw .refused(
                    path, "is not a directory of this cache",
                    hint: "move it away; symbolic links inside a cache are refused")
            }
            throw .system("open", path)
        }
        return FileDescriptor(number)
    }
}
