import Glibc
import PrefetchModel

/// Which file a name leads to: equal as long as nobody removes, replaces or moves it.
///
/// An inode's number may be given to another file once nobody holds it open, so an identity is worth
/// something while its file is open.
struct FileIdentity: Equatable {
    private let device: dev_t
    private let inode: ino_t

    private init(_ status: stat) {
        device = status.st_dev
        inode = status.st_ino
    }

    /// Nil when the file cannot be looked at.
    init?(of file: FileDescriptor) {
        var status = stat()
        guard fstat(file.number, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Of what lies under a name in a folder; a symbolic link is not followed. Nil without any.
    init?(_ name: String, in folder: FileDescriptor) {
        var status = stat()
        guard fstatat(folder.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return nil }
        self.init(status)
    }

    /// Of what a path leads to. Nil without any.
    init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }
}

extension stat {
    /// When the file was made, written or renamed the last time.
    var changeTime: Timestamp {
        Timestamp(milliseconds: Int64(st_ctim.tv_sec) * 1000 + Int64(st_ctim.tv_nsec) / 1_000_000)
    }
}
