import Glibc
package import PrefetchModel
internal import SQLite

// The examination of a cache folder by `doctor`, which changes nothing.

extension CacheDirectory {
    package struct Ownership: Hashable, Sendable {
        package let owner: UInt32
        package let isOwn: Bool
        package let groupWrites: Bool
        /// The folder's permission bits, like `0700`.
        package let bits: String
    }

    package func ownership() throws(StorageError) -> Ownership {
        guard let status = handle.status else { throw .system("stat", path) }
        return Ownership(
            owner: status.st_uid, isOwn: status.st_uid == geteuid(),
            groupWrites: status.st_mode & 0o020 != 0,
            bits: FileMode.text(status.st_mode & 0o777))
    }

    /// The parts of the layout without the cache's mode, as names below the folder.
    package func namesWithoutMode(_ mode: FileMode) -> [String] {
        (CacheDirectory.layout + [ListStore.folderName]).filter { name in
            guard let status = handle.status(of: name) else { return false }
            let mode = name == ListStore.folderName ? FileMode.ownersAlone : mode
            let wanted = status.isFolder ? mode.ofFolders : mode.ofFiles
            return status.st_mode & 0o777 != wanted
        }
    }

    /// Content files that are examined at most: some tenths of a second. `verify` examines all.
    private static let mostFiles = 100_000

    /// The first content file with other permissions than the cache's mode, with them:
    /// `content/ab/NAME (0600)`. Without a mode, one that others than the owner may use.
    package func contentFile(withoutMode mode: FileMode?) throws(StorageError) -> String? {
        var left = CacheDirectory.mostFiles
        for number in CacheInspection.folders where left > 0 {
            let path = CacheInspection.path(ofFolder: number)
            guard contains(path) else { continue }
            let folder = try handle.folder(path)
            for name in try folder.names()
            where ContentDigest(contentFile: name) != nil {
                left -= 1
                guard let status = folder.status(of: name), status.isFile else { continue }
                if let bits = FileMode.difference(of: status.st_mode, from: mode) {
                    return "\(path)/\(name) (\(bits))"
                }
            }
        }
        return nil
    }

    /// The names of the layout that others than the owner may write, which no mode allows.
    package var namesThatOthersWrite: [String] {
        (CacheDirectory.layout + [ListStore.folderName]).filter { name in
            handle.status(of: name).map { $0.st_mode & 0o022 != 0 } ?? false
        }
    }

    /// A run's files that this process may not read and write: `lock (0444)`; `.` is the folder.
    package var namesWithoutAccess: [String] {
        let databases = ([""] + CacheDatabase.companions).map { CacheDirectory.databaseName + $0 }
        let names =
            [".", "content", "tmp", ListStore.folderName, CacheDirectory.lockName] + databases
        return names.compactMap { name in
            guard let status = handle.status(of: name) else { return nil }
            let wanted = R_OK | W_OK | (status.isFolder ? X_OK : 0)
            // Other errors, like that of a read-only file system, are not about permissions.
            guard faccessat(handle.number, name, wanted, 0) != 0, errno == EACCES else {
                return nil
            }
            return "\(name) (\(FileMode.text(status.st_mode & 0o777)))"
        }
    }

    /// The subfolders on another file system than the cache folder.
    package var namesElsewhere: [String] {
        guard let own = handle.status(of: ".") else { return [] }
        return ["content", "tmp"].filter { name in
            handle.status(of: name).map { $0.st_dev != own.st_dev } ?? false
        }
    }

    /// The size of `-wal` or `-journal`; nil if the file does not exist.
    package func size(ofCompanion suffix: String) -> ByteCount? {
        handle.status(of: CacheDirectory.databaseName + suffix).map {
            ByteCount(max(0, $0.size))
        }
    }

    package func damagedDatabases() throws(StorageError) -> [String] {
        let prefix = CacheDatabase.damagedPrefix
        return try handle.names()
            .filter { $0.hasPrefix(prefix) }.sorted()
    }

    /// The number and total size of the files in `tmp`, without the `known` ones.
    package func temporaries(
        besides known: Set<String>
    ) throws(StorageError) -> (count: Int, size: ByteCount) {
        guard contains("tmp") else { return (0, ByteCount(0)) }
        let folder = try handle.folder("tmp")
        var (count, bytes) = (0, 0)
        for name in try folder.names() where !known.contains(name) {
            count += 1
            bytes += max(0, folder.status(of: name)?.size ?? 0)
        }
        return (count, ByteCount(bytes))
    }
}

extension CacheCatalog {
    /// Opens the database for reading without creating any file, not even the log's index, and
    /// without marking it as damaged.
    ///
    /// - Throws: Also when only a writing command can read the database.
    package init(examining directory: CacheDirectory) throws(StorageError) {
        self.init(
            database: try CacheDatabase(directory: directory, access: .examination),
            directory: directory)
    }

    /// Runs the integrity check that a run makes at its start, which covers small databases only.
    /// Returns whether the database was small enough to be checked.
    package func findDamage() throws(StorageError) -> Bool {
        guard database.size <= CacheDatabase.sizeAlwaysChecked else { return false }
        try database.confirmDamage(.thorough)
        return true
    }

    package func fileMode() throws(StorageError) -> FileMode? { try database.fileMode() }

    /// Whether files without a row may exist: a removal was interrupted, or a database was lost.
    package func orphans() throws(StorageError) -> (removalIsUnfinished: Bool, areKept: Bool) {
        (
            try database.time(of: .removalUnfinished) != nil,
            try database.time(of: .orphansKeptBefore) != nil
        )
    }

    /// The number of content files that rows name, read from the totals.
    package func countFiles() throws(StorageError) -> Int {
        try database.usage().files
    }

    /// The files in `tmp` that belong to partial downloads.
    package func partialNames() throws(StorageError) -> Set<String> {
        try PartialStore.fileNames(in: database)
    }

    /// Hosts that are cooling down at `now`, each with the end of its pause.
    package func coolingHosts(
        at now: Timestamp
    ) throws(StorageError) -> [(host: String, until: Timestamp)] {
        try hosts.all(at: now).compactMap { state in
            guard let until = state.coolingUntil, until > now else { return nil }
            return (state.host, until)
        }.sorted { $0.host < $1.host }
    }

    /// The hosts with a stored wait that no run stores, and that runs ignore.
    package func impossibleHosts(at now: Timestamp) throws(StorageError) -> [String] {
        try hosts.longWaits(at: now)
            .filter { $0.pausedUntil == nil }.map(\.host)
    }

    package func failureCounts(
        isBlacklisted: (FailureRecord) -> Bool
    ) throws(StorageError) -> FailureCounts {
        try database.read("counting failures") {
            try CacheCatalog.countFailures(in: $0, isBlacklisted: isBlacklisted)
        }
    }

    /// The hosts with the most resources, as scheme, host and port.
    package func largestHosts(_ count: Int) throws(StorageError) -> [String] {
        try database.read("reading the hosts") { database in
            try database.all(
                "SELECT host FROM resource GROUP BY host ORDER BY count(*) DESC, host LIMIT ?",
                .init(count)
            ) { try $0.text(0) }
        }
    }
}
