import Glibc
import Hashing
package import PrefetchModel

// What `verify --repair` does. Only for the holder of the lock, while nothing is being stored.

extension OpenCache {
    /// Removes the rows that name content files which are missing or not what they say, for good, and then what is left
    /// of the files; the wall clock is at `now`.
    package func dropImages(
        _ images: [StoredImage], at now: Timestamp
    ) throws(StorageError) {
        guard !images.isEmpty else { return }
        try checkHold()
        try MissingFiles(database: database, content: content).removeRows(of: images, at: now)
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

    /// Drops what is no note from the list of images that ended a run, and what is too old; the wall clock is at `now`.
    package func tidyCrashLog(at now: Timestamp) throws(StorageError) {
        try CrashLog(directory: directory, at: now).end()
    }

    /// Notes how many folders of content files a verification has looked at that did not come to its end; nil after one
    /// that did.
    package func setVerifiedFolders(_ count: Int?) throws(StorageError) {
        guard let count else { return try database.remove(.verifiedFolders) }
        try database.write("noting the place") { database in
            try Schema.Property.verifiedFolders.set(to: Int64(count), in: database)
        }
    }

    /// Notes that all content files are known: none has to be kept any more for rows that a damaged
    /// database has lost.
    package func endKeepingOrphans() throws(StorageError) {
        try database.remove(.orphansKeptBefore)
    }
}
