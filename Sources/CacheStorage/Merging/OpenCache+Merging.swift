import Glibc
package import PrefetchModel
internal import SQLite

extension OpenCache {
    /// Sources that are merged at once: each takes five descriptors and a page cache.
    private static let sourcesAtOnce = 64

    /// Merges other caches into this one, which is closed afterwards; the wall clock is at `now`.
    ///
    /// The result depends on the set of caches alone, this one included, and merging again changes
    /// nothing. The others are not changed. Content files are linked, cloned or copied by `workers`
    /// threads.
    ///
    /// - Throws: when a cache cannot be read or this one not be written; this cache's rows are
    ///   unchanged then.
    package func merge(
        _ paths: [String], workers: Int, at now: Timestamp
    ) throws(StorageError) -> MergeReport {
        let others = try paths.map { path throws(StorageError) in
            let other = try CacheDirectory(path: path, access: .readOnly)
            guard FileIdentity(of: other.handle) != FileIdentity(of: directory.handle) else {
                throw .refused(path, "is the destination itself")
            }
            return other
        }
        // A stopped merge leaves files without rows.
        let isNewNote = try noteUnfinishedRemoval(at: now)
        try content.removeTemporaries(keeping: [])
        try closeWithoutLog()
        var report = MergeReport()
        var rest = others[...]
        repeat {
            let group = Array(rest.prefix(OpenCache.sourcesAtOnce))
            rest = rest.dropFirst(OpenCache.sourcesAtOnce)
            var merge = CacheMerge(into: directory, content, from: group, workers: workers)
            try merge.run()
            let merged = try CacheDatabase(directory: directory, access: .readWrite)
            try merge.removeDropped(merged)
            if rest.isEmpty, isNewNote { try merged.endRemoval(in: content) }
            try merged.checkpoint(truncates: true)
            merged.close()
            report.add(merge.report)
        } while !rest.isEmpty
        try uniteCrashes(of: others, at: now)
        try content.synchronize()
        return report
    }

    /// Makes the next run look for files without a row.
    ///
    /// - Returns: see ``Schema/Property/noteUnfinishedRemoval(at:in:)``.
    @discardableResult
    func noteUnfinishedRemoval(at now: Timestamp) throws(StorageError) -> Bool {
        try database.write("setting a property") { database in
            try Schema.Property.noteUnfinishedRemoval(at: now, in: database)
        }
    }

    /// Moves the log into the database and closes it. Without the log, the database can be replaced
    /// by renaming another over it.
    private func closeWithoutLog() throws(StorageError) {
        let deadline = ContinuousClock.now + CacheDatabase.busyTimeout(in: directory)
        try synchronize()
        while CacheDatabase.hasLog(directory) {
            guard .now < deadline else {
                throw .refused(
                    database.path, "another program reads it, and its log cannot be moved",
                    hint: "end that program, and merge again")
            }
            usleep(50_000)
            try database.checkpoint(truncates: true)
        }
        database.close()
    }

    private func uniteCrashes(
        of others: [CacheDirectory], at now: Timestamp
    ) throws(StorageError) {
        let log = try CrashLog(directory: directory, at: now)
        for other in others {
            // A log that is none cannot be united, and its images are only decoded once more.
            if let crashes = try? CrashLog(directory: other, at: now) { log.unite(with: crashes) }
        }
        try log.end()
    }
}

extension MergeReport {
    /// Adds the report of a merge of further sources into the same cache.
    fileprivate mutating func add(_ other: MergeReport) {
        images = other.images
        failures = other.failures
        added += other.added
        updated += other.updated
        files = files + other.files
        lostFiles += other.lostFiles
        removedFiles += other.removedFiles
        damaged += other.damaged
    }
}
