import Glibc
import Hashing
package import PrefetchModel

/// Databases of other caches, each in a folder of its own in `pull`, until they are merged.
package struct PulledDatabases {
    private static let name = "pull"

    private let directory: CacheDirectory
    private let folder: FileDescriptor

    package init(in directory: CacheDirectory) throws(StorageError) {
        self.directory = directory
        folder = try directory.handle.folder(PulledDatabases.name, isCreated: true)
    }

    package func path(of cache: String) -> String {
        directory.path(of: "\(PulledDatabases.name)/\(cache)")
    }

    /// Whether a database is there with that digest, from an earlier pull.
    package func has(_ digest: ContentDigest, of cache: String) throws(StorageError) -> Bool {
        let own = try open(cache)
        guard let file = FileDescriptor.reading(CacheDirectory.databaseName, in: own) else {
            return false
        }
        return SHA256Hasher().digest(ofFile: file.number) == digest
    }

    /// Stores a database that `write` writes, if it has that digest. Returns the digest written.
    package func receive(
        _ cache: String, _ digest: ContentDigest, _ write: (Int32) -> ContentDigest?
    ) throws(StorageError) -> ContentDigest? {
        let own = try open(cache)
        let (name, new) = (CacheDirectory.databaseName, "\(CacheDirectory.databaseName).new")
        // A log of another database must not be read with this one.
        for suffix in CacheDatabase.companions { unlinkat(own.number, name + suffix, 0) }
        var found: ContentDigest?
        let isRight = try directory.writeNewFile(new, in: own, replaces: true) {
            found = write($0)
            return found == digest
        }
        guard isRight else { return found }
        guard renameat(own.number, new, own.number, name) == 0 else {
            throw .system("rename", "\(path(of: cache))/\(name)")
        }
        return found
    }

    private func open(_ cache: String) throws(StorageError) -> FileDescriptor {
        try folder.folder(cache, isCreated: true)
    }

    /// Removes all databases. They are copies, so errors are ignored: the next pull tries again.
    package static func remove(in directory: CacheDirectory) {
        guard
            let folder = try? directory.handle.folder(name),
            let caches = try? folder.names()
        else { return }
        for cache in caches {
            if let own = try? folder.folder(cache) {
                for name in (try? own.names()) ?? [] {
                    unlinkat(own.number, name, 0)
                }
            }
            unlinkat(folder.number, cache, AT_REMOVEDIR)
        }
        unlinkat(directory.handle.number, name, AT_REMOVEDIR)
    }
}
