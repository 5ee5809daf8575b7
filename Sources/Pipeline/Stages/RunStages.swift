import CacheStorage
import EntryLifecycle
import PrefetchModel
import Transfers

/// The stages of a run: a run over a warm list never needs them, and setting up libcurl and its TLS
/// library costs more than such a run.
struct RunStages {
    private let provider: any StageProviding
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

    init(_ provider: any StageProviding) {
        self.provider = provider
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
        if storing == nil { storing = try provider.makeStoring() }
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
        if let transfers { stage = transfers } else { stage = try provider.makeTransferring() }
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
        if let copies { stage = copies } else { stage = try provider.makeCopyFinding() }
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

    func protect(_ listed: ResourceSet) { provider.protect(listed) }

    /// Whether nothing more finds room, so that asking for it is of no use.
    var isFull: Bool { storing?.room?.isFull == true }

    /// What an entry ends with that finds no room.
    static let noRoom = Failure(
        .disk,
        "--max-size leaves no room for it, and what is stored is on this run's lists, too")

    /// The same for what would not fit into an empty cache.
    static let tooLarge = Failure(.disk, "it is larger than --max-size")

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
