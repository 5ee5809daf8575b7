import CacheStorage
import Decoding
import EntryLifecycle
import PrefetchModel
import Scheduling
import Transfers

// The protocols between a run and its threads. The threads report by events.

protocol Transferring: AnyObject {
    func start(_ requests: [TransferRequest])
    /// Cancels every transfer; each still completes.
    func cancelAll()
    func finish()
}

protocol ImageProcessing: AnyObject {
    var workers: Int { get }
    /// The walls around the decoders.
    var sandbox: SandboxState { get }
    func enqueue(_ job: CodecJob)
    /// Drops jobs that no worker has begun, and returns their entries.
    func dropWaiting() -> [Int]
    /// Cancels the images being processed, which takes a few tenths of a second.
    func cancel()
    func finish()
}

protocol Committing: AnyObject {
    /// Adds a change; only changes with a token are reported.
    func enqueue(_ change: MetadataChange, token: Int?)
    var backlog: ByteCount { get }
    func hurry()
    func finish()
}

protocol CopyFinding: AnyObject {
    func find(_ requests: [CopyRequest])
    func finish()
}

/// Creates the stages, each on first use.
protocol StageProviding {
    /// Creates the codec workers and the writer: called once, and again only after an error.
    func makeStoring() throws -> StoringStages
    func makeTransferring() throws -> any Transferring
    func makeCopyFinding() throws -> any CopyFinding
    /// Takes all resources that the lists have named: they stay, and others may be evicted.
    func protect(_ listed: ResourceSet)
}

struct StoringStages {
    let images: any ImageProcessing
    let writer: any Committing
    /// Whether images that ended earlier runs are recognised by their bytes.
    let knowsCrashes: Bool
    let room: RoomBudget?
    let endCrashLog: () throws -> Void
}

/// A run's access to its cache apart from its entries: its own row, hosts and failures.
protocol RunRecording: AnyObject {
    /// Notes the start of the run. Without space for that it continues: warm entries need none, and
    /// any other ends the run.
    func begin(at time: Timestamp) throws
    func ongoingOutages() throws -> OngoingOutages
    /// Returns the memory of a full cache; nil without a size limit.
    func fullness(listed: RunListing) throws -> CacheFullness?
    func note(_ full: FullCache?) throws
    /// Calls `body` with the knowledge of earlier runs about each host.
    func forEachHost(at now: Timestamp, _ body: (HostState) -> Void) throws
    /// Returns the kept part of a key's body, in memory since ``begin(at:)``. Nil without one.
    func part(of key: String) throws -> PartialBody?
    func discardPart(of key: String) throws
    func hasWholeFile(_ image: StoredImage) -> Bool
    /// Keeps a file from being removed until the change that names it is committed.
    func pin(_ image: StoredImage)

    /// Checks that the run still holds the cache, before its end is written.
    func checkHold() throws
    /// Decides which of the run's failures are blacklisted, as ``FailureLog`` says.
    func settleFailures(
        isOver: ((FailureRecord) -> Bool)?, isOfFault: ((FailureRecord) -> Timestamp?)?,
        _ decide: (FailureRecord) -> FailureLog.Settlement?
    ) throws
    /// Counts the stored images of a host among `listed`, and stops beyond `limit`.
    func countStored(of host: String, in listed: ResourceSet, upTo limit: Int) throws -> Int
    func save(_ hosts: [HostState]) throws
    /// Notes the end of the run. Writes nothing for a run without a row. Without `mayRemove`
    /// nothing is pruned. Pruning ends when `isStopped` returns true. Returns the images pruned by
    /// rules or by the size limit; nil when no pruning was due and nothing was evicted.
    func end(
        at time: Timestamp, exitStatus: Int32, _ counters: RunCounters, mayRemove: Bool,
        outages: OngoingOutages, listed: RunListing, isStopped: () -> Bool
    ) throws -> RemovalTotals?
    /// Notes the end of a run that a full disk keeps out of the log.
    func noteUnlogged(at time: Timestamp, exitStatus: Int32)
    /// Takes a snapshot of the database, where one is due; `isStopped` interrupts it. Returns the
    /// reason that it could not be taken, which does not fail the run.
    func takeSnapshot(at time: Timestamp, _ counters: RunCounters, isStopped: () -> Bool) -> String?
    /// Closes the cache; nothing is read or written afterwards.
    func close() throws

    /// Removes partial bodies and the files of this run without a row, to free space on a full
    /// disk.
    func makeRoom(at now: Timestamp)
    /// Makes the next run salvage a damaged database. Returns a hint for the user, if any.
    func noteDamage() -> String?
}

/// The resources that were stored before a run and that its lists name.
struct RunListing {
    var resources = ResourceSet()
    /// Whether no other resource can be in the lists, or the user allows that.
    var isWhole = true
}
