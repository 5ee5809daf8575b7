internal import Foundation
internal import GRDB
import PrefetchModel

/// Writes rows in groups, on the one thread that calls ``run(delivered:)``.
///
/// Files are in place before their rows come here. `synchronous = NORMAL` writes the log without
/// waiting for the disk; what makes a row outlive a power cut is the checkpoint, and before each
/// one the whole file system is synchronised, so that no row that can be seen afterwards names an
/// empty file.
package final class MetadataWriter: Sendable {
    /// How far "done" reaches.
    package enum Durability: String, CaseIterable, Sendable {
        /// `syncfs` before each checkpoint: a power cut loses the last seconds and tears nothing.
        case normal
        /// Files and rows are on the disk before an entry is reported.
        case full
        /// Nothing is synchronised; a power cut may leave rows that name empty files.
        case off
    }

    package struct Configuration: Sendable {
        /// A group is committed when it has this many rows.
        package var groupRows = 256
        /// The longest that a row waits for its group.
        package var groupDelay: Duration = .milliseconds(200)
        /// The longest time of work between two checkpoints.
        package var checkpointInterval: Duration = .seconds(5)
        package var durability: Durability = .normal

        package init() {}
    }

    /// A row on its way, with what the caller knows it by.
    private struct Item {
        let row: ImageRow
        let token: Int
    }

    private struct State {
        var items: [Item] = []
        var isFinished = false
    }

    private let database: CacheDatabase
    private let content: ContentStore
    private let configuration: Configuration
    private let state: Monitor<State>

    package init(
        database: CacheDatabase, content: ContentStore, configuration: Configuration
    ) {
        self.database = database
        self.content = content
        self.configuration = configuration
        state = Monitor(State())
    }

    // MARK: From any thread

    /// Hands in a row whose file ``ContentStore`` has put in place and pinned.
    package func enqueue(_ row: ImageRow, token: Int) {
        // The writer has something to do for the first row of a group and for its last.
        let groupRows = configuration.groupRows
        state.update(wakes: { $0.items.count == 1 || $0.items.count >= groupRows }) {
            $0.items.append(Item(row: row, token: token))
        }
    }

    /// Lets ``run(delivered:)`` commit what is there and return.
    package func finish() {
        state.update { $0.isFinished = true }
    }

    // MARK: The writer's thread

    /// Commits rows until ``finish()``.
    ///
    /// - Parameter delivered: called on this thread with the tokens of rows that are committed.
    /// - Throws: when the database or the disk fails. Rows not delivered by then count as not
    ///   stored, even where only their synchronisation failed.
    package func run(delivered: ([Int]) -> Void) throws(StorageError) {
        var checkpointDue: ContinuousClock.Instant?
        // Images that lost their last row wait for the checkpoint: a power cut before it may bring
        // the row back.
        var orphans: [StoredImage] = []
        while true {
            let group = nextGroup(until: checkpointDue)
            if !group.items.isEmpty {
                orphans += try commit(group.items)
                if configuration.durability == .full { try checkpoint(truncates: false) }
                delivered(group.items.map(\.token))
                if checkpointDue == nil { checkpointDue = .now + configuration.checkpointInterval }
            }
            if group.isFinished {
                if checkpointDue != nil {
                    try checkpoint(truncates: true)
                    try remove(orphans)
                }
                return
            }
            if let due = checkpointDue, due <= .now {
                try checkpoint(truncates: false)
                try remove(orphans)
                orphans = []
                checkpointDue = nil
            }
        }
    }

    /// Removes the files of images that still no row names.
    private func remove(_ orphans: [StoredImage]) throws(StorageError) {
        guard !orphans.isEmpty else { return }
        let unnamed = try database.read("looking for names") { database in
            try orphans.filter { try !MetadataWriter.isNamed($0.digest, in: database) }
        }
        for orphan in unnamed { try content.remove(orphan.digest, format: orphan.format) }
    }

    /// Waits for a whole group, the first row's delay, the end, or `deadline`.
    private func nextGroup(
        until deadline: ContinuousClock.Instant?
    ) -> (items: [Item], isFinished: Bool) {
        var flushTime: ContinuousClock.Instant?
        return state.wait { state, now in
            if state.items.count >= configuration.groupRows || state.isFinished {
                return .ready(take(&state))
            }
            if state.items.isEmpty {
                if let deadline, deadline <= now { return .ready(([], false)) }
                return .wait(until: deadline)
            }
            let flush = flushTime ?? now + configuration.groupDelay
            flushTime = flush
            return flush <= now ? .ready(take(&state)) : .wait(until: flush)
        }
    }

    private func take(_ state: inout State) -> (items: [Item], isFinished: Bool) {
        let count = min(state.items.count, configuration.groupRows)
        let items = Array(state.items.prefix(count))
        state.items.removeFirst(count)
        return (items, state.isFinished && state.items.isEmpty)
    }

    private func checkpoint(truncates: Bool) throws(StorageError) {
        if configuration.durability != .off { try content.synchronize() }
        try database.checkpoint(truncates: truncates)
    }

    /// Commits the rows and returns the images that they replace.
    private func commit(_ items: [Item]) throws(StorageError) -> [StoredImage] {
        let replaced = try database.write("committing") { database in
            try items.flatMap { try MetadataWriter.store($0.row, in: database) }
        }
        for item in items { content.unpin(item.row.image.digest) }
        return replaced
    }

    // MARK: Statements

    /// Writes one row and returns the images of variants that it replaced or made obsolete.
    private static func store(_ row: ImageRow, in database: Database) throws -> [StoredImage] {
        let sourceDigest = Data(row.sourceDigest.bytes)
        let previous = try Data.fetchOne(
            database.cachedStatement(sql: "SELECT source_sha256 FROM resource WHERE key = ?"),
            arguments: [row.key])
        let resource = try database.cachedStatement(
            sql: """
                INSERT INTO resource (key, url, final_url, host, etag, last_modified, cache_control,
                    vary, date, fetched_at, validated_at, expires_at, source_bytes, source_format,
                    source_sha256, source_width, source_height)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
                ON CONFLICT (key) DO UPDATE SET url = ?2, final_url = ?3, host = ?4, etag = ?5,
                    last_modified = ?6, cache_control = ?7, vary = ?8, date = ?9, fetched_at = ?10,
                    validated_at = ?10, expires_at = ?11, source_bytes = ?12, source_format = ?13,
                    source_sha256 = ?14, source_width = ?15, source_height = ?16
                RETURNING id
                """)
        let identifier = try Int64.fetchOne(
            resource,
            arguments: [
                row.key, row.url, row.finalURL, row.host, row.entityTag, row.lastModified,
                row.cacheControl, row.vary, row.date?.milliseconds, row.fetchedAt.milliseconds,
                row.expiresAt.milliseconds, row.sourceSize.bytes, row.sourceFormat.rawValue,
                sourceDigest, row.sourceWidthInPixels, row.sourceHeightInPixels,
            ])
        guard let identifier else { throw DatabaseError(message: "the resource has no identifier") }
        // Variants of other recipes go when they were made from another body.
        let former = try Row.fetchAll(
            database.cachedStatement(
                sql: """
                    DELETE FROM variant WHERE resource_id = ?1 AND (recipe = ?2 OR ?3)
                    RETURNING sha256, format, width, height, bytes
                    """),
            arguments: [identifier, row.recipe.canonicalText, previous != sourceDigest])
        let variant = try database.cachedStatement(
            sql: """
                INSERT INTO variant (resource_id, recipe, sha256, format, width, height, bytes,
                    created_at, last_access_at)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)
                """)
        try variant.execute(arguments: [
            identifier, row.recipe.canonicalText, Data(row.image.digest.bytes),
            row.image.format.rawValue, row.image.widthInPixels, row.image.heightInPixels,
            row.image.size.bytes, row.fetchedAt.milliseconds,
        ])
        return former.compactMap { StoredImage($0, from: 0) }
            .filter { $0.digest != row.image.digest || $0.format != row.image.format }
    }

    private static func isNamed(_ digest: ContentDigest, in database: Database) throws -> Bool {
        let statement = try database.cachedStatement(
            sql: "SELECT 1 FROM variant WHERE sha256 = ? LIMIT 1")
        return try Int.fetchOne(statement, arguments: [Data(digest.bytes)]) != nil
    }
}
