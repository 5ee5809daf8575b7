import Glibc
import Synchronization

extension CacheDirectory {
    /// The mode of the cache's files; nil if none was chosen, which means 0600 less the umask.
    package var fileMode: FileMode? { FileMode(bits: Int64(modeBits.load(ordering: .relaxed))) }

    /// Gives new files and folders this mode, despite the umask.
    func use(_ mode: FileMode) { modeBits.store(UInt32(mode.ofFiles), ordering: .relaxed) }

    var creationMode: mode_t { fileMode?.ofFiles ?? 0o600 }

    /// Sets the mode of a new file, without the umask; the path is for messages.
    func giveMode(
        toNewFile descriptor: Int32, path: @autoclosure () -> String
    ) throws(StorageError) {
        guard let fileMode else { return }
        guard fchmod(descriptor, fileMode.ofFiles) == 0 else { throw .system("chmod", path()) }
    }

    /// The result of ``FileDescriptor/setMode(_:of:sparesLinks:)``.
    enum ModeChange {
        case changed(isFolder: Bool)
        case unchanged
        case missing
        /// It is a file with several names, which keeps its mode.
        case linked
        /// It is neither file nor folder, or belongs to another user.
        case foreign
    }

    /// The names of the layout, which exist from the start, and of temporary files in the folder.
    /// Readers need access to all of them. The folder of lists is private, see ``ListStore``.
    static let layout =
        [
            ".", tagName, lockName, "content", "tmp", CrashLog.fileName, suspicionName,
            snapshotName,
        ]
        + ([""] + CacheDatabase.companions).map { databaseName + $0 }

    /// Gives the names of ``layout`` the mode, before which they may have been made.
    func applyModeToLayout() throws(StorageError) {
        guard let fileMode else { return }
        for name in CacheDirectory.layout {
            _ = try handle.setMode(fileMode, of: name)
        }
    }

    /// The mode that the content folder implies; nil for the default. Used where the database is
    /// missing, which would hold the mode.
    var modeOfContent: FileMode? {
        guard let status = handle.status(of: "content"),
            let mode = FileMode(ofFolder: status.st_mode), mode.isShared
        else { return nil }
        return mode
    }
}

extension FileDescriptor {
    /// Sets the permissions of a file or a folder. Does not follow symbolic links. The file is not
    /// opened: closing any descriptor of a file releases the process's locks on it, which SQLite
    /// relies on (POSIX; "How To Corrupt An SQLite Database File", section 2.2). With
    /// `sparesLinks`, a file with several names is unchanged.
    ///
    /// - Throws: when the system refuses, which it does not for the owner.
    func setMode(
        _ mode: FileMode, of name: String, sparesLinks: Bool = false
    ) throws(StorageError) -> CacheDirectory.ModeChange {
        guard let status = try existingStatus(of: name) else { return .missing }
        guard status.isFile || status.isFolder, status.st_uid == geteuid() else { return .foreign }
        let wanted = status.isFile ? mode.ofFiles : mode.ofFolders
        guard status.st_mode & 0o777 != wanted else { return .unchanged }
        if sparesLinks, status.isFile, status.st_nlink > 1 { return .linked }
        // A folder's set-group-ID bit gives new files the folder's group; it stays.
        let bits = status.st_mode & S_ISGID | wanted
        guard fchmodat(number, name, bits, AT_SYMLINK_NOFOLLOW) == 0 else {
            switch errno {
            case ENOENT: return .missing
            // Something else has replaced it.
            case EOPNOTSUPP, ELOOP: return .foreign
            default: throw .system("chmod", path(of: name))
            }
        }
        return .changed(isFolder: status.isFolder)
    }
}
