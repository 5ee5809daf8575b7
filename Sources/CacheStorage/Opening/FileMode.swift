internal import Glibc
import Synchronization

/// The permission bits of a cache's files: 0600, 0640, 0644 or 0604. Its folders have the matching
/// execute bits: 0750 for files of 0640.
package struct FileMode: Hashable, Sendable, CustomStringConvertible {
    /// The read bits of group and others.
    private static let readable: mode_t = 0o044

    /// 0600
    package static let ownersAlone = FileMode(others: 0)

    package let ofFiles: UInt32

    private init(others: mode_t) {
        ofFiles = 0o600 | others
    }

    package init?(bits: Int64) {
        guard let bits = mode_t(exactly: bits), bits & ~FileMode.readable == 0o600 else {
            return nil
        }
        self.init(others: bits & FileMode.readable)
    }

    /// Parses octal digits as `chmod` does, with or without a leading zero; nil for any other text.
    package init?(text: some StringProtocol) {
        guard (3...4).contains(text.utf8.count),
            text.utf8.allSatisfy({ (0x30...0x37).contains($0) }),
            let bits = Int64(text, radix: 8)
        else { return nil }
        self.init(bits: bits)
    }

    /// The file mode that matches a folder's bits; nil if others may do anything but read it.
    init?(ofFolder bits: mode_t) {
        self.init(bits: Int64(bits & 0o666))
        guard ofFolders == bits & 0o777 else { return nil }
    }

    package var ofFolders: UInt32 { ofFiles | (ofFiles & 0o444) >> 2 }

    /// Whether users other than the owner may read.
    package var isShared: Bool { ofFiles & FileMode.readable != 0 }

    /// `0640`
    package var description: String { FileMode.text(ofFiles) }

    /// `0750`
    package var ofFoldersText: String { FileMode.text(ofFolders) }

    /// The text of a content file's permissions if they differ from a cache's mode, else nil.
    /// Without a mode, any that leave the file to its owner are right.
    static func difference(of bits: mode_t, from mode: FileMode?) -> String? {
        let isRight = mode.map { bits & 0o777 == $0.ofFiles } ?? (bits & 0o077 == 0)
        return isRight ? nil : text(bits & 0o777)
    }

    static func text(_ bits: mode_t) -> String {
        let digits = String(bits, radix: 8)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}

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
            snapshotName, UnloggedRuns.fileName,
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
