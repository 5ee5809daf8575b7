import CacheStorage
import EntryLifecycle
import PrefetchModel
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
protocol StageProviding: AnyObject {
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
