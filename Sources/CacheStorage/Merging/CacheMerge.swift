import Glibc
package import PrefetchModel
internal import SQLite

/// Merges other caches into a cache. A new database is built from the rows of all of them, while
/// threads take over the content files. It replaces the old one after everything is on the disk, so
/// a merge that is stopped changes nothing but files without rows, which the next merge uses.
struct CacheMerge {
    let directory: CacheDirectory
    let content: ContentStore
    let others: [CacheDirectory]
    let workers: Int
    let now: Timestamp
    /// The report of earlier merges into the same cache, to which this one adds.
    private(set) var report = MergeReport()
    /// The sources that were found damaged once.
    private(set) var doubtful: Set<Int> = []
    /// The salvaged copies of damaged sources, by the sources' numbers.
    private(set) var salvaged: [Int: String] = [:]
    /// Whether the database was built more than once: files of the first attempt may have no row.
    private(set) var isRepeated = false
    private(set) var dropped: Set<NamedFile> = []

    mutating func run() throws(StorageError) {
        defer { removeSalvaged() }
        while try !build() {}
        try content.synchronize()
        try CacheDatabase.putInPlace(in: directory)
        // A power cut must not undo the replacement after files are removed.
        try content.synchronize()
    }

    /// Builds the rows that ``run()`` would write with all files of the others but the `lost` ones.
    /// Changes nothing; the destination may be open. Returns the files of the others' images.
    mutating func plan(besides lost: Set<ContentDigest>) throws(StorageError) -> ContentFiles {
        let path = directory.path(of: CacheDatabase.unfinishedName)
        defer { removeSalvaged() }
        while try !build(besides: lost) {}
        let files = try StorageError.converting("merging", path) {
            try ContentFiles(Connection(path: path, access: .immutable), path: path)
        }
        // It is read through its open file.
        try directory.removeDatabase(CacheDatabase.unfinishedName)
        return files
    }

    /// Removes the destination's files that no row of the new database names, after ``run()``.
    mutating func removeDropped(_ database: CacheDatabase) throws(StorageError) {
        for file in dropped {
            guard let format = file.format else { continue }
            let isNamed = try database.read("looking up") {
                try MetadataStatements.isNamed(file.digest, in: $0)
            }
            if !isNamed, try content.remove(file.digest, format: format) {
                report.removedFiles += 1
            }
        }
    }

    /// Builds the new database; for a plan, whose unavailable files are `lost`, only the others'
    /// images. Returns false if a source could not be read: call again to read or salvage it.
    private mutating func build(
        besides lost: Set<ContentDigest>? = nil
    ) throws(StorageError) -> Bool {
        let (directory, now) = (directory, now)
        do {
            let sources = try open(isPlan: lost != nil)
            let adoption = FileAdoption(
                into: content, from: [directory] + others, workers: lost == nil ? workers : 0)
            var merged: Merged?
            do {
                try CacheDatabase.build(in: directory, keepsOrphans: false) { target in
                    merged = try CacheMerge.fill(
                        target, from: sources, adoption, try FreshnessSpool(in: directory),
                        besides: lost, at: now)
                }
            } catch {
                // Only ends the threads: the error to report is this one.
                _ = try? adoption.finish(isAbandoned: true)
                throw error
            }
            if let merged { note(merged, sources) }
            return true
        } catch {
            let error = StorageError(
                error, "merging", directory.path(of: CacheDirectory.databaseName))
            guard error.isDamage, let source = sourceToSalvage(for: error) else { throw error }
            isRepeated = true
            // One failing read does not prove damage.
            if doubtful.insert(source).inserted { return false }
            guard source > 0 else { throw error }
            try salvage(source)
            return false
        }
    }

    /// The source that an error concerns; nil for the new database or a salvaged copy.
    private func sourceToSalvage(for error: StorageError) -> Int? {
        ([directory] + others).enumerated().first { number, cache in
            error.subject == cache.path(of: CacheDirectory.databaseName) && salvaged[number] == nil
        }?.offset
    }

    private func open(isPlan: Bool) throws -> [MergeSource] {
        try [MergeSource(destination: directory, isOpen: isPlan)]
            + others.enumerated().map { index, other in
                if let path = salvaged[index + 1] {
                    return try MergeSource(salvaged: path, number: index + 1, directory: other)
                }
                return try MergeSource(number: index + 1, directory: other)
            }
    }

    private struct Merged {
        let images: ImageMergeCounts
        let failures: Int
        let files: AdoptionCounts
        let lost: [StoredImage]
    }

    private static func fill(
        _ target: Connection, from sources: [MergeSource], _ adoption: FileAdoption,
        _ spool: FreshnessSpool, besides lost: Set<ContentDigest>?, at now: Timestamp
    ) throws -> Merged? {
        try target.execute("PRAGMA foreign_keys = OFF; PRAGMA cache_size = -65536")
        return try target.transaction(.immediate) {
            var images = try target.withoutTriggers {
                try target.withoutIndexes(["variant_sha256", "freshness_resource_id"]) {
                    let history = HistoryMerge(target: target, sources: sources, now: now)
                    try history.mergeNames()
                    var images = try ImageMerge(
                        sources, into: target, adoption: adoption, spool: spool, besides: lost,
                        at: now)
                    try images.run()
                    if lost != nil { return images }
                    try history.mergeFailures()
                    try history.mergeHosts()
                    try history.mergeRuns()
                    try history.mergeListings(at: now)
                    try history.keepProperties()
                    try spool.insertAll(into: target)
                    return images
                }
            }
            try target.withoutTriggers { try images.writeTotals(in: target) }
            if lost != nil { return nil }
            let (files, lost) = try adoption.finish()
            var statements = MetadataStatements(run: 0)
            for image in lost { _ = try statements.apply(.lost(image), in: target) }
            let failures = try target.first("SELECT count(*) FROM failure") { try $0.count(0) }
            return Merged(images: images.counts, failures: failures ?? 0, files: files, lost: lost)
        }
    }

    private mutating func note(_ merged: Merged, _ sources: [MergeSource]) {
        report.images = merged.images.all
        report.added += merged.images.added
        report.updated += merged.images.updated
        report.failures = merged.failures
        report.reusedKeys = merged.images.reusedKeys
        report.files = report.files + merged.files
        report.lostFiles += Set(merged.lost.map(\.digest)).union(merged.images.lost).count
        dropped = merged.images.dropped
        for source in sources where source.invalidRows > 0 {
            report.damaged.append((source.directory.path, .invalidRows(source.invalidRows)))
        }
    }

    /// Salvages a damaged source into a database among the destination's temporary files.
    private mutating func salvage(_ number: Int) throws(StorageError) {
        let name = "tmp/merge-\(number).sqlite"
        let other = others[number - 1]
        let directory = directory
        let report = try StorageError.converting("merging", directory.path(of: name)) {
            try CacheDatabase.salvage(other, intoFile: name, in: directory)
        }
        salvaged[number] = directory.path(of: name)
        self.report.damaged.append((other.path, .salvaged(report)))
    }

    private func removeSalvaged() {
        // The next run removes the rest with the other temporary files.
        for number in salvaged.keys { try? directory.removeDatabase("tmp/merge-\(number).sqlite") }
    }
}

extension Connection {
    /// Runs `body` without some indexes, and makes them again, each in one pass.
    fileprivate func withoutIndexes<Result>(
        _ names: [String], _ body: () throws -> Result
    ) throws -> Result {
        let creations = try names.map { name in
            try self.first("SELECT sql FROM sqlite_schema WHERE name = ?", .text(name)) {
                try $0.text(0)
            }
        }
        for name in names { try execute("DROP INDEX \(name)") }
        let result = try body()
        for creation in creations { if let creation { try execute(creation) } }
        return result
    }
}

package struct MergeReport: Sendable {
    package internal(set) var images = 0
    /// Images that the destination lacked before.
    package internal(set) var added = 0
    /// Images of the destination that a source has validated later.
    package internal(set) var updated = 0
    package internal(set) var failures = 0
    /// Keys of several URLs' images; the last validated image is kept.
    package internal(set) var reusedKeys = ReusedKeys()
    package internal(set) var files = AdoptionCounts()
    /// Rows with a missing or damaged content file in every cache that has it. Their images are
    /// kept without these variants, and the next run requests them.
    package var lostFiles = 0
    /// Content files of the destination that no row names any more, and which were removed.
    package internal(set) var removedFiles = 0
    /// Sources with damage, by their paths in the order given.
    package internal(set) var damaged: [(path: String, damage: SourceDamage)] = []

    package enum SourceDamage: Sendable {
        /// Its database could not be read as a whole; the report tells which rows were.
        case salvaged(SalvageReport)
        /// Rows that no version of this program writes.
        case invalidRows(Int)
    }

    /// Whether everything that the sources hold is in the merged cache.
    package var isComplete: Bool { lostFiles == 0 && damaged.isEmpty }
}

/// The number of content files by the way in which a cache got them.
package struct AdoptionCounts: Hashable, Sendable {
    package internal(set) var linked = 0
    /// Files that share their blocks with the source's (`FICLONE`).
    package internal(set) var cloned = 0
    package internal(set) var copied = 0
    /// Files that were there already, from another source or a merge that was stopped.
    package internal(set) var present = 0
    /// The size of the linked, cloned and copied files.
    package internal(set) var bytes = 0

    package var new: Int { linked + cloned + copied }

    static func + (left: AdoptionCounts, right: AdoptionCounts) -> AdoptionCounts {
        var sum = left
        sum.linked += right.linked
        sum.cloned += right.cloned
        sum.copied += right.copied
        sum.present += right.present
        sum.bytes += right.bytes
        return sum
    }
}
