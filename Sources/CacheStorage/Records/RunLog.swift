import Glibc
import Hashing
package import PrefetchModel
internal import SQLite

/// The table `run`, and what the end of earlier runs means for the next one.
package struct RunLog: Sendable {
    /// Rows of older runs go: a run each hour for a year has 8 784.
    private static let keptRuns: Int64 = 10_000

    private let database: CacheDatabase
    private let content: ContentStore
    private let partials: PartialStore

    package init(database: CacheDatabase, content: ContentStore, partials: PartialStore) {
        self.database = database
        self.content = content
        self.partials = partials
    }

    // MARK: How earlier runs ended

    /// Whether content files without a row may be there: a run left no orderly end, or a run of an
    /// older version could not remove them, or the database lost its first rows.
    package func lastRunMayHaveLeftStrays() throws(StorageError) -> Bool {
        try RunLog.hasUncleanEnd(in: database)
    }

    static func hasUncleanEnd(in database: CacheDatabase) throws(StorageError) -> Bool {
        try database.read("reading the run log") { database in
            try Statement(
                database,
                sql: """
                    SELECT ended_at IS NULL OR coalesce(exit_status, 2) = 2
                        OR instr(coalesce(counters, ''), '"strays":1') > 0
                    FROM run ORDER BY id DESC LIMIT 1
                    """
            ).first { try $0.integer(0) != 0 } ?? true
        }
    }

    /// Removes what an interrupted run left behind. Only for the holder of the lock, while
    /// nothing is being stored.
    ///
    /// With `scansContent` content files without a row are looked for, which reads every folder;
    /// that is needed only after an interrupted run. The result is the number of files removed.
    /// Bodies that broke off stay, unless their files or their rows are gone.
    @discardableResult
    package func collectStrays(scansContent: Bool) throws(StorageError) -> Int {
        try content.removeTemporaries(keeping: partials.reconcile())
        guard scansContent else { return 0 }
        let (named, keptBefore) = try database.read("reading content digests") { database in
            let rows = try Statement(database, sql: "SELECT sha256 FROM variant")
            var named: Set<ContentDigest> = []
            while try rows.step() { named.insert(try rows.digest(0)) }
            return (named, try Schema.Property.orphansKeptBefore.time(in: database))
        }
        return try content.removeStrays(keptBefore: keptBefore) { named.contains($0) }
    }

    // MARK: Rows whose files may not have reached the disk

    /// Removes rows that name files which an unclean end has taken away or torn; their resources
    /// stay. Only for the holder of the lock, before anything is read or stored.
    ///
    /// Looked at are the rows since the start of the earliest run of another boot that did not sync
    /// its files: their bytes are compared with their names. And, since a system's word that files
    /// are on the disk need not be true, those since the start of a last run that came to no end:
    /// their files have to be there in their whole size.
    ///
    /// - Parameters:
    ///   - bootID: of the present boot; nil where the system does not say, which counts as another
    ///     one.
    ///   - now: by the wall clock. Until a run has looked for files without a row, a property says
    ///     that it has to.
    /// - Returns: the number of images whose rows are gone.
    /// - Throws: when the database or a file cannot be read, or the disk cannot be synchronised.
    func removeTornRows(bootID: String?, at now: Timestamp) throws(StorageError) -> Int {
        let doubt = try database.read("reading the run log") { database in
            let unsynced =
                try Statement(
                    database,
                    sql: """
                        SELECT min(started_at) FROM run
                        WHERE NOT files_synced AND (boot_id IS NOT ?1 OR ?1 IS NULL)
                        """
                ).first(.init(bootID)) { try $0.optionalTime(0) } ?? nil
            let unended =
                try Statement(
                    database,
                    sql: """
                        SELECT iif(ended_at IS NULL, started_at, NULL) FROM run
                        ORDER BY id DESC LIMIT 1
                        """
                ).first { try $0.optionalTime(0) } ?? nil
            return (unsynced: unsynced, unended: unended)
        }
        guard let earliest = [doubt.unsynced, doubt.unended].compactMap(\.self).min() else {
            return 0
        }
        let torn = try tornImages(since: earliest, unsynced: doubt.unsynced)
        if !torn.isEmpty {
            try database.write("removing rows of torn files") { database in
                var statements = MetadataStatements(run: 0)
                for image in torn { _ = try statements.apply(.lost(image), in: database) }
                _ = try Schema.Property.noteUnfinishedRemoval(at: now, in: database)
            }
        }
        // The rows first, for good: they must not come back without their files. And whatever is to
        // be believed from now on has to be on the disk.
        try content.synchronize()
        for image in torn { try content.remove(image.digest, format: image.format) }
        // Last, so that all of this is done again after a kill.
        try database.write("noting what is synced") { database in
            try Statement(
                database,
                sql: """
                    UPDATE run SET files_synced = 1
                    WHERE NOT files_synced AND (boot_id IS NOT ?1 OR ?1 IS NULL)
                    """
            ).execute(.init(bootID))
            // Nor did such a run wait until what it removed was off the disk.
            if doubt.unsynced != nil {
                _ = try Schema.Property.noteUnfinishedRemoval(at: now, in: database)
            }
        }
        return torn.count
    }

    /// The images of rows since `earliest` whose files are not there in their whole size, and of
    /// those since `unsynced` whose bytes are others than their names say.
    private func tornImages(
        since earliest: Timestamp, unsynced: Timestamp?
    ) throws(StorageError) -> [StoredImage] {
        // Clocks are set, and a row may be older than the start of its run by them.
        let margin = Duration.zero - Timestamp.toleratedClockStep
        return try database.read("looking for torn files") { database in
            let rows = try Statement(
                database,
                sql: """
                    SELECT sha256, format, width, height, bytes, max(created_at) FROM variant
                    WHERE created_at >= ?1 GROUP BY sha256, format
                    """)
            try rows.bind(.init(earliest.advanced(by: margin)), at: 1)
            let hasher = SHA256Hasher()
            var torn: [StoredImage] = []
            while try rows.step() {
                guard let image = try rows.storedImage(from: 0) else { continue }
                if let unsynced, try rows.time(5) >= unsynced.advanced(by: margin) {
                    switch content.bytes(of: image, hasher: hasher) {
                    case .whole: break
                    case .damaged: torn.append(image)
                    // The disk has lost it.
                    case .unreadable(let error) where error.code == .system(EIO):
                        torn.append(image)
                    case .unreadable(let error): throw error
                    }
                } else if !content.hasWholeFile(image) {
                    torn.append(image)
                }
            }
            return torn
        }
    }

    // MARK: This run

    /// Notes that a run begins, in the machine's present boot if that is known, whether each of
    /// its files is on the disk before its row is committed, and what it calls its variants.
    ///
    /// - Returns: the run's identifier, for ``end(_:at:exitStatus:counters:)``.
    /// - Throws: when the database cannot be written.
    package func begin(
        manifests: [String], at time: Timestamp, bootID: String? = nil, syncsFiles: Bool = true,
        variants: [RequestedVariant] = []
    ) throws(StorageError) -> Int64 {
        try database.write("noting the run's start") { database in
            try VariantNames.note(variants, at: time, in: database)
            try Statement(
                database,
                sql: """
                    INSERT INTO run (started_at, manifest, boot_id, files_synced)
                    VALUES (?, ?, ?, ?)
                    """
            ).execute(
                .init(time), .text(manifests.joined(separator: "\n")), .init(bootID),
                .integer(syncsFiles ? 1 : 0))
            return database.lastInsertedRowID
        }
    }

    /// The member of `counters` for failures that an earlier run had, too.
    static let knownFailuresName = "known_failures"

    /// Notes that a run has ended. A power cut after that brings no file back that was removed, unless the run's files
    /// are not synchronised either.
    package func end(
        _ run: Int64, at time: Timestamp, exitStatus: Int32, counters: RunCounters
    ) throws(StorageError) {
        // Names of ours and whole numbers: nothing in this JSON needs escaping.
        let members =
            [
                ("entries", counters.entriesRead), ("requests", counters.requests),
                ("bytes_received", counters.bytesReceived), ("bytes_stored", counters.bytesStored),
                (RunLog.knownFailuresName, counters.knownFailures),
            ] + Outcome.allCases.map { ($0.rawValue, counters[$0]) }
            // What could not be tidied up now may be next time.
            + (content.untidy == nil ? [] : [("strays", 1)])
        let isSynchronized = try database.read("reading the run log") { database in
            try Statement(database, sql: "SELECT files_synced FROM run WHERE id = ?")
                .first(.integer(run)) { try $0.integer(0) != 0 } ?? true
        }
        if isSynchronized { try content.synchronizeRemovals() }
        let json = "{" + members.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ",") + "}"
        try database.write("noting the run's end") { database in
            try Statement(
                database,
                sql: "UPDATE run SET ended_at = ?, exit_status = ?, counters = ? WHERE id = ?"
            ).execute(.init(time), .integer(Int64(exitStatus)), .text(json), .integer(run))
            try Statement(
                database, sql: "DELETE FROM run WHERE id <= ? AND files_synced"
            ).execute(.integer(run &- RunLog.keptRuns))
        }
    }
}
