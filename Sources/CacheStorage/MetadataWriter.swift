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
        /// A group is committed when it has this many rows. Rows of one group share the pages of
        /// the log that they change; with 256 rows, which are 25 ms of a fast run, the log took
        /// twice the time.
        package var groupRows = 1024
        /// The longest that a row waits for its group.
        package var groupDelay: Duration = .milliseconds(200)
        /// The longest time of work between two checkpoints.
        package var checkpointInterval: Duration = .seconds(5)
        package var durability: Durability = .normal

        package init() {}
    }

    /// A change on its way, with what the caller knows it by.
    private struct Item {
        let change: MetadataChange
        let token: Int?
    }

    private struct State {
        var items: [Item] = []
        var isFinished = false
        var hasLeftOrphans = false
    }

    private let database: CacheDatabase
    private let content: ContentStore
    private let configuration: Configuration
    private let state: Monitor<State>

    private let run: Int64

    /// Failures are noted with the identifier of their run.
    package init(
        database: CacheDatabase, content: ContentStore, run: Int64, configuration: Configuration
    ) {
        self.database = database
        self.content = content
        self.run = run
        self.configuration = configuration
        state = Monitor(State())
    }

    // MARK: From any thread

    /// Hands in a change; files that it names are in place and pinned by ``ContentStore``.
    ///
    /// Changes are committed in the order in which they come. Only those with a token are
    /// delivered.
    package func enqueue(_ change: MetadataChange, token: Int?) {
        // The writer has something to do for the first row of a group and for its last.
        let groupRows = configuration.groupRows
        state.update(wakes: { $0.items.count == 1 || $0.items.count >= groupRows }) {
            $0.items.append(Item(change: change, token: token))
        }
    }

    /// Lets ``run(delivered:)`` commit what is there and return.
    package func finish() {
        state.update { $0.isFinished = true }
    }

    /// Whether files without a row could not be removed yet, when ``run(delivered:)`` has returned.
    package var hasLeftOrphans: Bool { state.withLock { $0.hasLeftOrphans } }

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
        var statements = MetadataStatements(run: run)
        while true {
            let group = nextGroup(until: checkpointDue)
            if !group.items.isEmpty {
                orphans += try commit(group.items, with: &statements)
                if configuration.durability == .full { _ = try checkpoint(truncates: false) }
                delivered(group.items.compactMap(\.token))
                if checkpointDue == nil { checkpointDue = .now + configuration.checkpointInterval }
            }
            if group.isFinished {
                if checkpointDue != nil {
                    if try checkpoint(truncates: true) {
                        try remove(orphans)
                    } else if !orphans.isEmpty {
                        // A reader of another program keeps the log back.
                        state.withLock { $0.hasLeftOrphans = true }
                    }
                }
                return
            }
            if let due = checkpointDue, due <= .now {
                if try checkpoint(truncates: false) {
                    try remove(orphans)
                    orphans = []
                }
                checkpointDue = nil
            }
        }
    }

    /// Removes the files of images that still no row names.
    private func remove(_ orphans: [StoredImage]) throws(StorageError) {
        guard !orphans.isEmpty else { return }
        let unnamed = try database.read("looking for names") { database in
            try orphans.filter { try !MetadataStatements.isNamed($0.digest, in: database) }
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

    private func checkpoint(truncates: Bool) throws(StorageError) -> Bool {
        if configuration.durability != .off { try content.synchronize() }
        return try database.checkpoint(truncates: truncates)
    }

    /// Commits the changes and returns the images that they replace.
    private func commit(
        _ items: [Item], with statements: inout MetadataStatements
    ) throws(StorageError) -> [StoredImage] {
        let replaced = try database.write("committing") { database in
            var replaced: [StoredImage] = []
            statements.beginTransaction()
            for item in items { replaced += try statements.apply(item.change, in: database) }
            return replaced
        }
        for item in items {
            switch item.change {
            case .image(let row): content.unpin(row.image.digest)
            case .resource(let change): change.variant.map { content.unpin($0.image.digest) }
            case .failure, .lost: break
            }
        }
        return replaced
    }
}
