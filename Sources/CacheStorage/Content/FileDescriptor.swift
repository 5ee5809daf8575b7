import Glibc

/// An open file or directory, closed with its last reference.
final class FileDescriptor: Sendable {
    let number: Int32

    init(_ number: Int32) {
        self.number = number
    }

    deinit {
        // Nothing is written through a descriptor that is closed here; files that are written
        // are closed by ``ContentStore``, which checks the result.
        close(number)
    }

    /// Opens a directory below `parent`, making it first where it is missing; symbolic links are
    /// refused. The path is for messages.
    ///
    /// With a `mode` it has that afterwards, new or not, whatever the umask.
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
        let number = openat(
            parent.number, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
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
