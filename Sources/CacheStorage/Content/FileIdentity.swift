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
        guard let status = file.status else { return nil }
        self.init(status)
    }

    /// The identity of the entry `name` in a folder; does not follow a symbolic link. Nil if it
    /// does not exist.
    init?(_ name: String, in folder: FileDescriptor) {
        guard let status = folder.status(of: name) else { return nil }
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
    var isFile: Bool { st_mode & S_IFMT == S_IFREG }
    var isFolder: Bool { st_mode & S_IFMT == S_IFDIR }
    var size: Int { Int(st_size) }

    /// The time when the file was last created, written or renamed.
    var changeTime: Timestamp { Timestamp(st_ctim) }
}

extension Timestamp {
    init(_ time: timespec) {
        self.init(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }
}
