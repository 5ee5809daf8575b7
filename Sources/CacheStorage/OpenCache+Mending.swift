import Glibc
import Hashing
package import PrefetchModel

// What `verify --repair` does. Only for the holder of the lock, while nothing is being stored.

extension OpenCache {
    /// Removes the rows that name a content file which is missing or not what they say, for good, and then
    /// what is left of the file.
    ///
    /// - Returns: false where something has the file's place that cannot be removed.
    package func dropImage(_ image: StoredImage) throws(StorageError) -> Bool {
        try checkHold()
        try database.write("removing rows of a bad file") { database in
            var statements = MetadataStatements(run: 0)
            _ = try statements.apply(.lost(image), in: database)
        }
        if try !database.checkpoint(truncates: false) { try content.synchronize() }
        // Rows may name it under another format.
        let isNamed = try database.read("looking up") {
            try MetadataStatements.isNamed(image.digest, in: $0)
        }
        if !isNamed { try content.remove(image.digest, format: image.format) }
        return isNamed || !directory.contains(image.relativePath)
    }

    /// Removes a content file that no row names.
    ///
    /// - Parameter path: `content/ab/NAME`, below the cache directory.
    /// - Returns: false where that is not allowed, or it is no file.
    /// - Throws: when the disk keeps it from being removed.
    package func removeOrphan(_ path: String) throws(StorageError) -> Bool {
        try checkHold()
        guard unlinkat(directory.handle.number, path, 0) == 0 || errno == ENOENT else {
            try content.bear(.system("unlink", directory.path(of: path)))
            return false
        }
        return true
    }

    /// Notes that all content files are known: none has to be kept any more for rows that a damaged
    /// database has lost.
    package func endKeepingOrphans() throws(StorageError) {
        try database.write("noting that orphans are gone") { database in
            try Schema.Property.orphansKeptBefore.remove(in: database)
        }
    }
}
