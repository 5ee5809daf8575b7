import Glibc
import PrefetchModel

/// A cache opened for writing: locked, checked and migrated.
package struct OpenCache: Sendable {
    package let directory: CacheDirectory
    package let database: CacheDatabase
    package let content: ContentStore
    package let log: RunLog
    package let failures: FailureLog
    package let attributes: AttributeStore
    package let hosts: HostLog
    package let partials: PartialStore
    /// Held as long as this value lives.
    private let lock: CacheLock

    /// What to do while another run holds the cache.
    package enum Waiting: Hashable, Sendable {
        case none
        /// Nil waits however long it takes.
        case upTo(Duration?)
    }

    /// Locks and opens a cache; without `makesMissing` only one that is there, and nothing is made
    /// of what is none.
    ///
    /// - Returns: nil when another run holds the cache and waiting for it is over.
    /// - Throws: when the cache cannot be used.
    package static func open(
        path: String, waiting: Waiting, makesMissing: Bool = true
    ) throws(StorageError) -> OpenCache? {
        let directory = try CacheDirectory(
            path: path, access: makesMissing ? .readWrite : .readOnly)
        if !makesMissing { try CacheDatabase.checkFiles(directory, access: .readOnly) }
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

    /// Makes what was changed durable, with the files that rows of a killed run name: SQLite itself
    /// moves the log into the database when the last connection closes, and would not sync them
    /// first.
    package func synchronize() throws(StorageError) {
        try content.synchronize()
        try database.checkpoint(truncates: true)
    }

    /// Does that when the log has grown: a run over a warm list adds a few pages and has nothing
    /// else to move.
    package func synchronizeLongLog() throws(StorageError) {
        if database.logSize > .mebibytes(1) { try synchronize() }
    }

    private init(directory: CacheDirectory, lock: CacheLock) throws(StorageError) {
        self.directory = directory
        self.lock = lock
        database = try CacheDatabase(directory: directory, access: .readWrite)
        content = try ContentStore(directory: directory)
        partials = try PartialStore(directory: directory, database: database)
        log = RunLog(database: database, content: content, partials: partials)
        hosts = HostLog(database: database)
        failures = FailureLog(database: database)
        attributes = AttributeStore(database: database)
    }
}
