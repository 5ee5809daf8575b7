package import PrefetchModel
internal import SQLite
import Threading

/// Writes rows in groups, on the one thread that calls ``run(delivered:)``.
///
/// Files are in place before their rows come here, and on the disk before the group of their rows is
/// committed: the whole file system is synchronised first. It would be too late before the
/// checkpoint. What is in the log may reach the disk at any time after the commit, since the kernel
/// writes back what it likes, and it must not get there before the files that it names.
package final class MetadataWriter: Sendable {
    /// How far "done" reaches.
    package enum Durability: String, CaseIterable, Sendable {
        /// `syncfs` before each commit: a power cut loses the last seconds and tears nothing.
        case normal
        /// Rows are on the disk, too, before an entry is reported.
        case full
        /// Nothing is synchronised; a power cut may leave rows that name empty files, which the next
        /// run removes.
        case off
    }

    package struct Configuration: Sendable {
        /// A group is committed when it has this many rows. Rows of one group share the pages of
        /// the log that they change.
        package var groupRows = 4096
        /// A group is committed when its images have this many bytes.
        package var groupBytes = ByteCount.mebibytes(64)
        /// A group is committed when its rows take about so much memory.
        package var groupMemory = ByteCount.mebibytes(16)
        /// The longest that a row waits for its group, as long as commits are fast.
        package var groupDelay: Duration = .milliseconds(200)
        /// The same where the disk is slow or the cache large: a row waits for so many times the time that the
        /// last group took, so that synchronising and committing take a tenth of the time and not all
        /// of it.
        package var delayPerCommit = 10
        package var longestGroupDelay: Duration = .seconds(2)
        /// The longest time of work between two checkpoints.
        package var checkpointInterval: Duration = .seconds(5)
        package var durability: Durability = .normal
        /// What the content files may take on the disk; nil for any.
        package var maximumSize: ByteCount?
        /// Which resources must not go so that others find room.
        package var isProtected: @Sendable (Int64) -> Bool = { _ in true }
        package var wallClock: @Sendable () -> Timestamp = { .distantPast }

        package init() {}
    }

    /// A change on its way, with what the caller knows it by.
    private struct Item {
        let change: MetadataChange
        let token: Int?
        /// About what it takes in memory.
        let memory: Int
    }

    private struct State {
        var items: [Item] = []
        /// Of the images whose rows are in ``items``, up to a whole group's.
        var contentBytes = 0
        /// Of all changes that are not committed, those of the present group included.
        var memory = 0
        /// Whether what is there is committed without waiting for more.
        var isHurried = false
        /// Whether somebody waits for room.
        var wantsRoom = false
        var isFinished = false
        /// Resources that got a body, once the writer has ended.
        var stored = ResourceSet()
        /// What has gone so that others found room.
        var evicted = RemovalTotals()
    }

    private let database: CacheDatabase
    private let content: ContentStore
    private let configuration: Configuration
    private let state: Monitor<State>
    /// Throws when this process is no longer the only one that writes the cache.
    private let checkHold: @Sendable () throws(StorageError) -> Void

    private let run: Int64
    private let cache: OpenCache
    /// What those that store have to ask for room; nil where there is no bound.
    package let room: RoomBudget?

    /// Failures are noted with the identifier of their run.
    ///
    /// - Throws: when the database cannot be read.
    package init(
        _ cache: OpenCache, run: Int64, configuration: Configuration
    ) throws(StorageError) {
        self.cache = cache
        let state = Monitor(State())
        if let limit = configuration.maximumSize {
            room = RoomBudget(limit: limit, usage: try cache.usage()) {
                state.update { $0.wantsRoom = true }
            }
        } else {
            room = nil
        }
        self.state = state
        database = cache.database
        content = cache.content
        checkHold = { () throws(StorageError) in try cache.checkHold() }
        self.run = run
        self.configuration = configuration
    }

    // MARK: From any thread

    /// Resources that got a body; complete once ``run(delivered:)`` has returned.
    package var stored: ResourceSet { state.withLock { $0.stored } }

    /// What has gone so that others found room.
    package var evicted: RemovalTotals { state.withLock { $0.evicted } }

    /// Hands in a change; files that it names are in place and pinned by ``ContentStore``.
    ///
    /// Changes are committed in the order in which they come. Only those with a token are
    /// delivered.
    package func enqueue(_ change: MetadataChange, token: Int?) {
        let item = Item(change: change, token: token, memory: change.memoryEstimate)
        // The writer has something to do for the first row of a group and for its last.
        state.update(wakes: { $0.items.count == 1 || isWhole($0) }) { state in
            state.items.append(item)
            state.contentBytes += change.contentBytes
            state.memory += item.memory
        }
    }

    /// Bytes that uncommitted changes take in memory, at a guess. Whoever makes changes waits while
    /// that is too much: the disk may take any time to synchronise.
    package var backlog: ByteCount { ByteCount(state.withLock { $0.memory }) }

    /// Lets ``run(delivered:)`` commit what is there without waiting for more. It goes on after that.
    package func hurry() {
        state.update(wakes: { !$0.items.isEmpty }) { $0.isHurried = true }
    }

    /// Lets ``run(delivered:)`` commit what is there and return.
    package func finish() {
        state.update { $0.isFinished = true }
    }

    // MARK: The writer's thread

    /// Commits rows until ``finish()``.
    ///
    /// - Parameter delivered: called on this thread after each commit, with the tokens of its rows.
    /// - Throws: when the database or the disk fails, or another process has got at the cache. Rows
    ///   not delivered by then count as not stored, even where only their synchronisation failed.
    package func run(delivered: ([Int]) -> Void) throws(StorageError) {
        if configuration.durability == .full { try database.synchronizeCommits() }
        try database.holdMorePages()
        var checkpointDue: ContinuousClock.Instant?
        // Images that lost their last row wait until that is on the disk: a power cut before it may
        // bring the row back.
        var orphans: [StoredImage] = []
        var statements = MetadataStatements(run: run)
        defer { state.withLock { [stored = statements.stored] in $0.stored = stored } }
        var groupDelay = configuration.groupDelay
        while true {
            let group = nextGroup(delay: groupDelay, until: checkpointDue)
            if !group.items.isEmpty {
                try checkHold()
                let start = ContinuousClock.now
                if configuration.durability != .off {
                    try content.synchronize()
                    // The log of the groups before has got there along with the files.
                    try remove(orphans)
                    orphans = []
                }
                orphans += try commit(group.items, with: &statements, delivered)
                let cost = (.now - start) * configuration.delayPerCommit
                groupDelay = min(
                    max(cost, configuration.groupDelay), configuration.longestGroupDelay)
                if checkpointDue == nil { checkpointDue = .now + configuration.checkpointInterval }
            }
            if group.wantsRoom { try makeRoom(without: statements.stored) }
            if group.isFinished {
                if checkpointDue != nil || !orphans.isEmpty { try finish(removing: orphans) }
                return
            }
            if let due = checkpointDue, due <= .now {
                if try database.checkpoint(truncates: false) {
                    try remove(orphans)
                    orphans = []
                }
                checkpointDue = nil
            }
        }
    }

    /// Removes what may go for the sake of those that wait for room: nothing of what is `stored` by this run, since
    /// its lists name it.
    private func makeRoom(without stored: ResourceSet) throws(StorageError) {
        guard let room, let bound = room.bound else { return }
        try checkHold()
        var rules = PruneRules()
        rules.maximumSize = bound
        let now = configuration.wallClock()
        let isProtected = { [configuration] resource in
            stored.contains(resource) || configuration.isProtected(resource)
        }
        let removal = ImageRemoval(cache, variant: nil, at: now)
        _ = try CachePruning(
            rules, at: now, protecting: isProtected,
            // What this run has made of an image is committed. Of the others it may use any variant yet.
            protectsSuperseded: { [configuration] resource in
                configuration.isProtected(resource) && !stored.contains(resource)
            }
        ).run(removal) { _ in }
        state.withLock { $0.evicted.add(removal.totals) }
        room.notePruned(to: try cache.usage())
    }

    /// Moves the log into the database and removes the files that lost their last row.
    private func finish(removing orphans: [StoredImage]) throws(StorageError) {
        let isComplete = try database.checkpoint(truncates: true)
        // A checkpoint synchronises the database, but a reader of another program may keep a part
        // of the log back.
        if !orphans.isEmpty, !isComplete, configuration.durability != .off {
            try content.synchronize()
        }
        try remove(orphans)
    }

    /// Removes the files of images that still no row names.
    private func remove(_ orphans: [StoredImage]) throws(StorageError) {
        guard !orphans.isEmpty else { return }
        let unnamed = try database.read("looking for names") { database in
            try orphans.filter { try !MetadataStatements.isNamed($0.digest, in: database) }
        }
        for orphan in unnamed { try content.remove(orphan.digest, format: orphan.format) }
    }

    // MARK: Groups

    private func isWhole(_ state: borrowing State) -> Bool {
        state.items.count >= configuration.groupRows
            || state.contentBytes >= configuration.groupBytes.bytes
            || state.memory >= configuration.groupMemory.bytes
    }

    /// Waits for a whole group, the first row's delay, the end, or `deadline`.
    private func nextGroup(
        delay: Duration, until deadline: ContinuousClock.Instant?
    ) -> (items: [Item], isFinished: Bool, wantsRoom: Bool) {
        var flushTime: ContinuousClock.Instant?
        return state.wait { state, now in
            if isWhole(state) || state.isFinished || state.wantsRoom
                || state.isHurried && !state.items.isEmpty
            {
                return .ready(take(&state))
            }
            if state.items.isEmpty {
                if let deadline, deadline <= now { return .ready(([], false, false)) }
                return .wait(until: deadline)
            }
            // Whoever waits for room waits for those before, and nothing else is begun meanwhile.
            let isShort = room?.isShort == true
            let flush = flushTime ?? now + (isShort ? configuration.groupDelay : delay)
            flushTime = flush
            return flush <= now ? .ready(take(&state)) : .wait(until: flush)
        }
    }

    private func take(
        _ state: inout State
    ) -> (items: [Item], isFinished: Bool, wantsRoom: Bool) {
        let items = Array(state.items.prefix(configuration.groupRows))
        state.items.removeFirst(items.count)
        if state.items.isEmpty { state.isHurried = false }
        state.contentBytes = state.items.reduce(0) { $0 + $1.change.contentBytes }
        // What is committed first may make room itself.
        let wantsRoom = state.wantsRoom && state.items.isEmpty
        if wantsRoom { state.wantsRoom = false }
        return (items, state.isFinished && state.items.isEmpty, wantsRoom)
    }

    // MARK: Commits

    /// Commits a group and delivers it; on a full disk, as much of it as finds room.
    ///
    /// - Returns: the images that its rows replace.
    /// - Throws: also after a part of the group has been committed.
    private func commit(
        _ items: [Item], with statements: inout MetadataStatements, _ delivered: ([Int]) -> Void
    ) throws(StorageError) -> [StoredImage] {
        let replaced: [StoredImage]
        do throws(StorageError) {
            replaced = try database.write("committing") { database in
                statements.beginTransaction()
                return try statements.apply(items.lazy.map(\.change), in: database)
            }
        } catch  where error.isDiskFull && items.count > 1 {
            // The files of the later half make room for the rows of the earlier.
            let half = items.count / 2
            for image in items[half...].flatMap(\.change.images) {
                content.unpin(image.digest)
                try remove([image])
            }
            _ = try commit(Array(items[..<half]), with: &statements, delivered)
            throw error
        }
        for image in items.flatMap(\.change.images) { content.unpin(image.digest) }
        state.withLock { state in state.memory -= items.reduce(0) { $0 + $1.memory } }
        let tokens = items.compactMap(\.token)
        if let room { room.settle(tokens, usage: try cache.usage()) }
        delivered(tokens)
        return replaced
    }
}

extension MetadataChange {
    /// The images that were stored for it, and are pinned.
    fileprivate var images: [StoredImage] {
        switch self {
        case .image(let row): row.variants.map(\.image)
        case .resource(let change): change.variants.map(\.image)
        case .failure, .harmlessFailure, .lost, .used: []
        }
    }

    fileprivate var contentBytes: Int { images.reduce(0) { $0 + $1.size.bytes } }

    /// Bytes that it takes in memory, at a guess: what origins and lists may make long is counted.
    fileprivate var memoryEstimate: Int {
        let texts: [String?]
        var attributes: [EntryAttribute] = []
        switch self {
        case .image(let row):
            let location = row.validation.location
            texts =
                [row.key, location.url, location.finalURL, location.permanentURL]
                + row.validation.response.texts
            attributes = row.attributes
        case .resource(let change):
            texts =
                [change.key, change.validation?.location.url]
                + (change.validation?.response.texts ?? [])
            attributes = change.attributes
        case .failure(let record), .harmlessFailure(let record):
            texts = [record.key, record.url, record.message]
        case .lost:
            texts = []
        case .used(let resources, _):
            return 8 * resources.count
        }
        // With what the entry's own state holds, which lasts as long.
        let fixed = 1500
        return texts.reduce(fixed) { $0 + ($1?.utf8.count ?? 0) }
            + attributes.reduce(0) { $0 + $1.name.utf8.count + $1.value.count }
    }
}

extension StoredResponse {
    fileprivate var texts: [String?] { [entityTag, lastModified, cacheControl, expires, vary] }
}
