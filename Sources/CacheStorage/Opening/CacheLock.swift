internal import CLinux
import Glibc
package import PrefetchModel

/// The right to write a cache, of one run at a time; its process's end releases it, too.
package final class CacheLock: Sendable {
    private let handle: FileDescriptor
    private let identity: FileIdentity

    private init(handle: FileDescriptor, path: String) throws(StorageError) {
        guard let identity = FileIdentity(of: handle) else { throw .system("stat", path) }
        self.handle = handle
        self.identity = identity
    }

    /// Takes the lock and writes the holder into its file. Returns nil if another process holds it.
    package static func acquire(_ directory: CacheDirectory) throws(StorageError) -> CacheLock? {
        let path = directory.path(of: CacheDirectory.lockName)
        while true {
            let number = openat(
                directory.handle.number, CacheDirectory.lockName,
                O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, directory.creationMode)
            guard number >= 0 else {
                throw .system(
                    "open", path,
                    hint: errno == ELOOP ? "symbolic links in a cache are refused" : nil)
            }
            let lock = try CacheLock(handle: FileDescriptor(number), path: path)
            while flock(number, LOCK_EX | LOCK_NB) != 0 {
                switch errno {
                case EINTR: continue
                case EWOULDBLOCK: return nil
                case let code where clinux_is_refusal(code) != 0: throw directory.lacksLocks
                default: throw .system("flock", path)
                }
            }
            try directory.requireLocks()
            // The file may have been removed in between: the next process would lock another one.
            guard lock.isInPlace(in: directory) else { continue }
            lock.write(LockHolder.current())
            return lock
        }
    }

    /// Keeps other processes from taking the lock, in a cache that is only read. Nil without a
    /// readable lock file: then no run of this user can have it.
    ///
    /// - Throws: when another process holds the lock after the time to wait.
    static func share(
        _ directory: CacheDirectory, waiting: OpenCache.LockWaiting = .none
    ) throws(StorageError) -> CacheLock? {
        let start = ContinuousClock.now
        guard
            let handle = FileDescriptor.reading(CacheDirectory.lockName, in: directory.handle)
        else { return nil }
        while flock(handle.number, LOCK_SH | LOCK_NB) != 0 {
            switch errno {
            case EINTR: continue
            case EWOULDBLOCK:
                if case .upTo(let limit) = waiting, limit.map({ start + $0 > .now }) ?? true {
                    usleep(50_000)
                    continue
                }
                let holder = holder(in: directory).map { " (pid \($0.process) on \($0.host))" }
                throw StorageError(
                    operation: "locking", subject: directory.path, code: .system(EWOULDBLOCK),
                    message: "another process holds this cache" + (holder ?? ""),
                    hint: "--lock wait waits for it")
            // The file system has no locks.
            default: return nil
            }
        }
        return try CacheLock(handle: handle, path: directory.path(of: CacheDirectory.lockName))
    }

    /// The holder of the lock; nil if it is free or unknown.
    package static func holder(in directory: CacheDirectory) -> LockHolder? {
        guard
            let line = FileDescriptor.beginning(
                of: CacheDirectory.lockName, in: directory.handle, limit: 512),
            let holder = LockHolder(line: line), holder.mayBeAlive
        else { return nil }
        return holder
    }

    /// For people to read only, so a full disk is ignored.
    private func write(_ holder: LockHolder) {
        let line = Array(holder.line.utf8)
        let written = line.withUnsafeBytes { pwrite(handle.number, $0.baseAddress, $0.count, 0) }
        ftruncate(handle.number, off_t(max(0, written)))
    }

    /// Whether the lock's name still leads to the locked file: another run may hold one of its own.
    func isInPlace(in directory: CacheDirectory) -> Bool {
        FileIdentity(CacheDirectory.lockName, in: directory.handle) == identity
    }
}

extension CacheDirectory {
    /// Tries the locks that SQLite takes, which reports `ENOLCK` as another program's lock. Never
    /// tried on the database, where closing the file would release the locks of this process's
    /// connections, nor on the lock file: at an NFS server, `flock` is the same lock, and a
    /// starting run would end. An unreadable tag file is left to SQLite.
    func requireLocks() throws(StorageError) {
        guard let file = FileDescriptor.reading(CacheDirectory.tagName, in: handle) else { return }
        var lock = flock()
        lock.l_type = Int16(F_RDLCK)
        lock.l_len = 1
        try require("lock", CacheDirectory.tagName, fcntl(file.number, F_SETLK, &lock))
    }

    /// Tries the calls that a run cannot do without.
    package func requireCalls() throws(StorageError) {
        try requireLocks()
        // The lock of runs itself would keep a run from starting.
        guard let file = FileDescriptor.reading(CacheDirectory.tagName, in: handle) else { return }
        try require("flock", CacheDirectory.tagName, flock(file.number, LOCK_SH | LOCK_NB))
        try synchronize(CacheDirectory.tagName)
    }

    private func require(
        _ operation: String, _ name: String, _ result: Int32
    ) throws(StorageError) {
        guard result != 0, ![EAGAIN, EACCES, EINTR, EDEADLK].contains(errno) else { return }
        if clinux_is_refusal(errno) != 0 { throw lacksLocks }
        throw .system(operation, path(of: name))
    }

    fileprivate var lacksLocks: StorageError {
        .refused(
            path, "the file system (\(fileSystem.name)) has no file locks",
            hint: "name a directory on another file system with --cache-dir; see docs/cache.md")
    }
}

/// The holder of a cache's lock, as it has written itself into the lock file.
package struct LockHolder: Hashable, Sendable {
    package let process: Int32
    /// The host's name; the cache may be on a shared file system.
    package let host: String
    package let since: Timestamp

    /// This process, holding from now on.
    static func current() -> LockHolder {
        LockHolder(process: getpid(), host: localHost, since: Timestamp(seconds: Int64(time(nil))))
    }

    /// `PID HOST MILLISECONDS` and a line end.
    var line: String { "\(process) \(host) \(since.milliseconds)\n" }

    /// Whether it may hold the lock now. A process of this host that has ended does not; its
    /// successor has not written its line yet.
    var mayBeAlive: Bool {
        host != LockHolder.localHost || kill(process, 0) == 0 || errno == EPERM
    }

    private static var localHost: String {
        var name = utsname()
        guard uname(&name) == 0 else { return "-" }
        let text = withUnsafeBytes(of: &name.nodename) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        return text.isEmpty || text.contains(where: \.isWhitespace) ? "-" : text
    }
}

extension LockHolder {
    /// Parses the line of a lock file; nil for any other text, such as an empty file.
    init?(line: some Sequence<UInt8>) {
        let words = String(decoding: Array(line), as: UTF8.self).split(
            whereSeparator: \.isWhitespace)
        guard words.count == 3, let process = Int32(words[0]), process > 0,
            let milliseconds = Int64(words[2])
        else { return nil }
        self.init(
            process: process, host: String(words[1]),
            since: Timestamp(milliseconds: milliseconds))
    }
}
