import Glibc

/// The right to write a cache, held by one run at a time; given back with the last reference, and
/// by the kernel when the process dies.
package final class CacheLock: Sendable {
    private let handle: FileDescriptor

    private init(handle: FileDescriptor) {
        self.handle = handle
    }

    /// Takes the lock, or returns nil when another process holds it.
    ///
    /// - Throws: when the lock file cannot be opened, or the file system has no locks.
    package static func acquire(_ directory: CacheDirectory) throws(StorageError) -> CacheLock? {
        let path = directory.path(of: "lock")
        let number = openat(
            directory.handle.number, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard number >= 0 else {
            throw .system(
                "open", path, hint: errno == ELOOP ? "symbolic links in a cache are refused" : nil)
        }
        let handle = FileDescriptor(number)
        while flock(number, LOCK_EX | LOCK_NB) != 0 {
            switch errno {
            case EINTR: continue
            case EWOULDBLOCK: return nil
            default: throw .system("flock", path)
            }
        }
        return CacheLock(handle: handle)
    }
}
