import Glibc
import PrefetchModel

/// The identity of a file: equal until the file is removed, replaced or moved.
///
/// An inode number may be reused once no process holds the file open. So an identity is valid only
/// while its file is open.
struct FileIdentity: Equatable {
    private let device: dev_t
    private let inode: ino_t

    private init(_ status: stat) {
        device = status.st_dev
        inode = status.st_ino
    }

    /// Nil if `fstat` fails.
    init?(of file: FileDescriptor) {
        var status = stat()
        guard fstat(file.number, &status) == 0 else { return nil }
        self.init(status)
    }

    /// The identity of the entry `name` in a folder; does not follow a symbolic link. Nil if it
    /// does not exist.
    init?(_ name: String, in folder: FileDescriptor) {
        var status = stat()
        guard fstatat(folder.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return nil }
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
    /// The time when the file was last created, written or renamed.
    var changeTime: Timestamp {
        Timestamp(milliseconds: Int64(st_ctim.tv_sec) * 1000 + Int64(st_ctim.tv_nsec) / 1_000_000)
    }
}
