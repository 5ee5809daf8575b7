import CacheStorage
import EntryLifecycle
import PrefetchModel
import Transfers

// The protocols between a run and its threads. The threads answer with events.

/// Sends requests to origins.
protocol Transferring: AnyObject {
    func start(_ requests: [TransferRequest])
    /// Cancels every transfer; each still completes.
    func cancelAll()
    /// Returns after the last event.
    func finish()
}

/// Decodes, encodes and stores images.
protocol ImageProcessing: AnyObject {
    /// The maximum of images processed at once.
    var workers: Int { get }
    func enqueue(_ job: CodecJob)
    /// Drops jobs that no worker has begun, and returns their entries.
    func dropWaiting() -> [Int]
    /// Cancels the images being processed, which takes a few tenths of a second.
    func cancel()
    /// Returns when no job is left.
    func finish()
}

/// Commits changes of rows.
protocol Committing: AnyObject {
    /// Adds a change; only changes with a token are reported.
    func enqueue(_ change: MetadataChange, token: Int?)
    /// The estimated memory of uncommitted changes.
    var backlog: ByteCount { get }
    /// Lets it commit at once instead of waiting for more.
    func hurry()
    /// Returns when everything is committed.
    func finish()
}

/// Looks up stored copies and failures.
protocol CopyFinding: AnyObject {
    func find(_ requests: [CopyRequest])
    /// Returns after the last event.
    func finish()
}

/// Creates the stages, each on first use.
protocol StageProviding: AnyObject {
    /// Creates the codec workers and the writer: called once, and again only after an error.
    func makeStoring() throws(FatalError) -> StoringStages
    func makeTransferring() throws(FatalError) -> any Transferring
    func makeCopyFinding() throws(FatalError) -> any CopyFinding
    /// Takes all resources that the lists have named: they stay, and others may be evicted.
    func protect(_ listed: ResourceSet)
}

/// The threads that decode, store and commit.
struct StoringStages {
    let images: any ImageProcessing
    let writer: any Committing
    /// Whether images that ended earlier runs are recognised by their bytes.
    let knowsCrashes: Bool
    /// The limit of the cache's size; nil for none.
    let room: RoomBudget?
    /// Ends the log of crashes.
    let endCrashLog: () throws(FatalError) -> Void
}
