import Glibc

/// A cache opened for writing: locked, checked and migrated.
package struct OpenCache: Sendable {
    package let directory: CacheDirectory
    package let database: CacheDatabase
    package let content: ContentStore
    package let log: RunLog
    /// Held as long as this value lives.
    private let lock: CacheLock

    /// What to do while another run holds the cache.
    package enum Waiting: Hashable, Sendable {
        case none
        /// Nil waits however long it takes.
        case upTo(Duration?)
    }

    /// - Returns: nil when another run holds the cache and waiting for it is over.
    /// - Throws: when the cache cannot be used.
    package static func open(
        path: String, waiting: Waiting
    ) throws(StorageError) -> OpenCache? {
        let directory = try CacheDirectory(path: path, access: .readWrite)
        let start = ContinuousClock.now
        while true {
            if let lock = try CacheLock.acquire(directory) {
                return try OpenCache(directory: directory, lock: lock)
            }
            guard case .upTo(let limit) = waiting else { return nil }
            if let limit, .now - start >= limit { return nil }
            // A kernel lock has no wait with a deadline.
            usleep(50_000)
        }
    }

    private init(directory: CacheDirectory, lock: CacheLock) throws(StorageError) {
        self.directory = directory
        self.lock = lock
        database = try CacheDatabase(directory: directory, access: .readWrite)
        content = try ContentStore(directory: directory)
        log = RunLog(database: database, content: content)
    }
}
