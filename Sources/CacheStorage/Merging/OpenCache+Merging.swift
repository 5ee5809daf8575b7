import Glibc
package import PrefetchModel
internal import SQLite

extension OpenCache {
    /// Sources that are merged together: each takes five descriptors and a page cache.
    package static let sourcesAtOnce = 64

    /// Opens each source once, before anything is changed. Throws when one is not a cache, cannot
    /// be read, is held by a run after the time to wait, or is the destination; not for a damaged
    /// one.
    package static func checkSources(
        _ paths: [String], of destination: String, waiting: LockWaiting
    ) throws(StorageError) {
        for path in paths {
            let source = try openSource(path)
            guard FileIdentity(of: source.handle) != FileIdentity(path: destination) else {
                throw .refused(path, "is the destination itself")
            }
            do {
                _ = try MergeSource(number: 1, directory: source, waiting: waiting)
            } catch {
                let error = StorageError(error, "reading", path)
                guard error.isDamage else { throw error }
            }
        }
    }

    private static func openSource(_ path: String) throws(StorageError) -> CacheDirectory {
        do {
            return try CacheDirectory(path: path, access: .readOnly)
        } catch {
            // The hints are for runs.
            throw StorageError(
                operation: error.operation, subject: error.subject, code: error.code,
                message: error.message)
        }
    }

    /// Notes that files without rows follow. Returns whether the merge must end the note.
    package func beginAdoption(at now: Timestamp) throws(StorageError) -> Bool {
        let isNewNote = try noteUnfinishedRemoval(at: now)
        // Must reach the disk before the first file.
        try database.synchronizeLog()
        return isNewNote
    }

    /// The content files that a merge would take from other caches if they had all files except the
    /// `lost` ones. Files that this cache has are among them.
    package func filesToMerge(
        _ paths: ArraySlice<String>, besides lost: Set<ContentDigest>, at now: Timestamp
    ) throws(StorageError) -> ContentFiles {
        var merge = CacheMerge(
            directory: directory, content: content, others: try paths.map(OpenCache.openSource),
            workers: 0, now: now)
        return try merge.plan(besides: lost)
    }

    /// Merges other caches into this one, which is closed afterwards; the wall clock is at `now`.
    /// The result depends on the set of caches alone, this one included; merging again changes
    /// nothing. The others are not changed. Content files are linked, cloned or copied by `workers`
    /// threads. More than ``sourcesAtOnce`` sources are merged in steps. `ownsNote` is the result
    /// of ``beginAdoption(at:)``, if that was called.
    ///
    /// - Throws: when a cache cannot be read, is held by a run after the time to wait, or this one
    ///   cannot be written; a step changes all rows or none.
    package func merge(
        _ paths: [String], ownsNote: Bool = false, workers: Int, waiting: LockWaiting,
        at now: Timestamp
    ) throws(StorageError) -> MergeReport {
        // A stopped merge leaves files without rows.
        let isNewNote = try noteUnfinishedRemoval(at: now) || ownsNote
        try content.removeTemporaries(keeping: [])
        try closeWithoutLog(waiting: waiting)
        var report = MergeReport()
        var rest = paths[...]
        // Another step, or another attempt, may decide against the rows of files taken over.
        var hasOrphans = paths.count > OpenCache.sourcesAtOnce
        repeat {
            let group = try rest.prefix(OpenCache.sourcesAtOnce).map(OpenCache.openSource)
            rest = rest.dropFirst(OpenCache.sourcesAtOnce)
            var merge = CacheMerge(
                directory: directory, content: content, others: group, workers: workers,
                now: now, report: report)
            try merge.run()
            let merged = try CacheDatabase(directory: directory, access: .readWrite)
            try merge.removeDropped(merged)
            hasOrphans = hasOrphans || merge.isRepeated
            if rest.isEmpty, hasOrphans { try removeOrphans(merged) }
            if rest.isEmpty, isNewNote { try merged.endRemoval(in: content) }
            try merged.checkpoint(truncates: true)
            merged.close()
            try uniteCrashes(of: group, at: now)
            report = merge.report
        } while !rest.isEmpty
        try content.synchronize()
        return report
    }

    /// Removes content files that no row of the merged database names.
    private func removeOrphans(_ merged: CacheDatabase) throws(StorageError) {
        let keptBefore = try merged.time(of: .orphansKeptBefore)
        _ = try content.removeOrphans(keptBefore: keptBefore) { digest in
            // An error is dropped: a file that may have a row is kept.
            (try? merged.read("looking up") { try MetadataStatements.isNamed(digest, in: $0) })
                ?? true
        }
    }

    /// See ``Schema/Property/noteUnfinishedRemoval(at:in:)``.
    @discardableResult
    func noteUnfinishedRemoval(at now: Timestamp) throws(StorageError) -> Bool {
        try database.write("setting a property") { database in
            try Schema.Property.noteUnfinishedRemoval(at: now, in: database)
        }
    }

    /// Moves the log into the database and closes it, so that another can be renamed over it.
    private func closeWithoutLog(waiting: LockWaiting) throws(StorageError) {
        var limit: Duration? = CacheDatabase.busyTimeout(in: directory)
        if case .upTo(let time) = waiting { limit = time.map { max($0, limit ?? .zero) } }
        let deadline = limit.map { ContinuousClock.now + $0 }
        try synchronize()
        while CacheDatabase.hasLog(directory) {
            guard deadline.map({ .now < $0 }) ?? true else {
                throw StorageError(
                    operation: "merging", subject: database.path, code: .system(EWOULDBLOCK),
                    message: "another program reads it, and its log cannot be moved",
                    hint: "--lock wait waits for it")
            }
            usleep(50_000)
            try database.checkpoint(truncates: true)
        }
        database.close()
    }

    private func uniteCrashes(of others: [CacheDirectory], at now: Timestamp) throws(StorageError) {
        let log = try CrashLog(directory: directory, at: now)
        for other in others {
            // An unreadable log is skipped, and its images are only decoded once more.
            if let crashes = try? CrashLog(directory: other, at: now) { log.unite(with: crashes) }
        }
        try log.end()
    }
}
