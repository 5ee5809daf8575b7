import Glibc
import Hashing
package import PrefetchModel

// The command `verify --repair`. Only for the holder of the lock, while nothing is being stored.

extension OpenCache {
    /// Permanently removes the rows that name missing or damaged content files, then the remains of
    /// the files; the wall clock is at `now`.
    package func dropImages(_ images: [StoredImage], at now: Timestamp) throws(StorageError) {
        guard !images.isEmpty else { return }
        try checkHold()
        try MissingFiles(database: database, content: content).removeRows(of: images, at: now)
    }

    /// Removes a content file that no row names, by its path `content/ab/NAME`. Returns false if
    /// permissions forbid it, or it is not a file.
    package func removeOrphan(_ path: String) throws(StorageError) -> Bool {
        try checkHold()
        guard unlinkat(directory.handle.number, path, 0) == 0 || errno == ENOENT else {
            try content.bear(.system("unlink", directory.path(of: path)))
            return false
        }
        return true
    }

    package func tidyCrashLog(at now: Timestamp) throws(StorageError) {
        try CrashLog(directory: directory, at: now).end()
    }

    /// Stores the number of content folders that an interrupted verification has finished; nil
    /// after a complete one.
    package func setVerifiedFolders(_ count: Int?) throws(StorageError) {
        guard let count else { return try database.remove(.verifiedFolders) }
        try database.set(.verifiedFolders, to: Int64(count))
    }

    /// Notes that all content files are known: none must be kept any more for rows lost with a
    /// damaged database.
    package func endKeepingOrphans() throws(StorageError) {
        try database.remove(.orphansKeptBefore)
    }
}
