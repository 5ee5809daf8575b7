package import PrefetchModel
internal import SQLite
import Threading

/// Writes rows in groups, on the thread that calls ``run(delivered:)``. Files are in place before
/// their rows are enqueued. The file system is synced before each commit: the kernel may write the
/// log to disk at any time after it, and the files that it names must be there first.
package final class MetadataWriter: Sendable {
    /// The guarantee that a finished entry has.
    package enum Durability: String, CaseIterable, Sendable {
        /// `syncfs` before each commit: a power cut loses the last seconds and tears nothing.
        case normal
        /// Rows are also synced before an entry is reported.
        case full
        /// Nothing is synchronised: a power cut may leave rows of empty files, until the next run.
        case off
    }

    package struct WriterConfiguration: Sendable {
        /// The number of rows that completes a group, which share the log pages they change.
        package var groupRows = 4096
        /// The size of the images that completes a group.
        package var groupBytes = ByteCount.mebibytes(64)
        /// The estimated memory of the rows that completes a group.
        package var groupMemory = ByteCount.mebibytes(16)
        /// The longest time that a row waits for its group while commits are fast.
        package var groupDelay: Duration = .milliseconds(200)
        /// The delay on a slow disk or with a large cache, as a multiple of the last group's
        /// duration. So commits take at most about a tenth of the time.
        package var delayPerCommit = 10
        package var longestGroupDelay: Duration = .seconds(2)
        /// The longest working time between two checkpoints.
        package var checkpointInterval: Duration = .seconds(5)
        package var durability: Durability = .normal
        /// The disk space limit of the content files; nil for none.
        package var maximumSize: ByteCount?
        package var isProtected: @Sendable (Int64) -> Bool = { _ in true }
        package var wallClock: @Sendable () -> Timestamp = { .distantPast }

        package init() {}
    }

    private struct QueuedChange {
        let change: MetadataChange
        let token: Int?
        let memory: Int
    }

    private struct WriterQueue {
        var items: [QueuedChange] = []
        /// The size of the images in ``items``, up to a whole group.
        var contentBytes = 0
        /// The memory of all uncommitted changes, including the current group.
        var memory = 0
        /// Whether to commit without waiting for more rows.
        var isHurried = false
        var wantsRoom = false
        var isFinished = false
        /// Resources that got a body; set when the writer ends.
        var stored = ResourceSet()
        var evicted = RemovalTotals()
    }

    private let configuration: WriterConfiguration
    private let state: Monitor<WriterQueue>
    private let run: Int64
    private let cache: OpenCache
    /// The budget of writers that store files; nil without a size limit.
    package let room: RoomBudget?

    /// Creates a writer; failures are attributed to `run`.
    package init(
        _ cache: OpenCache, run: Int64, configuration: WriterConfiguration
    ) throws(StorageError) {
        self.cache = cache
        let state = Monitor(WriterQueue())
        if let limit = configuration.maximumSize {
            room = RoomBudget(limit: limit, usage: try cache.database.usage()) {
                state.update { $0.wantsRoom = true }
            }
        } else {
            room = nil
        }
        self.state = state
        self.run = run
        self.configuration = configuration
    }

    // MARK: From any thread

    /// Resources that got a body; complete once ``run(delivered:)`` has returned.
    package var stored: ResourceSet { state.withLock { $0.stored } }

    package var evicted: RemovalTotals { state.withLock { $0.evicted } }

    /// Enqueues a change after ``ContentStore`` has stored and pinned its files. Changes are
    /// committed in order. Only changes with a token are delivered.
    package func enqueue(_ change: MetadataChange, token: Int?) {
        let item = QueuedChange(change: change, token: token, memory: change.memoryEstimate)
        // The writer needs to wake for the first row of a group and for its last.
        state.update(wakes: { $0.items.count == 1 || isWhole($0) }) { state in
            state.items.append(item)
            state.contentBytes += change.contentBytes
            state.memory += item.memory
        }
    }

    /// The memory of uncommitted changes. Callers wait while it is too large: a sync takes time.
    package var backlog: ByteCount { ByteCount(state.withLock { $0.memory }) }

    /// Makes ``run(delivered:)`` commit the queued rows immediately and continue.
    package func hurry() {
        state.update(wakes: { !$0.items.isEmpty }) { $0.isHurried = true }
    }

    /// Makes ``run(delivered:)`` commit the queued rows and return.
    package func finish() {
        state.update { $0.isFinished = true }
    }

    // MARK: The writer's thread

    /// Commits rows until ``finish()``. `delivered` is called on this thread after each commit,
    /// with the tokens of its rows.
    ///
    /// - Throws: When the database or the disk fails, or another process has taken over the cache.
    ///   Rows that were not delivered by then count as not stored, even if only their
    ///   synchronisation failed.
    package func run(delivered: ([Int]) -> Void) throws(StorageError) {
        if configuration.durability == .full { try cache.database.synchronizeCommits() }
        try cache.database.holdMorePages()
        var checkpointDue: ContinuousClock.Instant?
        // Removed once that is on the disk: a power cut before could restore their rows.
        var orphans: [StoredImage] = []
        var statements = MetadataStatements(run: run)
        defer { state.withLock { [stored = statements.stored] in $0.stored = stored } }
        var groupDelay = configuration.groupDelay
        while true {
            let group = nextGroup(delay: groupDelay, until: checkpointDue)
            if !group.items.isEmpty {
                try cache.checkHold()
                let start = ContinuousClock.now
                if configuration.durability != .off {
                    try cache.content.synchronize()
                    // This also synced the log of the previous groups.
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
                if try cache.database.checkpoint(truncates: false) {
                    try remove(orphans)
                    orphans = []
                }
                checkpointDue = nil
            }
        }
    }

    /// Evicts images for entries that wait for room, except images `stored` by this run.
    private func makeRoom(without stored: ResourceSet) throws(StorageError) {
        guard let room, let limit = room.evictionLimit else { return }
        try cache.checkHold()
        let now = configuration.wallClock()
        let isProtected = { [configuration] resource in
            stored.contains(resource) || configuration.isProtected(resource)
        }
        let removal = ImageRemoval(cache, variant: nil, at: now)
        _ = try CachePruning(
            PruneRules(maximumSize: limit), at: now, protecting: isProtected,
            // This run's changes to stored images are committed. It may still use any variant of
            // the others.
            protectsSuperseded: { [configuration] resource in
                configuration.isProtected(resource) && !stored.contains(resource)
            }
        ).run(removal) { _ in }
        state.withLock { $0.evicted.add(removal.totals) }
        room.notePruned(to: try cache.database.usage())
    }

    /// Checkpoints the log and removes the files that lost their last row.
    private func finish(removing orphans: [StoredImage]) throws(StorageError) {
        let isComplete = try cache.database.checkpoint(truncates: true)
        // A reader in another process may prevent a complete checkpoint, which synchronises.
        if !orphans.isEmpty, !isComplete, configuration.durability != .off {
            try cache.content.synchronize()
        }
        try remove(orphans)
    }

    /// Removes the files of images that still have no row.
    private func remove(_ orphans: [StoredImage]) throws(StorageError) {
        guard !orphans.isEmpty else { return }
        let unnamed = try cache.database.read("looking for names") { database in
            try orphans.filter { try !MetadataStatements.isNamed($0.digest, in: database) }
        }
        for orphan in unnamed { try cache.content.remove(orphan.digest, format: orphan.format) }
    }

    private func isWhole(_ state: borrowing WriterQueue) -> Bool {
        state.items.count >= configuration.groupRows
            || state.contentBytes >= configuration.groupBytes.bytes
            || state.memory >= configuration.groupMemory.bytes
    }

    /// Waits for a whole group, the first row's delay, the end, or `deadline`.
    private func nextGroup(
        delay: Duration, until deadline: ContinuousClock.Instant?
    ) -> (items: [QueuedChange], isFinished: Bool, wantsRoom: Bool) {
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
            // An entry that waits for room needs earlier rows, and nothing new starts meanwhile.
            let isShort = room?.isShort == true
            let flush = flushTime ?? now + (isShort ? configuration.groupDelay : delay)
            flushTime = flush
            return flush <= now ? .ready(take(&state)) : .wait(until: flush)
        }
    }

    private func take(
        _ state: inout WriterQueue
    ) -> (items: [QueuedChange], isFinished: Bool, wantsRoom: Bool) {
        let items = Array(state.items.prefix(configuration.groupRows))
        state.items.removeFirst(items.count)
        if state.items.isEmpty { state.isHurried = false }
        state.contentBytes = state.items.reduce(0) { $0 + $1.change.contentBytes }
        // Committing these rows may itself make room.
        let wantsRoom = state.wantsRoom && state.items.isEmpty
        if wantsRoom { state.wantsRoom = false }
        return (items, state.isFinished && state.items.isEmpty, wantsRoom)
    }

    // MARK: Commits

    /// Commits a group of changes, and reports their tokens to `delivered`. Returns the images that
    /// the new rows replace.
    ///
    /// - Throws: also after a part of the group was committed: on a full disk, as much as fits.
    private func commit(
        _ items: [QueuedChange], with statements: inout MetadataStatements,
        _ delivered: ([Int]) -> Void
    ) throws(StorageError) -> [StoredImage] {
        let replaced: [StoredImage]
        do {
            replaced = try cache.database.write("committing") { database in
                statements.beginTransaction()
                return try statements.apply(items.lazy.map(\.change), in: database)
            }
        } catch  where error.isDiskFull && items.count > 1 {
            // Removing the files of the later half frees space for the rows of the earlier half.
            let half = items.count / 2
            for image in items[half...].flatMap(\.change.images) {
                cache.content.unpin(image.digest)
                try remove([image])
            }
            _ = try commit(Array(items[..<half]), with: &statements, delivered)
            throw error
        }
        for image in items.flatMap(\.change.images) { cache.content.unpin(image.digest) }
        state.withLock { state in state.memory -= items.reduce(0) { $0 + $1.memory } }
        let tokens = items.compactMap(\.token)
        if let room { room.settle(tokens, usage: try cache.database.usage()) }
        delivered(tokens)
        return replaced
    }
}

/// A change of the metadata; each entry of a run makes one.
package enum MetadataChange: Sendable {
    /// A body was stored, or a resource with an unchanged body got new metadata.
    case image(ImageChange)
    /// An entry failed, and the failure may be blacklisted by the rules at the end of the run.
    case failure(FailureRecord)
    /// An entry failed in a way that is stored for the next run but never blacklisted.
    case harmlessFailure(FailureRecord)
    /// A content file is missing or damaged: removes its remains and all variants that name it.
    case lost(StoredImage)
    /// The variants of resources in use changed to others that are stored.
    case used(resources: [Int64], [RequestedVariant])
    /// The expiry of resources changed without a request, by a run's rules.
    case expiries([Int64: Timestamp])
    /// Lists named resources by other URLs than before, without user information.
    case listedURLs([Int64: String])

    var isNewBody: Bool {
        if case .image(let change) = self, case .new = change.body { true } else { false }
    }

    /// The key of the one resource or failure that changes, if the change contains it.
    var key: String? {
        switch self {
        case .image(let change): change.key
        case .failure(let record), .harmlessFailure(let record): record.key
        case .lost, .used, .expiries, .listedURLs: nil
        }
    }

    fileprivate var images: [StoredImage] {
        switch self {
        case .image(let change): change.variants.map(\.image)
        case .failure, .harmlessFailure, .lost, .used, .expiries, .listedURLs: []
        }
    }

    fileprivate var contentBytes: Int { images.reduce(0) { $0 + $1.size.bytes } }

    /// The estimated memory in bytes: a fixed part, and texts from origins and manifests.
    fileprivate var memoryEstimate: Int {
        let texts: [String?]
        var attributes: [EntryAttribute] = []
        switch self {
        case .image(let change):
            let location = change.validation?.location
            texts =
                [change.key, location?.url, location?.finalURL, location?.permanent?.url]
                + (change.validation?.response.texts ?? [])
            attributes = change.attributes
        case .failure(let record), .harmlessFailure(let record):
            texts = [record.key, record.url, record.message]
        case .lost:
            texts = []
        case .used(let resources, _):
            return 8 * resources.count
        case .expiries(let expiries):
            return 16 * expiries.count
        case .listedURLs(let urls):
            return urls.values.reduce(0) { $0 + 24 + $1.utf8.count }
        }
        // Includes the entry's own state, which lives as long.
        let fixed = 1500
        return texts.reduce(fixed) { $0 + ($1?.utf8.count ?? 0) }
            + attributes.reduce(0) { $0 + $1.name.utf8.count + $1.value.count }
    }
}

extension StoredResponse {
    fileprivate var texts: [String?] { [entityTag, lastModified, cacheControl, expires, vary] }
}
