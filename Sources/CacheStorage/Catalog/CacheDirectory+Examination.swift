import Glibc
import Hashing
package import PrefetchModel

// The examination of a cache folder by `doctor`, which changes nothing.

extension CacheDirectory {
    package var hasContent: Bool { contains("content") }

    package struct Ownership: Hashable, Sendable {
        package let owner: UInt32
        package let isOwn: Bool
        package let groupWrites: Bool
        /// The folder's permission bits, like `0700`.
        package let bits: String
    }

    package func ownership() throws(StorageError) -> Ownership {
        guard let status = handle.status else { throw .system("stat", path) }
        return Ownership(
            owner: status.st_uid, isOwn: status.st_uid == geteuid(),
            groupWrites: status.st_mode & 0o020 != 0,
            bits: FileMode.text(status.st_mode & 0o777))
    }

    /// The parts of the layout without the cache's mode, as names below the folder.
    package func namesWithoutMode(_ mode: FileMode) -> [String] {
        (CacheDirectory.layout + [ListStore.folderName]).filter { name in
            guard let status = handle.status(of: name) else { return false }
            let mode = name == ListStore.folderName ? FileMode.ownersAlone : mode
            let wanted = status.isFolder ? mode.ofFolders : mode.ofFiles
            return status.st_mode & 0o777 != wanted
        }
    }

    /// Content files that are examined at most: some tenths of a second. `verify` examines all.
    private static let mostFiles = 100_000

    /// The first content file with other permissions than the cache's mode, with them:
    /// `content/ab/NAME (0600)`. Without a mode, one that others than the owner may use.
    package func contentFile(withoutMode mode: FileMode?) throws(StorageError) -> String? {
        var left = CacheDirectory.mostFiles
        for number in CacheInspection.folders where left > 0 {
            let path = CacheInspection.path(ofFolder: number)
            guard contains(path) else { continue }
            let folder = try handle.folder(path)
            for name in try folder.names()
            where ContentDigest(contentFile: name) != nil {
                left -= 1
                guard let status = folder.status(of: name), status.isFile else { continue }
                if let bits = FileMode.difference(of: status.st_mode, from: mode) {
                    return "\(path)/\(name) (\(bits))"
                }
            }
        }
        return nil
    }

    /// The names of the layout that others than the owner may write, which no mode allows.
    package var namesThatOthersWrite: [String] {
        (CacheDirectory.layout + [ListStore.folderName]).filter { name in
            handle.status(of: name).map { $0.st_mode & 0o022 != 0 } ?? false
        }
    }

    /// A run's files that this process may not read and write: `lock (0444)`; `.` is the folder.
    package var namesWithoutAccess: [String] {
        let databases = ([""] + CacheDatabase.companions).map { CacheDirectory.databaseName + $0 }
        let names =
            [".", "content", "tmp", ListStore.folderName, CacheDirectory.lockName] + databases
        return names.compactMap { name in
            guard let status = handle.status(of: name) else { return nil }
            let wanted = R_OK | W_OK | (status.isFolder ? X_OK : 0)
            // Other errors, like that of a read-only file system, are not about permissions.
            guard faccessat(handle.number, name, wanted, 0) != 0, errno == EACCES else {
                return nil
            }
            return "\(name) (\(FileMode.text(status.st_mode & 0o777)))"
        }
    }

    /// The subfolders on another file system than the cache folder.
    package var namesElsewhere: [String] {
        guard let own = handle.status(of: ".") else { return [] }
        return ["content", "tmp"].filter { name in
            handle.status(of: name).map { $0.st_dev != own.st_dev } ?? false
        }
    }

    /// The size of `-wal` or `-journal`; nil if the file does not exist.
    package func size(ofCompanion suffix: String) -> ByteCount? {
        handle.status(of: CacheDirectory.databaseName + suffix).map {
            ByteCount(max(0, $0.size))
        }
    }

    package var databaseSize: ByteCount { size(ofCompanion: "") ?? ByteCount(0) }

    package func damagedDatabases() throws(StorageError) -> [String] {
        let prefix = CacheDatabase.damagedPrefix
        return try handle.names()
            .filter { $0.hasPrefix(prefix) }.sorted()
    }

    package var holder: LockHolder? { CacheLock.holder(in: self) }

    /// The number and total size of the files in `tmp`, without the `known` ones.
    package func temporaries(
        besides known: Set<String>
    ) throws(StorageError) -> (count: Int, size: ByteCount) {
        guard contains("tmp") else { return (0, ByteCount(0)) }
        let folder = try handle.folder("tmp")
        var (count, bytes) = (0, 0)
        for name in try folder.names() where !known.contains(name) {
            count += 1
            bytes += max(0, folder.status(of: name)?.size ?? 0)
        }
        return (count, ByteCount(bytes))
    }
}
