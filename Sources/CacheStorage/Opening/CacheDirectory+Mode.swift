import Glibc
import Synchronization

// The permissions that files and folders get.

extension CacheDirectory {
    /// What the cache's files have; nil where nobody has said: 0600, less what the umask takes away.
    package var fileMode: FileMode? { FileMode(bits: Int64(modeBits.load(ordering: .relaxed))) }

    /// New files and folders get this mode from now on, whatever the umask.
    func use(_ mode: FileMode) { modeBits.store(UInt32(mode.ofFiles), ordering: .relaxed) }

    /// For `open`.
    var creationMode: mode_t { fileMode?.ofFiles ?? 0o600 }

    /// Gives a file that was just made its mode, of which the umask may have taken something away; the path is for
    /// messages.
    func giveMode(
        toNewFile descriptor: Int32, path: @autoclosure () -> String
    ) throws(StorageError) {
        guard let fileMode else { return }
        guard fchmod(descriptor, fileMode.ofFiles) == 0 else { throw .system("chmod", path()) }
    }

    /// What ``setMode(_:of:in:path:)`` has done.
    enum ModeChange {
        enum Kind {
            case file, folder
        }

        case changed(Kind)
        /// It had that mode.
        case unchanged
        /// Nothing is there.
        case missing
        /// It is no file or folder, or belongs to somebody else.
        case foreign
    }

    /// Gives a file or a folder the permissions that it should have. Symbolic links are not followed.
    ///
    /// It is not opened: a process that closes a file loses the locks that it has on it elsewhere, which SQLite relies on
    /// (POSIX; "How To Corrupt An SQLite Database File", section 2.2).
    ///
    /// The name is relative to the folder, the path is for messages.
    ///
    /// - Throws: when the system does not do it, which it does for the owner.
    static func setMode(
        _ mode: FileMode, of name: String, in folder: FileDescriptor,
        path: @autoclosure () -> String
    ) throws(StorageError) -> ModeChange {
        var status = stat()
        guard fstatat(folder.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
            guard errno == ENOENT || errno == ENOTDIR else { throw .system("stat", path()) }
            return .missing
        }
        let kind: ModeChange.Kind
        switch status.st_mode & S_IFMT {
        case S_IFREG: kind = .file
        case S_IFDIR: kind = .folder
        default: return .foreign
        }
        let wanted = kind == .file ? mode.ofFiles : mode.ofFolders
        guard status.st_uid == geteuid() else { return .foreign }
        guard status.st_mode & 0o777 != wanted else { return .unchanged }
        // A folder's set-group-ID bit has new files belong to its group, which whoever set it wants.
        let bits = status.st_mode & S_ISGID | wanted
        guard fchmodat(folder.number, name, bits, AT_SYMLINK_NOFOLLOW) == 0 else {
            switch errno {
            case ENOENT: return .missing
            // Something else has come into its place.
            case EOPNOTSUPP, ELOOP: return .foreign
            default: throw .system("chmod", path())
            }
        }
        return .changed(kind)
    }

    /// The names of the layout that are there from a cache's first moment on, and those that come and go beside them: what
    /// a reader needs to get to the content files.
    static let layout =
        [
            ".", tagName, lockName, "content", "tmp", CrashLog.fileName, suspicionName,
            snapshotName,
        ]
        + ([""] + CacheDatabase.companions).map { databaseName + $0 }

    /// Gives what ``layout`` names the mode of new files: it was made before that was known, or has another one.
    func applyModeToLayout() throws(StorageError) {
        guard let fileMode else { return }
        for name in CacheDirectory.layout {
            _ = try CacheDirectory.setMode(
                fileMode, of: name, in: handle, path: path(of: name))
        }
    }

    /// The mode that the folder of content files speaks for; nil where it is the usual one.
    ///
    /// A cache whose database is gone remembers no mode.
    var modeOfContent: FileMode? {
        var status = stat()
        guard fstatat(handle.number, "content", &status, AT_SYMLINK_NOFOLLOW) == 0,
            let mode = FileMode(ofFolder: status.st_mode), mode.isShared
        else { return nil }
        return mode
    }
}
