import CacheStorage
import Decoding
import EntryLifecycle
import PrefetchModel
import Threading
import Transfers

/// The stages of a run, made on first use: a run over a warm list needs none, and setting up
/// libcurl and its TLS library costs more than such a run.
struct RunStages {
    private let provider: any StageProviding
    private var transfers: (any Transferring)?
    private var storing: StoringStages?
    private var copies: (any CopyFinding)?
    private var writerError: (any Error)?
    private(set) var processing = 0
    private(set) var lookingUp = 0
    var ahead = LookAhead()
    var gate = RoomGate()

    /// Messages for the threads, sent at the end of a turn of the run's loop: a wake-up costs more
    /// than a small file.
    private var outgoing: (requests: [TransferRequest], lookups: [CopyRequest]) = ([], [])

    /// The maximum of images with the codec workers, including those being processed: at least 32,
    /// and four for each worker. Twice that took 2 MB more for photographs and was no faster.
    private var processingCapacity: Int { max(32, 4 * (storing?.images.workers ?? 0)) }
    /// The maximum of look-ups besides entries that have their turn.
    private static let lookupCapacity = 4096
    /// The maximum of uncommitted changes: rows wait until the disk has synchronised their files.
    /// This is three seconds of the fastest runs.
    private static let commitCapacity = ByteCount.mebibytes(32)

    init(_ provider: any StageProviding) {
        self.provider = provider
    }

    // MARK: Room

    /// Whether one more image may be requested or decoded, and then wait for its commit.
    ///
    /// While images wait for a worker, `transfers` count, too: their bodies would only wait in
    /// memory. If no image waits, only the hosts' limits apply to transfers.
    func hasRoomForImage(beside transfers: Int = 0) -> Bool {
        let arriving = processing > storing?.images.workers ?? 0 ? transfers : 0
        return processing + arriving < processingCapacity && hasRoomForCommit
            && storing?.room?.isShort != true
    }
    var hasRoomForCommit: Bool {
        storing.map { $0.writer.backlog < RunStages.commitCapacity } ?? true
    }
    var hasUncommitted: Bool { storing.map { $0.writer.backlog.bytes > 0 } ?? false }
    var hasRoomForLookup: Bool { lookingUp < RunStages.lookupCapacity }
    var isIdle: Bool { processing == 0 && lookingUp == 0 }
    var hasStored: Bool { storing != nil }
    var sandbox: SandboxState { storing?.images.sandbox ?? .unused }
    var knowsCrashes: Bool { storing?.knowsCrashes == true }

    // MARK: Work

    mutating func startStoring() throws {
        if storing == nil { storing = try provider.makeStoring() }
    }

    mutating func ask(_ request: TransferRequest) { outgoing.requests.append(request) }

    mutating func find(_ request: CopyRequest) {
        outgoing.lookups.append(request)
        lookingUp += 1
    }

    /// Adds a look-up of a waiting entry to the next batch, unless it was looked up already.
    mutating func findAhead(_ identifier: Int, _ request: () -> CopyRequest) {
        if ahead.ask(identifier) { outgoing.lookups.append(request()) }
    }

    /// Sends the batch of requests. If the transfers cannot be started, no events follow.
    mutating func sendRequests() throws {
        guard !outgoing.requests.isEmpty else { return }
        defer { outgoing.requests = [] }
        let stage: any Transferring
        if let transfers { stage = transfers } else { stage = try provider.makeTransferring() }
        transfers = stage
        stage.start(outgoing.requests)
    }

    /// Sends the batch of look-ups. If the thread cannot be started, no events follow.
    mutating func sendLookups() throws {
        guard !outgoing.lookups.isEmpty else { return }
        defer { outgoing.lookups = [] }
        let stage: any CopyFinding
        if let copies { stage = copies } else { stage = try provider.makeCopyFinding() }
        copies = stage
        stage.find(outgoing.lookups)
    }

    mutating func process(_ job: CodecJob) throws {
        try startStoring()
        processing += 1
        storing?.images.enqueue(job)
    }

    mutating func noteWriterFailed(_ error: any Error) { writerError = error }

    func checkWriter() throws {
        if let writerError { throw writerError }
    }

    mutating func write(_ change: MetadataChange, token: Int?) throws {
        try startStoring()
        storing?.writer.enqueue(change, token: token)
    }

    func protect(_ listed: ResourceSet) { provider.protect(listed) }

    /// Whether a new image may be requested: the cache may have no room for it.
    mutating func admits(_ identifier: Int) -> Bool {
        gate.admits(identifier, isFull: isFull)
    }

    var isFull: Bool { storing?.room?.isFull == true }

    /// The memory of a full cache, for the next run.
    func fullness(isComplete: Bool) -> FullCache? {
        gate.next(isFull: isFull, refused: storing?.room?.refused, isComplete: isComplete)
    }

    /// The failure of an entry for which --max-size leaves no room.
    static let noRoom = Failure(
        .disk, "--max-size leaves no room for it, and no stored image may be evicted")
    static let notRequested = Failure(noRoom.reason, "not requested: \(noRoom.message)")

    /// The failure of an image that would not fit into an empty cache.
    static let tooLarge = Failure(.tooLarge, "it is larger than --max-size")

    /// Whether a failure of a new image says no more than that the cache is full.
    static func isWithoutRoom(_ failure: Failure) -> Bool {
        [noRoom, notRequested, tooLarge].contains(failure)
    }

    mutating func noteFound() { lookingUp -= 1 }
    mutating func noteProcessed() { processing -= 1 }
    /// Notes that the pending look-ups will have no results.
    mutating func noteLookupsLost() {
        lookingUp = 0
        ahead = LookAhead()
    }

    /// Lets the writer commit at once, when nothing else is pending.
    func hurry() { storing?.writer.hurry() }

    // MARK: Ends

    /// Cancels the transfers, which are still reported, and returns the entries of unsent requests.
    mutating func cancelTransfers() -> [Int] {
        transfers?.cancelAll()
        defer { outgoing.requests = [] }
        return outgoing.requests.map(\.id)
    }

    /// Cancels images, and returns the entries of the dropped ones. Started ones are still
    /// reported.
    mutating func cancelImages() -> [Int] {
        guard let storing else { return [] }
        let dropped = storing.images.dropWaiting()
        processing -= dropped.count
        storing.images.cancel()
        return dropped
    }

    /// Ends the threads; every entry has its outcome by now. Everything has ended after an error,
    /// too.
    func finish() throws {
        transfers?.finish()
        copies?.finish()
        guard let storing else { return }
        storing.images.finish()
        defer { storing.writer.finish() }
        try storing.endCrashLog()
    }
}

/// The stages of a real run: threads around libcurl, the codecs and SQLite.
struct LiveStages: StageProviding {
    let configuration: RunConfiguration
    let cache: OpenCache
    let seed: SeedCache?
    let recorder: CacheRecorder
    let mailbox: Mailbox
    let wallClock: @Sendable () -> Timestamp
    /// The resources that must stay; nil before all lists are read.
    let protected = Monitor<ResourceSet?>(nil)

    /// Starts the codec workers and the writer.
    ///
    /// - Throws: when the run has no row, the log of crashes cannot be read, or no threads can be
    ///   started.
    func makeStoring() throws -> StoringStages {
        let run = try recorder.runForStoring()
        // The run's row, before its first file: it tells the next run to look for orphaned files.
        if configuration.storing.durability != .off { try cache.database.synchronizeLog() }
        let crashes = try CrashLog(directory: cache.directory, at: wallClock())
        var writing = MetadataWriter.WriterConfiguration()
        writing.durability = configuration.storing.durability
        writing.maximumSize = configuration.storing.maximumSize
        writing.wallClock = wallClock
        writing.isProtected = { [protected] resource in
            protected.withLock { $0?.contains(resource) ?? true }
        }
        let rows = try MetadataWriter(cache, run: run, configuration: writing)
        recorder.writer = rows
        let images = CodecStage(
            configuration: configuration, cache: cache, seed: seed, crashes: crashes,
            room: rows.room, mailbox: mailbox)
        try images.start(configuration.codecWorkers)
        let writer: WriterThread
        do {
            writer = try WriterThread(rows, mailbox: mailbox)
        } catch {
            images.finish()
            throw error
        }
        return StoringStages(
            images: images, writer: writer, knowsCrashes: !crashes.isEmpty, room: rows.room,
            endCrashLog: { try crashes.end() })
    }

    func protect(_ listed: ResourceSet) {
        protected.withLock { $0 = listed }
    }

    func makeTransferring() throws -> any Transferring {
        try TransferThread(
            configuration: configuration.transfers, wallClock: wallClock, mailbox: mailbox)
    }

    func makeCopyFinding() throws -> any CopyFinding {
        try CopyStage(configuration: configuration, cache: cache, seed: seed, mailbox: mailbox)
    }
}

private final class TransferThread: Transferring {
    private let loop: TransferLoop
    private let thread: OwnedThread

    init(
        configuration: TransferConfiguration, wallClock: @escaping @Sendable () -> Timestamp,
        mailbox: Mailbox
    ) throws {
        loop = try TransferLoop(configuration: configuration, wallClock: wallClock)
        thread = try OwnedThread(name: "transfers") { [loop] in
            do {
                try loop.run { mailbox.put($0.map(Mailbox.StageEvent.transferred)) }
            } catch {
                mailbox.put(.transfersFailed(error))
            }
        }
    }

    func start(_ requests: [TransferRequest]) { loop.start(requests) }
    func cancelAll() { loop.cancelAll() }

    func finish() {
        loop.stop()
        thread.join()
    }
}

private final class WriterThread: Committing {
    private let writer: MetadataWriter
    private let thread: OwnedThread

    init(_ writer: MetadataWriter, mailbox: Mailbox) throws {
        self.writer = writer
        thread = try OwnedThread(name: "writer") {
            defer { writer.room?.close() }
            do {
                try writer.run { mailbox.put(.committed($0)) }
            } catch {
                mailbox.put(.writerFailed(error))
            }
        }
    }

    func enqueue(_ change: MetadataChange, token: Int?) { writer.enqueue(change, token: token) }
    var backlog: ByteCount { writer.backlog }
    func hurry() { writer.hurry() }

    func finish() {
        writer.finish()
        thread.join()
    }
}
