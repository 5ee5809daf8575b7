import CacheStorage
import EntryLifecycle
import PrefetchModel
import Transfers

// The seams between a run and the threads that work for it. What they have to say comes as events.

/// Asks origins.
protocol Transferring: AnyObject {
    func start(_ requests: [TransferRequest])
    /// Ends every transfer; each is heard of.
    func cancelAll()
    /// Returns when nothing more comes.
    func finish()
}

/// Decodes, encodes and stores.
protocol ImageProcessing: AnyObject {
    /// How many images are worked at, at most.
    var workers: Int { get }
    func enqueue(_ job: CodecJob)
    /// Drops images that nobody has begun, and returns their entries.
    func dropWaiting() -> [Int]
    /// Ends the images that are being worked at, which takes a few tenths of a second.
    func cancel()
    /// Returns when no job is left.
    func finish()
}

/// Commits changes of rows.
protocol Committing: AnyObject {
    /// Only changes with a token are heard of.
    func enqueue(_ change: MetadataChange, token: Int?)
    /// Bytes that uncommitted changes take in memory, at a guess.
    var backlog: ByteCount { get }
    /// Lets it commit what is there without waiting for more.
    func hurry()
    /// Returns when everything is committed.
    func finish()
}

/// Looks up what earlier runs have left of entries.
protocol CopyFinding: AnyObject {
    func find(_ requests: [CopyRequest])
    /// Returns when nothing more comes.
    func finish()
}

/// Makes the stages, each when it is first needed.
protocol StageMaking: AnyObject {
    /// Those that store: called once, and again only after an error.
    func makeStoring() throws(FatalError) -> StoringStages
    func makeTransferring() throws(FatalError) -> any Transferring
    func makeCopyFinding() throws(FatalError) -> any CopyFinding
    /// Says which resources the lists have named, all of them: they stay, and the others may make room for
    /// what is new.
    func protect(_ listed: ResourceSet)
}

/// The threads that decode, store and commit.
struct StoringStages {
    let images: any ImageProcessing
    let writer: any Committing
    /// Whether images that ended earlier runs are told by their bytes.
    let knowsCrashes: Bool
    /// What the cache may take; nil for any.
    let room: RoomBudget?
    /// Ends what notes such images.
    let endCrashLog: () throws(FatalError) -> Void
}

/// The stages of a run: a run over a warm list never needs them, and setting up libcurl and its TLS
/// library costs more than such a run.
struct RunStages {
    private let maker: any StageMaking
    private var transfers: (any Transferring)?
    private var storing: StoringStages?
    private var copies: (any CopyFinding)?
    /// Jobs with the codec workers.
    private(set) var processing = 0
    /// Look-ups whose findings have not come.
    private(set) var lookingUp = 0
    /// Look-ups of entries whose turns are yet to come.
    private var ahead = LookAhead()

    /// What one turn of the run's loop has to say to the threads goes out at its end: a wake-up costs
    /// more than a small file.
    private var outgoing: (requests: [TransferRequest], lookups: [CopyRequest]) = ([], [])

    /// Images that may be with the codec workers before nothing more is started, those that they work at included: at least 32, and
    /// four for each worker. Twice as many took 2 MB more over photographs, and were no faster.
    private var processingCapacity: Int { max(32, 4 * (storing?.images.workers ?? 0)) }
    /// Look-ups that may wait beside those of entries that have their turn.
    private static let lookupCapacity = 4096
    /// What may wait for its commit before nothing more is started: rows wait for as long as the disk
    /// takes to synchronise their files. That is three seconds of the fastest runs.
    private static let commitCapacity = ByteCount.mebibytes(32)

    init(_ maker: any StageMaking) {
        self.maker = maker
    }

    // MARK: Room

    /// Whether one more image may be decoded and wait for its commit.
    var hasRoomForImage: Bool {
        processing < processingCapacity && hasRoomForCommit
            && storing?.room?.isShort != true
    }
    /// Whether one more change may wait for the writer.
    var hasRoomForCommit: Bool {
        storing.map { $0.writer.backlog < RunStages.commitCapacity } ?? true
    }
    var hasRoomForLookup: Bool { lookingUp < RunStages.lookupCapacity }
    var isIdle: Bool { processing == 0 && lookingUp == 0 }
    var hasStored: Bool { storing != nil }
    var knowsCrashes: Bool { storing?.knowsCrashes == true }

    // MARK: Work

    mutating func startStoring() throws(FatalError) {
        if storing == nil { storing = try maker.makeStoring() }
    }

    /// Puts a request with those that go out together.
    mutating func ask(_ request: TransferRequest) { outgoing.requests.append(request) }

    /// Puts a look-up with those that go out together.
    mutating func find(_ request: CopyRequest) {
        outgoing.lookups.append(request)
        lookingUp += 1
    }

    /// Puts a look-up of an entry that waits for its turn with those that go out together, unless it is known.
    mutating func findAhead(_ identifier: Int, _ request: () -> CopyRequest) {
        if ahead.ask(identifier) { outgoing.lookups.append(request()) }
    }

    /// What was found ahead of an entry whose turn has come.
    mutating func takeFound(_ identifier: Int) -> LookAhead.Arrival { ahead.take(identifier) }

    /// Whether an entry was looked up ahead of its turn, or is about to be.
    func isAhead(_ identifier: Int) -> Bool { ahead.knows(identifier) }

    var hasRoomAhead: Bool { ahead.hasRoom }

    /// Sends the requests that have gathered.
    ///
    /// - Throws: when nothing can be asked for; none of them is answered then.
    mutating func sendRequests() throws(FatalError) {
        guard !outgoing.requests.isEmpty else { return }
        defer { outgoing.requests = [] }
        let stage: any Transferring
        if let transfers { stage = transfers } else { stage = try maker.makeTransferring() }
        transfers = stage
        stage.start(outgoing.requests)
    }

    /// Sends the look-ups that have gathered.
    ///
    /// - Throws: when nothing can be looked up; none of them is answered then.
    mutating func sendLookups() throws(FatalError) {
        guard !outgoing.lookups.isEmpty else { return }
        defer { outgoing.lookups = [] }
        let stage: any CopyFinding
        if let copies { stage = copies } else { stage = try maker.makeCopyFinding() }
        copies = stage
        stage.find(outgoing.lookups)
    }

    mutating func process(_ job: CodecJob) throws(FatalError) {
        try startStoring()
        processing += 1
        storing?.images.enqueue(job)
    }

    mutating func write(_ change: MetadataChange, token: Int?) throws(FatalError) {
        try startStoring()
        storing?.writer.enqueue(change, token: token)
    }

    func protect(_ listed: ResourceSet) { maker.protect(listed) }

    /// Whether nothing more finds room, so that asking for it is of no use.
    var isFull: Bool { storing?.room?.isFull == true }

    /// What an entry ends with that finds no room.
    static let noRoom = AttemptFailure(
        .disk,
        "--max-size leaves no room for it, and what is stored is on this run's lists, too")

    /// The same for what would not fit into an empty cache.
    static let tooLarge = AttemptFailure(.disk, "it is larger than --max-size")

    mutating func noteFound() { lookingUp -= 1 }
    /// - Returns: whether the entry has its turn and waits for the findings.
    mutating func noteFoundAhead(_ identifier: Int, _ findings: Findings) -> Bool {
        ahead.arrived(identifier, findings)
    }
    mutating func noteProcessed() { processing -= 1 }
    /// The look-ups that are out are not answered any more.
    mutating func noteLookupsLost() {
        lookingUp = 0
        ahead = LookAhead()
    }

    /// Lets the writer commit what it has, when nothing else is waited for.
    func hurry() { storing?.writer.hurry() }

    // MARK: Ends

    /// Cancels what is on the wire, which is heard of, and what would go out next.
    ///
    /// - Returns: the entries whose requests have not gone out.
    mutating func cancelTransfers() -> [Int] {
        transfers?.cancelAll()
        defer { outgoing.requests = [] }
        return outgoing.requests.map(\.id)
    }

    /// Cancels images; those that a worker has begun are heard of.
    ///
    /// - Returns: the entries whose images were dropped.
    mutating func cancelImages() -> [Int] {
        guard let storing else { return [] }
        let dropped = storing.images.dropWaiting()
        processing -= dropped.count
        storing.images.cancel()
        return dropped
    }

    /// Ends the threads; every entry has its outcome by now.
    ///
    /// - Throws: what comes up last. Everything has ended all the same.
    func finish() throws(FatalError) {
        transfers?.finish()
        copies?.finish()
        guard let storing else { return }
        storing.images.finish()
        defer { storing.writer.finish() }
        try storing.endCrashLog()
    }
}
