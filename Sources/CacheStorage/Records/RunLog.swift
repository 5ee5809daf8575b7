import Glibc
import Hashing
package import PrefetchModel
internal import SQLite

/// The table `run`, and the consequences of earlier runs' ends for the next one.
package struct RunLog: Sendable {
    /// Rows of older runs are removed. A run each hour makes 8,784 a year.
    static let keptRuns: Int64 = 10_000

    let database: CacheDatabase
    let content: ContentStore
    let partials: PartialStore

    // MARK: How earlier runs ended

    /// Whether content files without a row may exist: the last run has no orderly end or could not
    /// remove them, or the database has lost its first rows.
    package func lastRunMayHaveLeftOrphans() throws(StorageError) -> Bool {
        try database.read("reading the run log") { try RunLog.hasUncleanEnd(in: $0) }
    }

    static func hasUncleanEnd(in database: Connection) throws -> Bool {
        try database.first(
            """
            SELECT ended_at IS NULL OR coalesce(exit_status, 2) = 2
                OR instr(coalesce(counters, ''), '"orphans":1') > 0
            FROM run ORDER BY id DESC LIMIT 1
            """
        ) { try $0.integer(0) != 0 } ?? true
    }

    /// Removes the remains of an interrupted run; for the holder of the lock, while nothing is
    /// being stored. `scansContent` looks for content files without a row, in every folder. Partial
    /// downloads with both file and row are kept. Returns the number of files removed.
    @discardableResult
    package func removeOrphans(scansContent: Bool) throws(StorageError) -> Int {
        try content.removeTemporaries(keeping: partials.reconcile())
        guard scansContent else { return 0 }
        let (named, keptBefore) = try database.read("reading content digests") { database in
            var named: Set<ContentDigest> = []
            try database.forEach("SELECT sha256 FROM variant") { row in
                named.insert(try row.digest(0))
            }
            return (named, try Schema.Property.orphansKeptBefore.time(in: database))
        }
        return try content.removeOrphans(keptBefore: keptBefore) { named.contains($0) }
    }

    // MARK: Rows of files that may not have reached the disk

    /// The first start of a run of another boot that did not synchronise its files; nil for none.
    static func firstUnsynchronized(bootID: String?, in database: Connection) throws -> Timestamp? {
        try database.first(
            """
            SELECT min(started_at) FROM run
            WHERE NOT files_synced AND (boot_id IS NOT ?1 OR ?1 IS NULL)
            """, .init(bootID)
        ) { try $0.optionalTime(0) } ?? nil
    }

    /// Removes rows with missing or torn files after an unclean end, but not their resources. Only
    /// for the holder of the lock, before anything is read or stored. Returns the number of images
    /// without rows now. Compares bytes with names for rows since the earliest run of another boot,
    /// or of an unknown one, that did not synchronise its files. Compares sizes for rows since the
    /// start of a last run without an end: the system may wrongly report that files are on the
    /// disk.
    func removeTornRows(bootID: String?, at now: Timestamp) throws(StorageError) -> Int {
        let doubt = try database.read("reading the run log") { database in
            let unsynced = try RunLog.firstUnsynchronized(bootID: bootID, in: database)
            let unended =
                try database.first(
                    """
                    SELECT iif(ended_at IS NULL, started_at, NULL) FROM run
                    ORDER BY id DESC LIMIT 1
                    """
                ) { try $0.optionalTime(0) } ?? nil
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
        // Removals of rows must be permanent before their files', and intact files on the disk.
        try content.synchronize()
        for image in torn { try content.remove(image.digest, format: image.format) }
        // Last, so that a kill repeats all of this.
        try database.write("recording synchronised files") { database in
            try database.run(
                """
                UPDATE run SET files_synced = 1
                WHERE NOT files_synced AND (boot_id IS NOT ?1 OR ?1 IS NULL)
                """, .init(bootID))
            // Nor did such a run wait until its removals were durable.
            if doubt.unsynced != nil {
                _ = try Schema.Property.noteUnfinishedRemoval(at: now, in: database)
            }
        }
        return torn.count
    }

    /// The images with files of another size since `earliest`, or of other bytes since `unsynced`.
    private func tornImages(
        since earliest: Timestamp, unsynced: Timestamp?
    ) throws(StorageError) -> [StoredImage] {
        // Clocks are adjusted, so a row may be a little older than the start of its run.
        let margin = Duration.zero - Timestamp.toleratedClockStep
        return try database.read("looking for torn files") { database in
            let rows = try database.prepare(
                """
                SELECT sha256, format, width, height, bytes, max(created_at) FROM variant
                WHERE created_at >= ?1 GROUP BY sha256, format
                """)
            try rows.bind(.init(earliest.advanced(by: margin)), at: 1)
            let hasher = SHA256Hasher()
            var torn: [StoredImage] = []
            while try rows.step() {
                guard let image = try rows.storedImage(from: 0) else { continue }
                if let unsynced, try rows.time(5) >= unsynced.advanced(by: margin) {
                    var bytes = content.directory.bytes(of: image, hasher: hasher)
                    // One failing read does not prove damage.
                    if bytes.whole == nil {
                        bytes = content.directory.bytes(of: image, hasher: hasher)
                    }
                    switch bytes {
                    case .whole: break
                    case .damaged: torn.append(image)
                    // The disk has lost it.
                    case .unreadable(let error) where error.code == .system(EIO):
                        torn.append(image)
                    case .unreadable(let error): throw error
                    }
                } else if !content.directory.hasWholeFile(image) {
                    torn.append(image)
                }
            }
            return torn
        }
    }

    /// The number of images that a run makes again as `main`, because the recipe differs from the
    /// last run's. Call it before ``begin(manifests:at:)``.
    package func imagesChanged(byMain recipe: String) throws(StorageError) -> Int {
        try database.read("reading recipes") { database in
            let last = try database.first("SELECT recipe FROM variant_name WHERE id = 0") {
                try $0.text(0)
            }
            guard last != recipe else { return 0 }
            return try database.first(
                "SELECT count(*) FROM variant WHERE name = 0 AND superseded = 0 AND recipe <> ?",
                .text(recipe)
            ) { try $0.count(0) } ?? 0
        }
    }

    /// The end of the last run over these manifests with exit status 0.
    package func lastSuccess(manifests: [String]) throws(StorageError) -> Timestamp? {
        try database.read("reading the run log") { database in
            try database.first(
                """
                SELECT ended_at FROM run
                WHERE exit_status = 0 AND ended_at IS NOT NULL AND manifest = ?
                ORDER BY id DESC LIMIT 1
                """, .text(manifests.joined(separator: "\n"))
            ) { try $0.time(0) }
        }
    }

    // MARK: This run

    /// Records the start of a run: the machine's boot if known, whether files are on the disk
    /// before their rows are committed, and the names of its variants. Returns the run's
    /// identifier, for ``end(_:at:exitStatus:counters:)``.
    package func begin(
        manifests: [String], at time: Timestamp, bootID: String? = nil, syncsFiles: Bool = true,
        variants: [RequestedVariant] = []
    ) throws(StorageError) -> Int64 {
        let unlogged = UnloggedRuns(content.directory)
        let run = try database.write("noting the run's start") { database in
            try VariantNames.note(variants, at: time, in: database)
            for run in unlogged.all { try RunLog.add(run, in: database) }
            try database.run(
                """
                INSERT INTO run (started_at, manifest, boot_id, files_synced)
                VALUES (?, ?, ?, ?)
                """, .init(time), .text(manifests.joined(separator: "\n")), .init(bootID),
                .integer(syncsFiles ? 1 : 0))
            return database.lastInsertedRowID
        }
        unlogged.reserve()
        return run
    }

    /// Adds the end of a run that a full disk kept out of the table, maybe with its start.
    private static func add(_ run: UnloggedRuns.UnloggedRun, in database: Connection) throws {
        try database.run(
            """
            UPDATE run SET ended_at = ?2, exit_status = ?3
            WHERE started_at = ?1 AND ended_at IS NULL
            """, .init(run.startedAt), .init(run.endedAt), .integer(Int64(run.exitStatus)))
        try database.run(
            """
            INSERT INTO run (started_at, ended_at, exit_status, manifest, files_synced)
            SELECT ?1, ?2, ?3, ?4, 1 WHERE NOT EXISTS (SELECT 1 FROM run WHERE started_at = ?1)
            """, .init(run.startedAt), .init(run.endedAt), .integer(Int64(run.exitStatus)),
            .text(run.manifest))
    }

    /// The member of `counters` for failures that an earlier run had, too.
    static let knownFailuresName = "known_failures"

    /// The `outages` that the last run with an end stored.
    package func outages() throws(StorageError) -> String? {
        try database.read("reading the run log") { try RunLog.outages(in: $0) }
    }

    static func outages(in database: Connection) throws -> String? {
        try database.first(
            """
            SELECT CAST(json_extract(iif(json_valid(counters), counters, '{}'), '$.outages')
                AS TEXT)
            FROM run WHERE counters IS NOT NULL ORDER BY id DESC LIMIT 1
            """
        ) { try $0.optionalText(0) }.flatMap(\.self)
    }

    /// Records the end of a run, and the outages that continue. After this, no power cut restores a
    /// removed file, unless the run's files are not synchronised either.
    package func end(
        _ run: Int64, at time: Timestamp, exitStatus: Int32, counters: RunCounters,
        outages: String? = nil
    ) throws(StorageError) {
        // Fixed names and whole numbers: nothing in this JSON needs escaping.
        let members =
            [
                ("entries", counters.entriesRead), ("requests", counters.requests),
                ("bytes_received", counters.bytesReceived), ("bytes_stored", counters.bytesStored),
                (RunLog.knownFailuresName, counters.knownFailures),
            ] + Outcome.allCases.map { ($0.rawValue, counters[$0]) }
            // The next run may succeed in tidying up.
            + (content.untidy == nil ? [] : [("orphans", 1)])
        let isSynchronized = try database.read("reading the run log") { database in
            try database.first("SELECT files_synced FROM run WHERE id = ?", .integer(run)) {
                try $0.integer(0) != 0
            } ?? true
        }
        if isSynchronized { try content.synchronizeRemovals() }
        let json = "{" + members.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ",") + "}"
        try database.write("noting the run's end") { database in
            try database.run(
                """
                UPDATE run SET ended_at = ?1, exit_status = ?2,
                    counters = iif(?5 IS NULL, ?3, json_set(?3, '$.outages', ?5))
                WHERE id = ?4
                """, .init(time), .integer(Int64(exitStatus)), .text(json), .integer(run),
                .init(outages))
            try database.run(
                "DELETE FROM run WHERE id <= ? AND files_synced", .integer(run &- RunLog.keptRuns))
        }
    }
}

/// The machine's current boot. Data in the page cache survives within a boot, maybe not longer.
package enum BootID {
    /// 36 characters; nil if the system does not provide it.
    package static func current() -> String? {
        let number = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { return nil }
        let file = FileDescriptor(number)
        let bytes = [UInt8](unsafeUninitializedCapacity: 36) { buffer, count in
            count = max(0, read(file.number, buffer.baseAddress, 36))
        }
        return bytes.count == 36 ? String(decoding: bytes, as: UTF8.self) : nil
    }
}
